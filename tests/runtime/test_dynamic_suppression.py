"""Suppressing boxes: NumPy does the first few, LiteRT what comes often, and nobody sees which."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from pocketgraph.graph.text_format import parse
from pocketgraph.litert import suppression
from pocketgraph.litert.cost_model import FEW_SCORES
from pocketgraph.runtime import Session

GRAPH = """
    boxes = Placeholder(dtype=float, shape=[?, 4])
    scores = Placeholder(dtype=float, shape=[?])
    most = Const(int32 50)
    overlap = Const(float 0.5)
    y = NonMaxSuppressionV2(boxes, scores, most, overlap)
"""


@pytest.mark.parametrize("count", [20, 300, 3000])
def test_all_runs_give_the_same(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    helped: list[int] = []
    quick = suppression.quick_best_apart

    def counted(boxes: np.ndarray, scores: np.ndarray, *rest: float) -> np.ndarray:
        helped.append(scores.size)
        return quick(boxes, scores, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(suppression, "quick_best_apart", counted)
    numbers = np.random.default_rng(count)
    corners = numbers.uniform(0, 10, (count, 2)).astype(np.float32)
    boxes = np.concatenate([corners, corners + numbers.uniform(1, 4, (count, 2)).astype(np.float32)], 1)
    scores = numbers.uniform(size=count).astype(np.float32)
    with Session(parse(GRAPH), engine="reference") as session:
        (expected,) = session.run("y", {"boxes": boxes, "scores": scores})
    with Session(parse(GRAPH), cache_dir="") as session:
        for turn in range(FEW_SCORES // count + 3):
            np.testing.assert_array_equal(session.run("y", {"boxes": boxes, "scores": scores})[0], expected)
            assert bool(helped) == ((turn + 1) * count > FEW_SCORES)


def test_a_first_result_does_not_wait_for_litert(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pocketgraph.litert.suppression", None)  # not to be imported
    boxes = np.array([[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]], np.float32)
    with Session(parse(GRAPH), cache_dir="") as session:
        found = session.run("y", {"boxes": boxes, "scores": np.array([0.5, 0.6, 0.7], np.float32)})[0]
    np.testing.assert_array_equal(found, [2, 1])
