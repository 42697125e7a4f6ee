"""Non-maximum suppression against its definition, box by box, around the sizes where the way of computing changes."""

from collections.abc import Callable

import numpy as np
import pytest

from kernels.image.box_overlap import overlap
from pocketgraph.graph import Node
from pocketgraph.kernels.image import equal_scores
from pocketgraph.kernels.image import non_max_suppression as kernels
from pocketgraph.kernels.image.non_max_suppression import BLOCK, non_max_suppression_v3
from pocketgraph.litert import suppression

QUICK = suppression.quicker(Node("n", "NonMaxSuppressionV3"), non_max_suppression_v3)


def by_definition(boxes: np.ndarray, scores: np.ndarray, limit: int, threshold: float, least: float) -> list[int]:
    """Best first, of equals the earlier; a box goes when it overlaps one that stays by more than the threshold."""
    kept: list[int] = []
    for index in np.argsort(-scores, kind="stable").tolist():
        if len(kept) >= limit or not scores[index] > least:
            break
        if not any(overlap(boxes[index], boxes[kept]) > np.float32(threshold)):
            kept.append(index)
    return kept


@pytest.mark.parametrize("count", [0, 1, 2, 46, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("kind", ["plain", "equal scores", "empty boxes", "turned corners", "not numbers"])
@pytest.mark.parametrize("suppress", [non_max_suppression_v3, QUICK])
def test_what_stays(suppress: Callable[..., np.ndarray], count: int, threshold: float, kind: str) -> None:
    rng = np.random.default_rng(count)
    center, half = rng.uniform(0, 1, (count, 2)), rng.uniform(0.02, 0.15, (count, 2))
    boxes = np.concatenate([center - half, center + half], axis=1).astype(np.float32)
    scores = rng.uniform(0, 1, count).astype(np.float32)
    if kind == "equal scores":
        scores = np.round(scores, 1)
    elif kind == "empty boxes":
        boxes[::3, 2:] = boxes[::3, :2]
    elif kind == "turned corners":
        boxes[::2] = boxes[::2][:, [2, 1, 0, 3]]
    elif kind == "not numbers":
        scores[::4], boxes[1::5, 2] = np.nan, np.nan
    for limit in (0, 1, 7, count + 1):
        for least in (-np.inf, 0.5):
            given = (np.array(limit, np.int32), np.array(threshold, np.float32), np.array(least, np.float32))
            with np.errstate(all="ignore"):  # as an engine calls kernels
                expected = by_definition(boxes, scores, limit, threshold, least)
                found = suppress(boxes, scores, *given)
            assert found.dtype == np.int32
            assert found.tolist() == expected


def some_boxes(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    center, half = rng.uniform(0, 1, (count, 2)), rng.uniform(0.05, 0.2, (count, 2))
    boxes = np.concatenate([center - half, center + half], axis=1).astype(np.float32)
    return boxes, rng.uniform(0, 1, count).astype(np.float32)


@pytest.mark.parametrize("count", [9, 64, 65, 700, 4097])
def test_litert_keeps_the_same_as_numpy(count: int) -> None:
    boxes, scores = some_boxes(count, count)
    for limit, threshold, least in ((count, 0.5, -np.inf), (10, 0.25, 0.2), (100, 0.0, 0.9), (3, 1.0, 0.0)):
        exact = float(np.float32(threshold))
        expected = kernels.best_apart(boxes, scores, limit, exact, least)
        assert suppression.quick_best_apart(boxes, scores, limit, exact, least).tolist() == expected.tolist()


def test_an_overlap_of_just_the_threshold_is_no_overlap_too_many() -> None:
    boxes = np.array([[0, i * 10, 2, i * 10 + 2] for i in range(9)] + [[1, 0, 2, 2]], np.float32)  # the last is a half
    scores = np.linspace(1, 0.1, 10, dtype=np.float32)
    assert suppression.quick_best_apart(boxes, scores, 20, 0.5, -np.inf).tolist() == list(range(10))
    below = float(np.nextafter(np.float32(0.5), np.float32(0)))
    assert suppression.quick_best_apart(boxes, scores, 20, below, -np.inf).tolist() == list(range(9))


def test_the_other_versions_and_all_classes_at_once() -> None:
    boxes, scores = some_boxes(80, 3)
    limit, overlap_most, least = np.int32(30), np.float32(0.3), np.float32(0.1)
    arrays = [np.asarray(value) for value in (limit, overlap_most, least)]
    v4 = suppression.quicker(Node("n", "NonMaxSuppressionV4"), kernels.non_max_suppression_v4)
    v5 = suppression.quicker(Node("n", "NonMaxSuppressionV5"), kernels.non_max_suppression_v5)
    for ours, theirs in zip(
        [*v4(boxes, scores, *arrays), *v5(boxes, scores, *arrays, np.asarray(np.float32(0)))],
        [
            *kernels.non_max_suppression_v4(boxes, scores, *arrays),
            *kernels.non_max_suppression_v5(boxes, scores, *arrays, np.asarray(np.float32(0))),
        ],
        strict=True,
    ):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    combine = suppression.quicker(Node("n", "CombinedNonMaxSuppression"), kernels.combined_non_max_suppression)
    many = boxes.reshape(1, 80, 1, 4), np.random.default_rng(0).uniform(0, 1, (1, 80, 5)).astype(np.float32)
    numbers = [np.asarray(value) for value in (np.int32(10), np.int32(25), np.float32(0.4), np.float32(0.2))]
    for ours, theirs in zip(
        combine(*many, *numbers), kernels.combined_non_max_suppression(*many, *numbers), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_wrong_boxes_are_refused_all_the_same() -> None:
    three = np.zeros((20, 3), np.float32), np.zeros(20, np.float32)
    numbers = [np.asarray(value) for value in (np.int32(10), np.float32(0.5), np.float32(0))]
    with pytest.raises(ValueError, match="shapes that do not fit"):
        QUICK(*three, *numbers)
    with pytest.raises(ValueError, match="iou_threshold must be in"):
        QUICK(np.zeros((20, 4), np.float32), three[1], numbers[0], np.asarray(np.float32(1.5)), numbers[2])


@pytest.mark.parametrize("piled", [100, 400, 1500])
@pytest.mark.parametrize("least", [-np.inf, 0.4, 0.9])
def test_many_boxes_in_one_place_before_the_others(piled: int, least: float) -> None:
    """The best boxes suppress each other, so that those which stay come long after as many as are wanted."""
    rng = np.random.default_rng(piled)
    count = 2000
    corner = rng.uniform(0, 1, (count, 2)).astype(np.float32)
    corner[:piled] = 0.5 + rng.uniform(0, 0.001, (piled, 2))
    boxes = np.concatenate([corner, corner + np.float32(0.1)], axis=1)
    scores = np.sort(rng.uniform(0, 1, count).astype(np.float32))[::-1].copy()
    shuffled = rng.permutation(count)
    found = suppression.quick_best_apart(boxes[shuffled], scores[shuffled], 10, 0.5, least)
    assert found.tolist() == by_definition(boxes[shuffled], scores[shuffled], 10, 0.5, least)


@pytest.mark.parametrize("apart", [kernels.best_apart, suppression.quick_best_apart])
def test_equal_scores_of_several_classes_come_in_the_order_of_tensorflow(apart: kernels.Apart) -> None:
    """TensorFlow 2.21 picked these of 40 boxes in a row, each of which overlaps the next by a third."""
    at = np.arange(40, dtype=np.float32) / 2
    boxes = np.stack([at, 0 * at, at + 1, 0 * at + 1], axis=-1).reshape(1, 40, 1, 4)
    scores = (np.arange(120) * 37 % 120 % 7 / 8).astype(np.float32).reshape(1, 40, 3)
    found = kernels.combined(boxes, scores, 12, 30, float(np.float32(0.3)), 0.3, clip_boxes=False, apart=apart)
    picked = "9 6 10 17 39 28 1 31 27 38 16 20 30 37 19 8 26 13 25 21 3 36 32 14 2 35 6 24 16 34"
    assert (found[0][0, :, 0] * 2).tolist() == [int(index) for index in picked.split()]
    assert "".join(f"{label:.0f}" for label in found[2][0]) == "122222011111000001222222111100"
    assert found[3].tolist() == [30]


def test_a_sort_that_is_as_deep_as_it_may_be_goes_on_with_a_heap() -> None:
    scores = [float(number) for number in np.random.default_rng(1).integers(0, 9, 200)]
    order = equal_scores.introsorted(scores, depth=0)
    assert [scores[index] for index in order] == sorted(scores, reverse=True)
    assert sorted(order) == list(range(200))
