"""Lowerings of parts by position, and of their gradients."""

from __future__ import annotations

import math

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.op_traits import slice_masks
from pocketgraph.kernels.windows import Window
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import MOVED, lowers
from pocketgraph.litert.lowerings.pieces import DEEPEST, MOST_PADDED, cut, pad
from pocketgraph.litert.lowerings.sliding import at_their_places
from pocketgraph.litert.program import Value

FEW_PLACES = 4  # along an axis: GATHER copies so many runs sooner than slices are cut and joined


@lowers("Slice", takes=MOVED)
def slice_(emit: Emit, node: Node, source: Value) -> Value:
    begin = [int(b) for b in emit.static(1, "where the slice begins")]
    size = [int(s) for s in emit.static(2, "the size of the slice")]
    size = [n - b if s == -1 else s for n, b, s in zip(source.shape, begin, size, strict=True)]
    return cut(emit, source, begin, size, always=emit.is_kept)


@lowers("StridedSlice", takes=MOVED)
def strided_slice(emit: Emit, node: Node, source: Value) -> Value:
    starts, sizes, steps = slice_of(emit, node, source.shape)
    reversed_axes = [axis for axis, step in enumerate(steps) if step < 0 and sizes[axis] > 1]
    for axis in range(len(steps)):
        if axis in reversed_axes:
            starts[axis] = source.shape[axis] - 1 - starts[axis]
        steps[axis] = abs(steps[axis])
    turned = _reversed(emit, source, reversed_axes)
    return emit.reshape(cut(emit, turned, starts, sizes, steps, always=emit.is_kept), emit.output()[1])


def slice_of(emit: Emit, node: Node, shape: tuple[int, ...]) -> tuple[list[int], list[int], list[int]]:
    """``_spelled_out`` by the node's inputs 1 to 3: where it begins and ends, and its strides."""
    begin, end, strides = (
        [int(x) for x in np.asarray(emit.static(index, what)).reshape(-1)]
        for index, what in ((1, "where the slice begins"), (2, "where the slice ends"), (3, "the strides"))
    )
    return _spelled_out(emit, node, shape, begin, end, strides)


def _spelled_out(
    emit: Emit, node: Node, shape: tuple[int, ...], begin: list[int], end: list[int], strides: list[int]
) -> tuple[list[int], list[int], list[int]]:
    """First index, count and step for every axis of the source; axes to be dropped have count 1.

    Source of the rules: the op's documentation (tf.strided_slice).
    """
    masks = slice_masks(node.attr)
    named = sum(1 for i in range(len(begin)) if not (masks["new_axis"] >> i & 1 and not masks["ellipsis"] >> i & 1))
    named -= 1 if masks["ellipsis"] else 0
    starts: list[int] = []
    sizes: list[int] = []
    steps: list[int] = []

    def take(count: int) -> None:
        for _ in range(count):
            sizes.append(shape[len(starts)])
            starts.append(0)
            steps.append(1)

    for i in range(len(begin)):
        if masks["ellipsis"] >> i & 1:
            take(len(shape) - named)
            continue
        if masks["new_axis"] >> i & 1:
            continue
        if len(starts) >= len(shape):
            raise emit.unsupported("more indices than dimensions")
        length = shape[len(starts)]
        if strides[i] == 0 or (strides[i] < 0 and masks["shrink_axis"] >> i & 1):
            raise emit.unsupported(f"a stride of {strides[i]}")
        if masks["shrink_axis"] >> i & 1:
            index = begin[i] + length if begin[i] < 0 else begin[i]
            if not 0 <= index < length:
                raise emit.unsupported(f"the index {begin[i]} is outside of {length} elements")
            chosen = range(index, index + 1)
        else:
            window = slice(
                None if masks["begin"] >> i & 1 else begin[i], None if masks["end"] >> i & 1 else end[i], strides[i]
            )
            chosen = range(length)[window]
        starts.append(chosen.start)
        sizes.append(len(chosen))
        steps.append(chosen.step)
    take(len(shape) - len(starts))
    return starts, sizes, steps


@lowers("ReverseV2", takes=MOVED)
def reverse(emit: Emit, node: Node, source: Value) -> Value:
    return _reversed(emit, source, sorted(emit.axes(1, len(source.shape))))


