"""Freezing every shared checkpoint and SavedModel: node for node what TensorFlow 1.15 and 2.x make of them."""

import json
import pathlib
from typing import Any

import pytest

from graph_digest import digest
from pocketgraph.freezing import freeze
from support import model_dir, needs_shared

FIXTURE = pathlib.Path(__file__).parent.parent / "fixtures" / "frozen_models.json"
CASES: dict[str, dict[str, Any]] = json.loads(FIXTURE.read_text())


@needs_shared
@pytest.mark.parametrize("name", CASES)
def test_equal_to_tensorflow(name: str) -> None:
    case = CASES[name]
    place = model_dir(name)
    if "meta" in case:
        graph = freeze(
            place / case["meta"], case["outputs"], place / case["checkpoint"], allow_training_batch_norm=True
        )
    else:
        graph = freeze(place, case["outputs"], tags=case["tags"])
    assert digest(graph, attributes=False) in [case[version] for version in ("1.15", "2.x") if version in case]
