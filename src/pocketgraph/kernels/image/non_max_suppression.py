"""Non-maximum suppression: of boxes that overlap too much only the best stay."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np

from pocketgraph.budgets import timed
from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, integer, number, reserve, widened
from pocketgraph.kernels.image.equal_scores import best_first, introsorted
from pocketgraph.kernels.image.soft_non_max_suppression import softly_apart
from pocketgraph.kernels.registry import kernel

FLOAT = np.float32
HANDED_OUT = 4
"""Times as many boxes as are wanted are taken from a queue at first, and times as many again."""


def _checked(boxes: Array, scores: Array, threshold: float) -> None:
    if boxes.ndim != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise ValueError(f"shapes that do not fit: boxes {list(boxes.shape)} and scores {list(scores.shape)}")
    if not 0 <= threshold <= 1:
        raise ValueError("iou_threshold must be in [0, 1]")


BLOCK = 64  # candidates that are compared with each other at once: the bits of one word


def best_apart(boxes: Array, scores: Array, limit: int, threshold: float, score_threshold: float) -> Array:
    """The indices of the boxes kept: best first (of equals the earlier), none that overlaps one before by more.

    NumPy's warnings are the caller's to turn off. The candidates come in blocks: a block's boxes are compared with all
    that were kept and with each other in a few array operations, and which of them stay is then worked out on bit
    masks.
    """
    order = (-scores).argsort(kind="stable")
    if order.size and not scores[order[-1]] > score_threshold:  # NaN sorts last and is above nothing
        order = order[: np.count_nonzero(scores > score_threshold)]
    if order.size <= BLOCK:
        return _best_of_few(boxes, order, limit, threshold) if order.size else order
    corners = boxes[order].T
    low_y, high_y = np.minimum(corners[0], corners[2]), np.maximum(corners[0], corners[2])
    low_x, high_x = np.minimum(corners[1], corners[3]), np.maximum(corners[1], corners[3])
    area = (high_y - low_y) * (high_x - low_x)
    zero = area.dtype.type(0)

    solid = bool(np.all(area > 0))

    def overlapping(first: Array, second: Array) -> Array:
        """(first, second): whether the two overlap too much; an empty box overlaps nothing."""
        tall, other = np.minimum(high_y[first, None], high_y[second]), np.maximum(low_y[first, None], low_y[second])
        tall -= other
        wide = np.minimum(high_x[first, None], high_x[second])
        wide -= np.maximum(low_x[first, None], low_x[second], out=other)
        shared = np.multiply(np.maximum(tall, zero, out=tall), np.maximum(wide, zero, out=wide), out=tall)
        union = np.add(area[first, None], area[second], out=wide)
        union -= shared
        too_much = np.divide(shared, union, out=shared) > threshold
        return np.asarray(too_much if solid else too_much & (area[first, None] > 0) & (area[second] > 0))

    kept: list[int] = []
    for start in timed(range(0, order.size, BLOCK)):
        if len(kept) >= limit:
            break
        block = np.arange(start, min(start + BLOCK, order.size))
        if kept:
            block = block[~overlapping(np.array(kept), block).any(axis=0)]
        rows = np.packbits(overlapping(block, block), axis=1, bitorder="little")
        words = np.zeros((block.size, BLOCK // 8), np.uint8)
        words[:, : rows.shape[1]] = rows
        masks = words.view("<u8").ravel().tolist()
        dropped = 0
        for place, (candidate, mask) in enumerate(zip(block.tolist(), masks, strict=True)):
            if not dropped >> place & 1:
                dropped |= mask
                kept.append(candidate)
                if len(kept) >= limit:
                    break
    return np.asarray(order[kept] if limit > 0 else order[:0])


def _best_of_few(boxes: Array, order: Array, limit: int, threshold: float) -> Array:
    """As ``best_apart``, of no more than one block of boxes, given best first; both axes in one operation each."""
    count = order.size
    corners = boxes.take(order, 0).T.copy()  # a side after the other
    one, other = corners[:2], corners[2:]
    low, high = np.minimum(one, other), np.maximum(one, other)
    zero = corners.dtype.type(0)
    marks = np.zeros((count, BLOCK), np.bool_)
    sides = high - low
    area = sides[0] * sides[1]
    shared = np.minimum(high[:, :, None], high[:, None, :])
    shared -= np.maximum(low[:, :, None], low[:, None, :])
    both, union = shared
    np.maximum(both, zero, out=both)
    both *= union  # below zero where they are apart along this axis: no overlap either
    np.add(area[:, None], area, out=union)
    union -= both
    both /= union
    np.greater(both, threshold, out=marks[:, :count])
    marks.ravel()[:: BLOCK + 1] = False
    solid = area > zero
    if not solid.all():
        marks[:, :count] &= solid[:, None] & solid
    pairs = np.count_nonzero(marks)
    if pairs <= count:  # few: pair by pair; a pair's better box comes first, and all its pairs with better ones before
        gone: set[int] = set()
        if pairs:
            for place in marks.ravel().nonzero()[0].tolist():
                better, worse = place // BLOCK, place % BLOCK
                if better < worse and better not in gone:
                    gone.add(worse)
        if not gone:
            return order[: max(limit, 0)]
        stays = np.ones(count, np.bool_)
        stays[list(gone)] = False
        return np.asarray(order[stays][: max(limit, 0)])
    dropped, bit = 0, 1
    kept: list[int] = []
    for place, mask in enumerate(np.packbits(marks, bitorder="little").view("<u8").tolist()):
        if not dropped & bit:
            dropped |= mask
            kept.append(place)
        bit += bit
    return np.asarray(order[kept[: max(limit, 0)]])


Apart = Callable[[Array, Array, int, float, float], Array]
"""What ``best_apart`` is."""


def suppressed(
    boxes: Array,
    scores: Array,
    limit: int,
    threshold: float,
    score_threshold: float = -np.inf,
    sigma: float = 0.0,
    apart: Apart = best_apart,
) -> tuple[Array, Array]:
    """(indices, scores) of the boxes kept: best first, none that overlaps a kept one by more than ``threshold``.

    With ``sigma`` above 0, an overlap lowers a box's score by exp(-overlap^2 / (2 sigma)) instead, and the threshold
    does not count (soft suppression). ``apart`` finds those that stay where nothing is soft.
    """
    _checked(boxes, scores, threshold)
    wide, marks = widened(boxes), widened(scores)
    if not sigma > 0:
        found = apart(wide, marks, limit, threshold, score_threshold)
        return found.astype(np.int32), scores[found]
    kept, kept_scores = softly_apart(wide, marks, limit, sigma, score_threshold)
    return np.array(kept, dtype=np.int32), np.array(kept_scores, dtype=marks.dtype).astype(scores.dtype)


def output_size(value: Array) -> int:
    """How many boxes are kept at most.

    Raises:
        RunError: it is negative.
    """
    size = integer(value)
    if size < 0:
        raise RunError(f"output size must be non-negative, not {size}")
    return size


@kernel("NonMaxSuppression")
def non_max_suppression(boxes: Array, scores: Array, max_output_size: Array, *, iou_threshold: float = 0.5) -> Array:
    return suppressed(boxes, scores, output_size(max_output_size), float(FLOAT(iou_threshold)))[0]


@kernel("NonMaxSuppressionV2")
def non_max_suppression_v2(boxes: Array, scores: Array, max_output_size: Array, iou_threshold: Array) -> Array:
    return suppressed(boxes, scores, output_size(max_output_size), number(iou_threshold))[0]


@kernel("NonMaxSuppressionV3")
def non_max_suppression_v3(
    boxes: Array, scores: Array, max_output_size: Array, iou_threshold: Array, score_threshold: Array
) -> Array:
    return suppressed(boxes, scores, output_size(max_output_size), number(iou_threshold), number(score_threshold))[0]


def _filled(values: Array, count: int, wanted: bool) -> Array:
    """``values`` with zeros behind them up to ``count``, when wanted."""
    if not wanted:
        return values
    result = np.zeros(reserve([max(count, 0)], values.dtype), dtype=values.dtype)
    result[: values.size] = values
    return result


@kernel("NonMaxSuppressionV4")
def non_max_suppression_v4(
    boxes: Array,
    scores: Array,
    max_output_size: Array,
    iou_threshold: Array,
    score_threshold: Array,
    *,
    pad_to_max_output_size: bool = False,
) -> tuple[Array, Array]:
    """(indices, how many of them count)."""
    limit = output_size(max_output_size)
    kept, _ = suppressed(boxes, scores, limit, number(iou_threshold), number(score_threshold))
    return _filled(kept, limit, pad_to_max_output_size), np.array(kept.size, dtype=np.int32)


@kernel("NonMaxSuppressionV5")
def non_max_suppression_v5(
    boxes: Array,
    scores: Array,
    max_output_size: Array,
    iou_threshold: Array,
    score_threshold: Array,
    soft_nms_sigma: Array,
    *,
    pad_to_max_output_size: bool = False,
) -> tuple[Array, Array, Array]:
    """(indices, scores, how many of them count)."""
    limit, sigma = output_size(max_output_size), number(soft_nms_sigma)
    if not sigma >= 0:
        raise RunError(f"soft_nms_sigma_val must be >= 0, not {sigma}")
    kept, marks = suppressed(boxes, scores, limit, number(iou_threshold), number(score_threshold), sigma)
    padded = pad_to_max_output_size
    return _filled(kept, limit, padded), _filled(marks, limit, padded), np.array(kept.size, dtype=np.int32)


@kernel("NonMaxSuppressionWithOverlaps")
def non_max_suppression_with_overlaps(
    overlaps: Array, scores: Array, max_output_size: Array, overlap_threshold: Array, score_threshold: Array
) -> Array:
    """As above, with the overlap of every pair given."""
    limit, threshold, least = output_size(max_output_size), number(overlap_threshold), number(score_threshold)
    if overlaps.shape != (scores.size, scores.size):
        raise RunError(f"overlaps must be square, a row for each of {scores.size} scores, not {list(overlaps.shape)}")
    kept: list[int] = []
    for index in timed(np.argsort(-scores, kind="stable").tolist()):
        if len(kept) >= limit or not scores[index] > least:
            break
        if not bool(np.any(overlaps[index, kept] > threshold)):
            kept.append(index)
    return np.array(kept, dtype=np.int32)


@kernel("CombinedNonMaxSuppression")
def combined_non_max_suppression(
    boxes: Array,
    scores: Array,
    max_output_size_per_class: Array,
    max_total_size: Array,
    iou_threshold: Array,
    score_threshold: Array,
    *,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
) -> tuple[Array, Array, Array, Array]:
    """(boxes, scores, classes, counts) of a batch: suppression by class, then the best of all classes.

    ``boxes`` is (batch, n, classes or 1, 4), ``scores`` (batch, n, classes).
    """
    sizes = integer(max_output_size_per_class), integer(max_total_size)
    limits = number(iou_threshold), number(score_threshold)
    return combined(boxes, scores, *sizes, *limits, pad_per_class=pad_per_class, clip_boxes=clip_boxes)


def combined(
    boxes: Array,
    scores: Array,
    each: int,
    total: int,
    threshold: float,
    least: float,
    *,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    apart: Apart = best_apart,
) -> tuple[Array, Array, Array, Array]:
    """As the kernel, with its numbers taken out of their tensors."""
    if each <= 0 or total <= 0:
        raise RunError(f"max_size_per_class and max_total_size must be positive, not {each} and {total}")
    if boxes.ndim != 4 or scores.ndim != 3 or boxes.shape[:2] != scores.shape[:2] or boxes.shape[3] != 4:
        raise RunError(f"boxes and scores do not fit: {list(boxes.shape)} and {list(scores.shape)}")
    if boxes.shape[2] not in (1, scores.shape[2]):
        raise RunError(f"boxes of {boxes.shape[2]} classes; there must be 1 or {scores.shape[2]}, as of the scores")
    batch, count, classes = scores.shape
    size = min(total, each * classes) if pad_per_class else total
    out_boxes = np.zeros(reserve((batch, size, 4), FLOAT), dtype=FLOAT)
    out_scores, out_classes = np.zeros((batch, size), dtype=FLOAT), np.zeros((batch, size), dtype=FLOAT)
    counts = np.zeros(batch, dtype=np.int32)
    for entry in range(batch):
        found: list[tuple[float, int, int]] = []
        for label in timed(range(classes)):
            mine = boxes[entry, :, label if boxes.shape[2] > 1 else 0]
            kept, marks = _best_of_class(mine, scores[entry, :, label], each, threshold, least, apart)
            found += [(mark, label, index) for mark, index in zip(marks.tolist(), kept.tolist(), strict=True)]
        for place, (score, label, index) in enumerate(_best_of_all(found, size, min(each, count), classes)):
            box = boxes[entry, index, label if boxes.shape[2] > 1 else 0]
            out_boxes[entry, place] = np.clip(box, 0, 1) if clip_boxes else box
            out_scores[entry, place], out_classes[entry, place] = score, label
        counts[entry] = min(len(found), size)
    return out_boxes, out_scores, out_classes, counts


def _best_of_class(
    boxes: Array, scores: Array, limit: int, threshold: float, least: float, apart: Apart
) -> tuple[Array, Array]:
    """As ``suppressed``, but of equal scores those stay that TensorFlow's queue hands out first."""
    kept, marks = suppressed(boxes, scores, limit, threshold, least, apart=apart)
    if not kept.size or not _has_equal(scores[scores >= marks[-1]]):
        return kept, marks
    queue, order, wanted = best_first(scores, least), np.zeros(0, np.intp), HANDED_OUT * limit
    while True:  # most of them are not worth a place in the order
        more = list(islice(queue, wanted))
        order = np.append(order, np.array(more, np.intp))
        kept, marks = suppressed(boxes[order], scores[order], limit, threshold, least, apart=apart)
        if kept.size >= limit or len(more) < wanted:
            return order[kept], marks
        wanted *= HANDED_OUT


def _best_of_all(
    found: list[tuple[float, int, int]], size: int, each: int, classes: int
) -> list[tuple[float, int, int]]:
    """The best of (score, class, box) from the best of each class; TensorFlow sorts ``each`` places for each class."""
    best = sorted(found, key=lambda one: -one[0])
    if not _has_equal(np.array([score for score, _, _ in best[: size + 1]])):
        return best[:size]
    places = np.full(reserve((classes * each,), np.float64), -np.inf).tolist()
    owners: dict[int, tuple[float, int, int]] = {}
    ranks = [0] * classes
    for one in found:
        place = one[1] * each + ranks[one[1]]
        ranks[one[1]] += 1
        places[place], owners[place] = one[0], one
    return [owners[place] for place in introsorted(places) if place in owners][:size]


def _has_equal(scores: Array) -> bool:
    ordered = np.sort(scores)
    return bool((ordered[1:] == ordered[:-1]).any())
