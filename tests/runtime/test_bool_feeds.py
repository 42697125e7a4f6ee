"""A bool placeholder takes the integers 0 and 1, as TensorFlow's does, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.errors import RunError
from pocketgraph.graph.text_format import parse

GRAPH = parse("""
    x = Placeholder(dtype=bool, shape=[2])
    y = LogicalNot(x)
""")


@pytest.mark.parametrize("value", [[0, 1], np.array([0, 1]), np.array([0, 1], np.uint8), [False, True]])
def test_zero_and_one_are_false_and_true(value: Any) -> None:
    with Session(GRAPH) as session:
        np.testing.assert_array_equal(session.run("y", {"x": value})[0], [True, False])


@pytest.mark.parametrize("value", [[0, 2], np.array([-1, 1]), [0.0, 1.0]])
def test_other_numbers_are_refused(value: Any) -> None:
    with Session(GRAPH) as session, pytest.raises(RunError, match="wants bool"):
        session.run("y", {"x": value})
