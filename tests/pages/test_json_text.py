"""Reports for programs are JSON that every reader takes."""

from __future__ import annotations

import json

import numpy as np

from pocketgraph.pages.json_text import json_text


def test_numbers_that_json_has_no_word_for_are_null_at_any_depth() -> None:
    content = {"a": float("inf"), "b": [(1.5, np.float64("nan")), {"c": -float("inf")}], "d": (), "e": "NaN"}
    assert json.loads(json_text(content)) == {"a": None, "b": [[1.5, None], {"c": None}], "d": [], "e": "NaN"}