def _reversed(emit: Emit, value: Value, axes: list[int]) -> Value:
    for axis in axes:
        value = emit.add("REVERSE_V2", [value, emit.const([axis], np.int32)], value.shape)
    return value


@lowers("Roll", takes=MOVED)
def roll(emit: Emit, node: Node, value: Value) -> Value:
    """
    Given:   x = Placeholder(dtype=float, shape=[8])
             y = Roll(x, 1, 0, T=float)
    Result:  y = CONCATENATION(SLICE(x, [7], [1]), SLICE(x, [0], [7]))
    """
    shape, axes = value.shape, emit.axes(2, len(value.shape))
    shifts = np.asarray(emit.static(1, "how far to roll")).reshape(-1)
    if len(shifts) != len(axes):
        raise emit.unsupported(f"{len(shifts)} shifts for {len(axes)} axes")
    for axis, shift in zip(axes, shifts.tolist(), strict=True):
        length, is_deep = shape[axis], len(shape) > DEEPEST
        last = shift % length if length else 0
        if not last:
            continue
        if length <= FEW_PLACES:
            places = emit.const(np.roll(np.arange(length, dtype=np.int32), last))
            value = emit.add("GATHER", [value, places], shape, axis=axis, batch_dims=0)
            continue
        at = 1 if is_deep else axis
        whole = (math.prod(shape[:axis]), length, math.prod(shape[axis + 1 :])) if is_deep else shape
        value, parts = emit.reshape(value, whole), []
        for begin, size in ((length - last, last), (0, length - last)):
            begins, sizes = [0] * len(whole), list(whole)
            begins[at], sizes[at] = begin, size
            parts.append(cut(emit, value, begins, sizes))
        value = emit.reshape(emit.concatenated(parts, at), shape)
    return value


@lowers("ReverseSequence", takes=("float", "int32", "int64", "uint8", "int16"))
def reversed_in_part(emit: Emit, node: Node, source: Value) -> Value:
    lengths = emit.require(emit.input(1), "int32", "int64")
    sequence, batch = int(node.attr("seq_dim", 0)), int(node.attr("batch_dim", 0))
    if not 0 <= sequence < len(source.shape):
        raise emit.unsupported(f"sequences along the axis {sequence} of {list(source.shape)}")
    allowed = np.arange(source.shape[sequence] + 1, dtype=lengths.dtype.numpy)
    if lengths.constant is None:  # of all but the first, LiteRT would read memory behind the tensor; GATHER refuses
        lengths = emit.add("GATHER", [emit.const(allowed), lengths], lengths.shape, axis=0, batch_dims=0)
    elif not np.isin(lengths.constant.numpy(), allowed).all():
        raise emit.unsupported(f"a length that is none of 0 to {allowed[-1]}")
    return emit.add("REVERSE_SEQUENCE", [source, lengths], source.shape, sequence_axis=sequence, batch_axis=batch)


@lowers("StridedSliceGrad")
def of_a_slice(emit: Emit, node: Node) -> Value:
    """What was cut out, at its places, with zeros around and between."""
    shape = tuple(int(size) for size in np.asarray(emit.static(0, "the shape")).reshape(-1))
    gradient = emit.require(emit.input(4), "float", "int32", "int64")
    starts, sizes, steps = slice_of(emit, node, shape)
    if gradient.size != math.prod(sizes) or len(shape) > MOST_PADDED:
        raise emit.unsupported(f"a gradient of {list(gradient.shape)} for a slice of {sizes}")
    value = emit.reshape(gradient, sizes)
    for axis, (step, size) in enumerate(zip(steps, sizes, strict=True)):
        if step == 1 or size == 1:
            continue
        if step < 1 or value.dtype is not FLOAT:
            raise emit.unsupported(f"the gradient of a slice with the stride {step} of {value.dtype.name}")
        sizes[axis] = (size - 1) * step + 1
        flat = emit.reshape(value, (math.prod(sizes[:axis]), size, math.prod(sizes[axis + 1 :])))
        value = emit.reshape(at_their_places(emit, [flat], Window(1, step, 1, 0, 0, size), sizes[axis]), sizes)
    pairs = [(start, length - start - size) for start, size, length in zip(starts, sizes, shape, strict=True)]
    return pad(emit, value, np.array(pairs, np.int32).reshape(-1, 2))
