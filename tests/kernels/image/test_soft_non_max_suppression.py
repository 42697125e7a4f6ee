"""Soft suppression against its definition, box by box, and against TensorFlow's results."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.image.box_overlap import overlap
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.image.non_max_suppression import suppressed
from pocketgraph.kernels.image.soft_non_max_suppression import softly_apart

FLOAT = np.float32


def by_definition(boxes: Array, scores: Array, limit: int, sigma: float, least: float) -> tuple[list[int], list[float]]:
    """The best box of all that are left is kept; then all others' scores fall, the latest kept box counting first."""
    waiting = {index: (FLOAT(score), 0) for index, score in enumerate(scores) if score > least}
    kept: list[int] = []
    found: list[float] = []
    while waiting and len(kept) < limit:
        index = min(waiting, key=lambda each: (-waiting[each][0], each))
        score, met = waiting.pop(index)
        lowered = score
        for other in kept[met:][::-1]:
            shared = FLOAT(overlap(boxes[index], boxes[[other]])[0])
            lowered = lowered * np.exp(FLOAT(-0.5 / sigma) * shared * shared)
            if lowered <= least:
                break
        if lowered == score:
            kept.append(index)
            found.append(float(score))
        elif lowered > least:
            waiting[index] = lowered, len(kept)
    return kept, found


@pytest.mark.parametrize("seed", range(60))
def test_it_is_what_the_definition_gives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(0, 150))
    corners = rng.random((count, 2))
    boxes = np.concatenate([corners, corners + rng.random((count, 2)) * 0.4], 1).astype(FLOAT)
    boxes[: count // 20] = 0.5  # boxes without area overlap nothing
    scores = rng.random(count).astype(FLOAT)
    if seed % 3 == 0:
        scores = np.round(scores, 1)  # many equal ones
    sigma, least, limit = (
        float(rng.choice([0.1, 0.5, 1])),
        float(rng.choice([0, 0.2, 0.5])),
        int(rng.choice([1, 9, 200])),
    )
    assert softly_apart(boxes, scores, limit, sigma, least) == by_definition(boxes, scores, limit, sigma, least)


def test_the_example_of_tensorflow() -> None:
    """tf.image.non_max_suppression_with_scores(boxes, scores, 6, 1.0, 0.0, soft_nms_sigma=0.5) in TensorFlow 2.21."""
    boxes = np.array(
        [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]], FLOAT
    )
    scores = np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3], FLOAT)
    kept, found = suppressed(boxes, scores, 6, 1.0, 0.0, 0.5)
    assert kept.tolist() == [3, 0, 1, 5, 4, 2]
    np.testing.assert_allclose(found, [0.95, 0.9, 0.384, 0.3, 0.256, 0.197], atol=5e-4)


def test_nothing_to_keep() -> None:
    none = np.zeros((0, 4), FLOAT), np.zeros(0, FLOAT)
    assert softly_apart(*none, 5, 0.5, 0.0) == ([], [])
    assert softly_apart(np.ones((3, 4), FLOAT), np.full(3, np.nan, FLOAT), 5, 0.5, -np.inf) == ([], [])
    assert softly_apart(np.ones((3, 4), FLOAT), np.ones(3, FLOAT), 0, 0.5, 0.0) == ([], [])
