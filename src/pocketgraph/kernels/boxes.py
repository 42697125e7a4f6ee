"""Boxes in images: CropAndResize and non-maximum suppression."""

from __future__ import annotations

import heapq

import numpy as np

from pocketgraph.kernels.arrays import Array, integer, ints, number, reserve, widened
from pocketgraph.kernels.registry import kernel

FLOAT = np.float32


def _samples(start: Array, end: Array, size: int, count: int) -> Array:
    """(boxes, count) positions in an axis of ``size`` pixels, for boxes given in fractions of it."""
    last = FLOAT(size - 1)
    if count > 1:
        step = (end - start) * last / FLOAT(count - 1)
        return np.asarray(start[:, None] * last + np.arange(count, dtype=FLOAT) * step[:, None])
    return np.asarray(FLOAT(0.5) * (start + end) * last)[:, None]


@kernel("CropAndResize")
def crop_and_resize(
    image: Array,
    boxes: Array,
    box_ind: Array,
    crop_size: Array,
    *,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Array:
    """float32 (boxes, rows, columns, channels): each box (y1, x1, y2, x2, in fractions of the image) resized."""
    rows, columns = ints(crop_size)
    count, (height, width, depth) = boxes.shape[0], image.shape[1:]
    if boxes.shape != (count, 4) or box_ind.shape != (count,) or rows < 1 or columns < 1:
        raise ValueError(f"boxes {list(boxes.shape)}, box_ind {list(box_ind.shape)}, crop size {[rows, columns]}")
    if bool(np.any((box_ind < 0) | (box_ind >= image.shape[0]))):
        raise ValueError(f"box_index has values outside [0, {image.shape[0]})")
    result = np.empty(reserve((count, rows, columns, depth), FLOAT), dtype=FLOAT)
    down = _samples(boxes[:, 0], boxes[:, 2], height, rows)
    along = _samples(boxes[:, 1], boxes[:, 3], width, columns)
    for box in range(count):
        picture = image[int(box_ind[box])]
        y, x = down[box], along[box]
        outside = ~((y >= 0) & (y <= height - 1))[:, None] | ~((x >= 0) & (x <= width - 1))[None, :]
        y, x = np.clip(np.nan_to_num(y), 0, height - 1), np.clip(np.nan_to_num(x), 0, width - 1)
        if method == "bilinear":
            top, bottom = np.floor(y).astype(np.int64), np.ceil(y).astype(np.int64)
            left, right = np.floor(x).astype(np.int64), np.ceil(x).astype(np.int64)
            by_row, by_column = (y - np.floor(y))[:, None, None], (x - np.floor(x))[None, :, None]
            upper, lower = widened(picture[top]).astype(FLOAT), widened(picture[bottom]).astype(FLOAT)
            first = upper[:, left] + (upper[:, right] - upper[:, left]) * by_column
            second = lower[:, left] + (lower[:, right] - lower[:, left]) * by_column
            values = first + (second - first) * by_row
        elif method == "nearest":
            values = picture[np.floor(y + 0.5).astype(np.int64)][:, np.floor(x + 0.5).astype(np.int64)]
        else:
            raise ValueError(f"method must be bilinear or nearest, not '{method}'")
        result[box] = np.where(outside[:, :, None], FLOAT(extrapolation_value), values)
    return result


def overlap(box: Array, others: Array) -> Array:
    """The intersection over union of ``box`` (4,) with each of ``others`` (n, 4); 0 where one is empty."""
    low = np.minimum(others[:, :2], others[:, 2:])
    high = np.maximum(others[:, :2], others[:, 2:])
    mine_low, mine_high = np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])
    area = np.prod(high - low, axis=1)
    mine = np.prod(mine_high - mine_low)
    shared = np.prod(np.maximum(np.minimum(high, mine_high) - np.maximum(low, mine_low), 0), axis=1)
    with np.errstate(all="ignore"):
        ratio = shared / (area + mine - shared)
    return np.asarray(np.where((area <= 0) | (mine <= 0), 0, ratio))


def _checked(boxes: Array, scores: Array, threshold: float) -> None:
    if boxes.ndim != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise ValueError(f"shapes that do not fit: boxes {list(boxes.shape)} and scores {list(scores.shape)}")
    if not 0 <= threshold <= 1:
        raise ValueError("iou_threshold must be in [0, 1]")


