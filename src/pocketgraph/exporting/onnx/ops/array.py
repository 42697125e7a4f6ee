"""Shapes changed, tensors joined and split, padded, repeated and counted out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.exporting.onnx.channel_order import first_axis, to_first, to_last
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.layout import channels_first, is_first
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.graph import Node, Shape
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32, INT64
from pocketgraph.litert.constant import Array
from pocketgraph.litert.operands import KNOWN, attr_list, attr_text


@converts("Reshape", "QuantizedReshape")
def reshape(emit: OnnxEmit, node: Node, value: OnnxValue) -> None:
    _, shape = emit.output()
    if node.op == "QuantizedReshape":
        emit.result(emit.input(2), 1)
        emit.result(emit.input(3), 2)
    wanted = None if shape.dims is None else list(shape)
    numbers = emit.numbers(1)
    if wanted is None or wanted.count(None) > 1:
        wanted = wanted if numbers is None or -1 in numbers else numbers
    if is_first(value) and value.first is not None and _is_flat(value.shape):
        value = value.first  # nothing but channels: both forms have the same order
    if wanted is not None and wanted.count(None) <= 1 and (0 not in wanted or shape.is_known):
        emit.result(emit.reshape(value, wanted))
        return
    if numbers is not None and numbers.count(None) + numbers.count(-1) <= 1 and 0 not in numbers:
        emit.result(emit.op("Reshape", [value, emit.ints([-1 if n is None else n for n in numbers])], shape))
        return
    emit.result(emit.op("Reshape", [value, emit.as_int64(emit.input(1))], shape, **allow_zero(emit)))


def allow_zero(emit: OnnxEmit) -> dict[str, Any]:
    """An empty axis is meant where a computed shape has a 0."""
    return {"allowzero": 1} if emit.opset >= 14 else {}


def _is_flat(shape: Shape) -> bool:
    return shape.dims is not None and (all(size == 1 for size in shape.dims[1:-1]) or shape.dims[-1] == 1)


@converts("Transpose", "ConjugateTranspose")
def transpose(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    rank = emit.rank(value)
    order = [axis % rank for axis in emit.static(1, "the permutation").reshape(-1).tolist()] if rank else []
    if rank >= 3 and order == to_first(rank) and value.constant is None:
        return channels_first(emit, value)
    elif rank >= 3 and order == to_last(rank) and value.constant is None:
        return emit.from_first(value)
    else:
        return emit.transpose(value, order)


@converts("ExpandDims")
def expand_dims(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    axis = int(emit.static(1, "the dimension").reshape(-1)[0])
    if value.rank is None and axis < 0:
        raise emit.unsupported("the rank of its input is not known; state the shapes of the model's inputs")
    rank = value.rank or 0
    axis = axis + rank + 1 if axis < 0 else axis
    if is_first(value) and value.first is not None and 0 < axis < rank:
        return emit.from_first(emit.unsqueeze(value.first, [axis + 1]))
    else:
        return emit.unsqueeze(value, [axis])


@converts("Squeeze")
def squeeze(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    named = attr_list(node, "squeeze_dims") or attr_list(node, "axis")
    if not named and (value.shape.dims is None or None in value.shape):
        return emit.op("Squeeze", [value], None)  # ONNX, too, then drops what has size 1 when it runs
    rank = emit.rank(value)
    axes = sorted(axis % rank for axis in named)
    if not axes:
        axes = [axis for axis, size in enumerate(value.shape) if size == 1]
    if is_first(value) and value.first is not None and 0 not in axes:
        inner = sorted(first_axis(axis, rank) for axis in axes)
        if rank - 1 not in axes and rank - len(axes) >= 3:
            return emit.from_first(emit.squeeze(value.first, inner))
        if rank - 1 in axes or rank - len(axes) == 2:
            return emit.squeeze(value.first, inner)
    return emit.squeeze(value, axes)


@converts("Pack", "ParallelConcat")
def pack(emit: OnnxEmit, node: Node) -> OnnxValue:
    values = emit.inputs()
    if node.op == "ParallelConcat":
        return emit.concat(values, 0)
    axis = int(node.attr("axis", 0))
    if axis < 0:
        axis += emit.rank(values[0]) + 1
    return emit.concat([emit.unsqueeze(value, [axis]) for value in values], axis)


@converts("Unpack")
def unpack(emit: OnnxEmit, node: Node, value: OnnxValue) -> None:
    rank = emit.rank(value)
    axis, count = int(node.attr("axis", 0)) % rank, int(node.attr("num", 0))
    for port, part in enumerate(divided(emit, value, axis, [1] * count)):
        emit.result(emit.squeeze(part, [axis]), port)


def divided(emit: OnnxEmit, value: OnnxValue, axis: int, sizes: list[int]) -> list[OnnxValue]:
    """A tensor cut into parts of these sizes."""
    if len(sizes) == 1:
        return [value]
    shapes: list[list[int | None] | None] = []
    for size in sizes:
        shape = None if value.shape.dims is None else list(value.shape)
        if shape is not None:
            shape[axis] = size
        shapes.append(shape)
    return emit.ops("Split", [value, emit.ints(sizes)], len(sizes), shapes, axis=axis)


@converts("ConcatV2", "Concat")
def concat(emit: OnnxEmit, node: Node) -> OnnxValue:
    place = emit.count - 1 if node.op == "ConcatV2" else 0
    return joined(emit, emit.inputs(0, place) if node.op == "ConcatV2" else emit.inputs(1), place)


def joined(emit: OnnxEmit, values: Sequence[OnnxValue], place: int) -> OnnxValue:
    """Values one after another along the axis that operand ``place`` tells."""
    rank = max((value.rank for value in values if value.rank is not None), default=None)
    if rank is None:
        raise emit.unsupported("the ranks of its inputs are not known; state the shapes of the model's inputs")
    axis = emit.axes(place, rank)[0]
    if any(is_first(value) for value in values) and all(value.rank == rank for value in values):
        firsts = [channels_first(emit, value) for value in values]
        return emit.from_first(emit.concat(firsts, first_axis(axis, rank)))
    return emit.concat(values, axis)


@converts("Split", "SplitV")
def split(emit: OnnxEmit, node: Node) -> None:
    place = 0 if node.op == "Split" else 2
    value = emit.input(1 - place // 2)
    rank = emit.rank(value)
    axis, count = emit.axes(place, rank)[0], int(node.attr("num_split", 1))
    size = value.shape[axis]
    sizes: list[int] = []
    if node.op == "SplitV":
        sizes = [int(n) for n in emit.static(1, "the sizes")]
        if -1 in sizes:
            if size is None:
                raise emit.unsupported(f"the length of the axis that it splits must be {KNOWN}")
            sizes[sizes.index(-1)] = size - sum(sizes) - 1
    elif size is not None:
        sizes = [size // count] * count
    first = value.first if is_first(value) and axis > 0 else None
    source, within = (value, axis) if first is None else (first, first_axis(axis, rank))
    if count == 1:
        parts = [source]
    elif sizes:
        parts = divided(emit, source, within, sizes)
    elif emit.opset >= 18:
        parts = emit.ops("Split", [source], count, axis=within, num_outputs=count)
    else:
        parts = emit.ops("Split", [source], count, axis=within)
    for port, part in enumerate(parts):
        emit.result(part if first is None else emit.from_first(part), port)


@converts("Tile", "BroadcastTo")
def repeated(emit: OnnxEmit, node: Node) -> OnnxValue:
    code = "Tile" if node.op == "Tile" else "Expand"
    return emit.op(code, [emit.input(0), emit.as_int64(emit.input(1))], emit.output()[1])


@converts("Pad", "PadV2", "MirrorPad")
def pad(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    shape = emit.output()[1]
    mode = attr_text(node, "mode").lower()
    number = emit.input(2) if node.op == "PadV2" else None
    pairs = emit.static_or_none(1)
    if mode == "symmetric":
        return symmetric(emit, value, np.asarray(emit.static(1, "the padding")))
    attrs: dict[str, Any] = {"mode": "reflect"} if mode == "reflect" else {}
    if pairs is None:
        amounts = emit.op("Transpose", [emit.as_int64(emit.input(1))], None, perm=[1, 0])
        return emit.op("Pad", [value, emit.reshape(amounts, [-1]), number], shape, **attrs)
    pairs = np.asarray(pairs).reshape(-1, 2)
    if not len(pairs):
        return value
    if is_first(value) and value.first is not None:
        pairs = pairs[to_first(len(pairs))]
        made = emit.op("Pad", [value.first, emit.ints(pairs.T.reshape(-1)), number], None, **attrs)
        made.shape = Shape([shape[axis] for axis in to_first(len(pairs))]) if shape.dims is not None else shape
        return emit.from_first(made, shape)
    return emit.op("Pad", [value, emit.ints(pairs.T.reshape(-1)), number], shape, **attrs)


def symmetric(emit: OnnxEmit, value: OnnxValue, pairs: Array) -> OnnxValue:
    """A border that mirrors the edge too, which ONNX's Pad has not: rows are gathered."""
    for axis, (before, after) in enumerate(pairs.reshape(-1, 2).tolist()):
        if not before and not after:
            continue
        size = emit.known_size(value, axis, "the size of what it mirrors")
        places = np.pad(np.arange(size), (before, after), mode="symmetric")
        shape = list(value.shape)
        shape[axis] = len(places)
        value = emit.op("Gather", [value, emit.ints(places.tolist())], shape, axis=axis)
    return value


