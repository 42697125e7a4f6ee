"""Parts of a tensor: Slice and StridedSlice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.exporting.onnx.channel_order import first_axis
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.layout import is_first
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.graph import Node, Shape
from pocketgraph.graph.dtype import BOOL
from pocketgraph.graph.op_traits import slice_masks
from pocketgraph.litert.operands import KNOWN

FAR = 2**31 - 1
"""Beyond the end of every axis."""


@converts("Slice")
def slice_of(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    begins, sizes = emit.static_or_none(1), emit.static_or_none(2)
    _, shape = emit.output()
    if begins is not None and sizes is not None:
        starts = [int(begin) for begin in begins]
        ends = [FAR if size == -1 else begin + int(size) for begin, size in zip(starts, sizes, strict=True)]
        return cut(emit, value, starts, ends, [1] * len(starts), shape)
    start, size = emit.as_int64(emit.input(1)), emit.as_int64(emit.input(2))
    end = emit.op("Add", [start, size], start.shape)
    if sizes is None or (np.asarray(sizes) == -1).any():
        to_the_end = emit.op("Less", [size, emit.ints([0])], size.shape, BOOL)
        end = emit.op("Where", [to_the_end, emit.ints([FAR]), end], size.shape, end.dtype)
    return emit.op("Slice", [value, start, end], shape)


def cut(
    emit: OnnxEmit, value: OnnxValue, starts: Sequence[int], ends: Sequence[int], steps: Sequence[int], shape: Shape
) -> OnnxValue:
    """A part of a tensor whose limits are known; in whichever layout it is made."""
    axes = [
        axis for axis in range(len(starts))
        if not (starts[axis] == 0 and steps[axis] == 1 and (ends[axis] >= FAR or ends[axis] == _size(value, axis)))
    ]  # fmt: skip
    if not axes:
        return value
    source, within = value, axes
    if is_first(value) and value.first is not None:
        source, within = value.first, [first_axis(axis, len(starts)) for axis in axes]
    operands = [source, *(emit.ints([part[axis] for axis in axes]) for part in (starts, ends)), emit.ints(within)]
    if any(steps[axis] != 1 for axis in axes):
        operands.append(emit.ints([steps[axis] for axis in axes]))
    if source is value:
        return emit.op("Slice", operands, shape)
    made = emit.op("Slice", operands)
    rank = len(starts)
    if shape.dims is not None and len(shape) == rank:
        made.shape = Shape([shape[axis] for axis in (0, rank - 1, *range(1, rank - 1))])
    return emit.from_first(made, shape)


def _size(value: OnnxValue, axis: int) -> int | None:
    return None if value.shape.dims is None or axis >= len(value.shape) else value.shape[axis]


@converts("StridedSlice")
def strided_slice(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    """Indices as Python has them: each is a range, a place, a new axis or an ellipsis, as the masks say."""
    masks = slice_masks(node.attr)
    begins, ends, steps = (emit.static_or_none(index) for index in (1, 2, 3))
    if steps is None:
        raise emit.unsupported(f"its steps must be {KNOWN}, not computed")
    count = len(np.asarray(steps).reshape(-1))
    rank = value.rank
    if rank is None and masks["ellipsis"]:
        raise emit.unsupported("the rank of its input is not known; state the shapes of the model's inputs")
    new_axes: list[int] = []
    dropped: list[int] = []
    rows: list[tuple[int, int]] = []  # (the axis of the input, the index into begin, end and strides)
    axis = place = 0
    taken = sum(1 for index in range(count) if not (masks["new_axis"] | masks["ellipsis"]) >> index & 1)
    for index in range(count):
        bit = 1 << index
        if masks["ellipsis"] & bit:
            skipped = (rank or 0) - taken
            axis += skipped
            place += skipped
        elif masks["new_axis"] & bit:
            new_axes.append(place)
            place += 1
        else:
            rows.append((axis, index))
            if masks["shrink_axis"] & bit:
                dropped.append(axis)
            else:
                place += 1
            axis += 1
    if begins is not None and ends is not None:
        found = _known_ranges(emit, value, rows, masks, begins, ends, steps)
    else:
        found = _computed_ranges(emit, value, rows, masks, np.asarray(steps).reshape(-1).tolist())
    if is_first(found) and not new_axes and found.first is not None and 0 not in dropped and dropped:
        size = emit.rank(found)
        if size - 1 in dropped or size - len(dropped) == 2:
            return emit.squeeze(found.first, sorted(first_axis(axis, size) for axis in dropped))
        if size - len(dropped) >= 3:
            inner = emit.squeeze(found.first, sorted(first_axis(axis, size) for axis in dropped))
            return emit.from_first(inner)
    return emit.unsqueeze(emit.squeeze(found, dropped), new_axes)


def _known_ranges(
    emit: OnnxEmit, value: OnnxValue, rows: Sequence[tuple[int, int]], masks: dict[str, int], begins: object,
    ends: object, steps: object,
) -> OnnxValue:  # fmt: skip
    first, last, by = (np.asarray(part).reshape(-1).tolist() for part in (begins, ends, steps))
    rank = value.rank if value.rank is not None else max((axis for axis, _ in rows), default=-1) + 1
    start, end, step = [0] * rank, [FAR] * rank, [1] * rank
    then = [1] * rank  # the steps of a second cut
    sizes: list[int | None] = [None] * rank if value.shape.dims is None else list(value.shape)
    for axis, index in rows:
        bit = 1 << index
        step[axis] = by[index]
        if masks["shrink_axis"] & bit:
            start[axis], step[axis] = first[index], 1
            end[axis] = FAR if first[index] == -1 else first[index] + 1
            sizes[axis] = 1
            continue
        backward = by[index] < 0
        start[axis] = (FAR if backward else 0) if masks["begin"] & bit else first[index]
        end[axis] = (-FAR - 1 if backward else FAR) if masks["end"] & bit else last[index]
        size = sizes[axis]
        if size is not None:
            whole = slice(None if masks["begin"] & bit else first[index], None if masks["end"] & bit else last[index])
            sizes[axis] = len(range(*slice(whole.start, whole.stop, by[index]).indices(size)))
        if not backward or masks["begin"] & bit or first[index] >= -1:
            continue
        # ONNX begins at 0 where a way back begins before the first element, of which TensorFlow takes none.
        if sizes[axis] == 0:
            start[axis] = end[axis] = 0
            step[axis] = 1
        elif size is None and end[axis] < 0:
            start[axis] = 0 if masks["end"] & bit else FAR if last[index] == -1 else last[index] + 1
            end[axis], step[axis], then[axis] = first[index] + 1, 1, by[index]
    shape = Shape(sizes) if value.shape.dims is not None else Shape(None)
    found = cut(emit, value, start, end, step, shape)
    back = [each != 1 for each in then]
    return cut(emit, found, [FAR * b for b in back], [FAR - (2 * FAR + 1) * b for b in back], then, shape)


def _computed_ranges(
    emit: OnnxEmit, value: OnnxValue, rows: Sequence[tuple[int, int]], masks: dict[str, int], steps: Sequence[int]
) -> OnnxValue:
    """Ranges whose limits are computed, in part or whole; those that a mask gives are put in their places."""
    begin, end = emit.as_int64(emit.input(1)), emit.as_int64(emit.input(2))
    if not rows:
        return value
    starts, ends = [], []
    for _, index in rows:
        bit = 1 << index
        backward = steps[index] < 0
        shrinks = bool(masks["shrink_axis"] & bit)
        own = emit.slice(begin, 0, index, index + 1)
        open_start = masks["begin"] & bit and not shrinks
        starts.append(emit.ints([FAR if backward else 0]) if open_start else own)
        if shrinks:
            after = emit.op("Add", [own, emit.ints([1])], [1])
            is_last = emit.op("Equal", [own, emit.ints([-1])], [1], BOOL)
            ends.append(emit.op("Where", [is_last, emit.ints([FAR]), after], [1], after.dtype))
        elif masks["end"] & bit:
            ends.append(emit.ints([-FAR - 1 if backward else FAR]))
        else:
            ends.append(emit.slice(end, 0, index, index + 1))
    operands = [value, emit.concat(starts), emit.concat(ends), emit.ints([axis for axis, _ in rows])]
    by = [1 if masks["shrink_axis"] >> index & 1 else int(steps[index]) for _, index in rows]
    if any(step != 1 for step in by):
        operands.append(emit.ints(by))
    shape: list[int | None] | None = None
    if value.shape.dims is not None:
        shape = list(value.shape)
        for axis, index in rows:
            shape[axis] = 1 if masks["shrink_axis"] >> index & 1 else None
    return emit.op("Slice", operands, shape)