def suppressed(
    boxes: Array, scores: Array, limit: int, threshold: float, score_threshold: float = -np.inf, sigma: float = 0.0
) -> tuple[Array, Array]:
    """(indices, scores) of the boxes kept: best first, none that overlaps a kept one by more than ``threshold``.

    With ``sigma`` above 0, an overlap lowers a box's score by exp(-overlap^2 / (2 sigma)) instead, and the threshold
    does not count (soft suppression).
    """
    _checked(boxes, scores, threshold)
    wide, marks = widened(boxes), widened(scores)
    kept: list[int] = []
    kept_scores: list[float] = []
    # a heap of (-score, index, how many kept boxes it has been compared with)
    waiting = [(-float(s), i, 0) for i, s in enumerate(marks.tolist()) if s > score_threshold]
    heapq.heapify(waiting)
    decay = FLOAT(-0.5 / sigma) if sigma > 0 else FLOAT(0)
    while waiting and len(kept) < max(limit, 0):
        negative, index, seen = heapq.heappop(waiting)
        score = original = FLOAT(-negative)
        dropped = False
        for shared in overlap(wide[index], wide[kept[seen:]])[::-1].tolist():
            if sigma > 0:
                score = score * np.exp(decay * FLOAT(shared) * FLOAT(shared))
            elif shared > threshold:
                dropped = True
            if dropped or score <= score_threshold:
                break
        if dropped:
            continue
        if score == original:
            kept.append(index)
            kept_scores.append(float(score))
        elif score > score_threshold:
            heapq.heappush(waiting, (-float(score), index, len(kept)))
    return np.array(kept, dtype=np.int32), np.array(kept_scores, dtype=marks.dtype).astype(scores.dtype)


@kernel("NonMaxSuppression")
def non_max_suppression(boxes: Array, scores: Array, max_output_size: Array, *, iou_threshold: float = 0.5) -> Array:
    return suppressed(boxes, scores, integer(max_output_size), float(FLOAT(iou_threshold)))[0]


@kernel("NonMaxSuppressionV2")
def non_max_suppression_v2(boxes: Array, scores: Array, max_output_size: Array, iou_threshold: Array) -> Array:
    return suppressed(boxes, scores, integer(max_output_size), number(iou_threshold))[0]


@kernel("NonMaxSuppressionV3")
def non_max_suppression_v3(
    boxes: Array, scores: Array, max_output_size: Array, iou_threshold: Array, score_threshold: Array
) -> Array:
    return suppressed(boxes, scores, integer(max_output_size), number(iou_threshold), number(score_threshold))[0]


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
    limit = integer(max_output_size)
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
    limit = integer(max_output_size)
    kept, marks = suppressed(
        boxes, scores, limit, number(iou_threshold), number(score_threshold), number(soft_nms_sigma)
    )
    padded = pad_to_max_output_size
    return _filled(kept, limit, padded), _filled(marks, limit, padded), np.array(kept.size, dtype=np.int32)


@kernel("NonMaxSuppressionWithOverlaps")
def non_max_suppression_with_overlaps(
    overlaps: Array, scores: Array, max_output_size: Array, overlap_threshold: Array, score_threshold: Array
) -> Array:
    """As above, with the overlap of every pair given."""
    limit, threshold, least = integer(max_output_size), number(overlap_threshold), number(score_threshold)
    kept: list[int] = []
    for index in np.argsort(-scores, kind="stable").tolist():
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
    each, total = integer(max_output_size_per_class), integer(max_total_size)
    threshold, least = number(iou_threshold), number(score_threshold)
    batch, _, classes = scores.shape
    size = min(total, each * classes) if pad_per_class else total
    out_boxes = np.zeros(reserve((batch, size, 4), FLOAT), dtype=FLOAT)
    out_scores, out_classes = np.zeros((batch, size), dtype=FLOAT), np.zeros((batch, size), dtype=FLOAT)
    counts = np.zeros(batch, dtype=np.int32)
    for entry in range(batch):
        found: list[tuple[float, int, int]] = []
        for label in range(classes):
            mine = boxes[entry, :, label if boxes.shape[2] > 1 else 0]
            kept, marks = suppressed(mine, scores[entry, :, label], each, threshold, least)
            found += [(-float(mark), label, int(index)) for mark, index in zip(marks, kept, strict=True)]
        found.sort(key=lambda item: item[0])
        for place, (negative, label, index) in enumerate(found[:size]):
            box = boxes[entry, index, label if boxes.shape[2] > 1 else 0]
            out_boxes[entry, place] = np.clip(box, 0, 1) if clip_boxes else box
            out_scores[entry, place], out_classes[entry, place] = -negative, label
        counts[entry] = min(len(found), size)
    return out_boxes, out_scores, out_classes, counts