@converts("ReverseV2", "Reverse")
def reverse(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    rank = emit.rank(value)
    if node.op == "Reverse":
        axes = np.flatnonzero(emit.static(1, "the dimensions")).tolist()
    else:
        axes = emit.axes(1, rank)
    if not axes:
        return value
    ends = [np.iinfo(np.int64).min] * len(axes)
    steps = [-1] * len(axes)
    operands = [value, emit.ints([-1] * len(axes)), emit.ints(ends), emit.ints(axes), emit.ints(steps)]
    return emit.op("Slice", operands, value.shape)


@converts("Roll")
def roll(emit: OnnxEmit, node: Node, value: OnnxValue, shift: OnnxValue) -> OnnxValue:
    """Along each axis a Gather of the places, which begin anew at the end; several shifts of an axis add up."""
    rank, made = emit.rank(value), value
    shift = emit.reshape(emit.as_int64(shift), [-1])
    for at, axis in enumerate(np.asarray(emit.static(2, "the axes")).reshape(-1).tolist()):
        axis %= rank
        size = emit.reshape(emit.op("Gather", [emit.dims(value), emit.ints([axis])]), [])
        by = emit.op("Gather", [shift, emit.ints([at])])
        places = emit.op("Range", [emit.like(0, size), size, emit.like(1, size)])
        by_one = emit.op("Max", [size, emit.like(1, size)])  # no number is divided by 0, not even to no remainders
        places = emit.op("Mod", [emit.op("Sub", [places, by]), by_one])
        made = emit.op("Gather", [made, places], value.shape, axis=axis)
    return made


@converts("ReverseSequence")
def reverse_sequence(emit: OnnxEmit, node: Node, value: OnnxValue, lengths: OnnxValue) -> OnnxValue:
    """ONNX reverses along one of the first two axes: others are moved there."""
    rank = emit.rank(value)
    time, batch = int(node.attr("seq_dim", 0)), int(node.attr("batch_dim", 0))
    order = [time, batch, *(axis for axis in range(rank) if axis not in (time, batch))]
    moved = emit.transpose(value, order)
    made = emit.op("ReverseSequence", [moved, emit.as_int64(lengths)], moved.shape, time_axis=0, batch_axis=1)
    return emit.transpose(made, np.argsort(order).tolist())


@converts("Range")
def number_range(emit: OnnxEmit, node: Node) -> OnnxValue:
    _, shape = emit.output()
    return emit.op("Range", [emit.reshape(value, []) for value in emit.inputs()], shape)


@converts("LinSpace")
def line(emit: OnnxEmit, node: Node, start: OnnxValue, stop: OnnxValue, count: OnnxValue) -> OnnxValue:
    steps = emit.cast(emit.op("Range", [emit.like(0, count), count, emit.like(1, count)]), start.dtype)
    last = emit.op(
        "Max", [emit.op("Sub", [emit.cast(count, start.dtype), emit.like(1, start)], []), emit.like(1, start)]
    )
    step = emit.op("Div", [emit.op("Sub", [stop, start], []), last], [])
    return emit.op("Add", [emit.op("Mul", [steps, step], [None]), start], emit.output()[1])


@converts("OneHot")
def one_hot(emit: OnnxEmit, node: Node) -> OnnxValue:
    indices, depth, on, off = emit.inputs()
    dtype, shape = emit.output()
    computed = FLOAT if dtype.is_floating else INT64  # with which ONNX Runtime computes it for indices of 64 bits
    values = emit.concat([emit.reshape(emit.cast(value, computed), [1]) for value in (off, on)])
    is_one = indices.rank == 0  # ONNX has no OneHot of a scalar
    places = emit.vector(indices) if is_one else emit.as_int64(indices)
    # ONNX counts negative indices from the end, TensorFlow gives them no place
    is_none = emit.op("Less", [places, emit.like(0, places)], places.shape, BOOL)
    beyond = emit.reshape(emit.as_int64(depth), [])
    places = emit.op("Where", [is_none, beyond, places], places.shape, INT64)
    rows = [1, *shape] if is_one and shape.dims is not None else shape
    axis = -1 if is_one else int(node.attr("axis", -1))
    made = emit.op("OneHot", [places, emit.vector(depth), values], rows, computed, axis=axis)
    return emit.cast(emit.squeeze(made, [0]) if is_one else made, dtype)


@converts("InvertPermutation")
def invert_permutation(emit: OnnxEmit, node: Node) -> OnnxValue:
    value = emit.as_int64(emit.input(0))
    count = emit.dim(value, 0)
    places = emit.count_up(count, value.shape)
    zeros = emit.op("Sub", [value, value], value.shape)
    made = emit.op("ScatterElements", [zeros, value, places], value.shape)
    return emit.cast(made, node.dtype("T", INT32))
