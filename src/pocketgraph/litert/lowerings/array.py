"""Lowerings of ops that move elements without computing: reshaping, joining, cutting, gathering, padding."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node, Shape
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32, INT64
from pocketgraph.litert.emitter import Emit, attr_text
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.nn import mirror_pad
from pocketgraph.litert.lowerings.pieces import DEEPEST, cut, pad
from pocketgraph.litert.program import Value
from pocketgraph.litert.statics import PASS_THROUGH

MOVED = ("float", "int32", "int64", "uint8", "int8", "int16", "bool")
"""Element types that LiteRT's data-moving operators take."""

MOST_PADDED = 4  # dimensions that the padding kernels take
MASKS = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")


@lowers(*sorted(PASS_THROUGH))
def identity(emit: Emit, node: Node) -> None:
    source, wanted = emit.input(0), node.attr("shape")
    if node.op == "EnsureShape" and isinstance(wanted, Shape) and not wanted.fits(source.shape):
        raise emit.unsupported(f"the shape {list(source.shape)}, which is not {wanted}")
    emit.result(source)


@lowers("IdentityN")
def identities(emit: Emit, node: Node) -> None:
    for port, value in enumerate(emit.inputs()):
        emit.result(value, port)


@lowers("NoOp")
def nothing(emit: Emit, node: Node) -> None:
    """Only orders execution, which a segment does by its data."""


@lowers("Reshape", "ExpandDims", "Squeeze")
def reshape(emit: Emit, node: Node) -> None:
    emit.result(emit.reshape(emit.require(emit.input(0), *MOVED), emit.output()[1]))


@lowers("Shape", "ShapeN", "Size", "Rank")
def shape_facts(emit: Emit, node: Node) -> None:
    """The sizes are known, so these are constants."""
    for port in range(len(node.data_inputs)):
        dtype = emit.output(port)[0]
        sizes = emit.input(port).shape
        answer = {"Size": int(np.prod(sizes, dtype=np.int64)), "Rank": len(sizes)}.get(node.op, list(sizes))
        emit.result(emit.const(answer, dtype.numpy), port)


@lowers("ZerosLike", "OnesLike")
def filled_like(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), *MOVED)
    emit.result(emit.constant_like(source, int(node.op == "OnesLike")))


@lowers("Fill")
def fill(emit: Emit, node: Node) -> None:
    value, shape = emit.require(emit.input(1), *MOVED), emit.output()[1]
    emit.result(_broadcast(emit, value, shape))


@lowers("BroadcastTo")
def broadcast_to(emit: Emit, node: Node) -> None:
    emit.result(_broadcast(emit, emit.require(emit.input(0), *MOVED), emit.output()[1]))


def _broadcast(emit: Emit, value: Value, shape: tuple[int, ...]) -> Value:
    """``value`` in a larger shape, as copies; LiteRT's BROADCAST_TO goes element by element, which takes 4 to 80 times
    as long."""
    if value.shape == shape:
        return value
    if not len(value.shape) <= len(shape) <= DEEPEST or not shape:
        raise emit.unsupported(f"broadcasting from rank {len(value.shape)} to {len(shape)}")
    own = (1,) * (len(shape) - len(value.shape)) + value.shape
    if any(size not in (1, target) for size, target in zip(own, shape, strict=True)):
        raise emit.unsupported(f"{list(value.shape)} does not broadcast to {list(shape)}")
    value = emit.reshape(value, own)
    if own[-1] < shape[-1] and value.dtype is FLOAT:  # copies of single numbers are quicker as products
        value = emit.add(
            "MUL", [value, emit.const(np.ones(shape[-1:], np.float32))], (*own[:-1], shape[-1]), activation=""
        )
    times = [target // size for size, target in zip(value.shape, shape, strict=True)]
    return value if max(times) == 1 else emit.add("TILE", [value, emit.const(times, np.int32)], shape)


@lowers("Transpose")
def transpose(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), *MOVED)
    order = emit.axes(1, len(source.shape), "the permutation")
    if sorted(order) != list(range(len(source.shape))) or len(order) > DEEPEST:
        raise emit.unsupported(f"the permutation {order}")
    emit.result(emit.transpose(source, order))


@lowers("ConcatV2", "Concat")
def concat(emit: Emit, node: Node) -> None:
    last = len(node.data_inputs) - 1
    where, parts = (last, emit.inputs(0, last)) if node.op == "ConcatV2" else (0, emit.inputs(1))
    parts = [emit.require(part, *MOVED) for part in parts]
    shape = emit.output()[1]
    (axis,) = emit.axes(where, len(shape))
    if len(parts) == 1:
        emit.result(parts[0])
        return
    emit.result(emit.add("CONCATENATION", list(parts), shape, axis=axis, activation=""))


@lowers("Pack")
def pack(emit: Emit, node: Node) -> None:
    parts = [emit.require(part, *MOVED) for part in emit.inputs()]
    shape = emit.output()[1]
    axis = int(node.attr("axis", 0)) % len(shape)
    if len(parts) == 1:
        emit.result(emit.reshape(parts[0], shape))
        return
    if parts[0].dtype is BOOL:  # which LiteRT joins, but does not pack
        thin = (*shape[:axis], 1, *shape[axis + 1 :])
        parts = [emit.reshape(part, thin) for part in parts]
        emit.result(emit.add("CONCATENATION", list(parts), shape, axis=axis, activation=""))
        return
    emit.result(emit.add("PACK", list(parts), shape, values_count=len(parts), axis=axis))


@lowers("Unpack")
def unpack(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), *MOVED)
    rank, axis = len(source.shape), int(node.attr("axis", 0))
    if not -rank <= axis < rank or int(node.attr("num", 0)) != source.shape[axis]:
        raise emit.unsupported(f"{node.attr('num', 0)} parts of {list(source.shape)} along the axis {axis}")
    axis, count = axis % rank, source.shape[axis]
    shape = tuple(size for index, size in enumerate(source.shape) if index != axis)
    if source.dtype is INT64:  # which LiteRT splits, but does not unpack
        _yield_all(emit, [emit.reshape(part, shape) for part in _parts(emit, source, axis, [1] * count)])
        return
    _yield_all(emit, emit.add_many("UNPACK", [source], [(source.dtype, shape)] * count, num=count, axis=axis))


@lowers("Split")
def split(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(1), *MOVED)
    (axis,) = emit.axes(0, len(source.shape))
    count = int(node.attr("num_split", 1))
    if count < 1 or source.shape[axis] % count:
        raise emit.unsupported(f"{source.shape[axis]} elements do not split into {count} equal parts")
    if count == 1:
        emit.result(source)
        return
    if source.dtype is BOOL:  # which LiteRT cuts, but does not split
        _yield_all(emit, _parts(emit, source, axis, [source.shape[axis] // count] * count))
        return
    shape = tuple(size // count if index == axis else size for index, size in enumerate(source.shape))
    operands = [emit.const(axis, np.int32), source]
    _yield_all(emit, emit.add_many("SPLIT", operands, [(source.dtype, shape)] * count, num_splits=count))


@lowers("SplitV")
def split_v(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), *MOVED)
    (axis,) = emit.axes(2, len(source.shape))
    sizes = [int(size) for size in np.asarray(emit.static(1, "the sizes")).reshape(-1)]
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = source.shape[axis] - sum(size for size in sizes if size != -1)
    if sum(sizes) != source.shape[axis] or min(sizes) < 0:
        raise emit.unsupported(f"the sizes {sizes} of {list(source.shape)}")
    if len(sizes) == 1:
        emit.result(source)
        return
    if source.dtype is BOOL:
        _yield_all(emit, _parts(emit, source, axis, sizes))
        return
    shapes = [tuple(part if index == axis else size for index, size in enumerate(source.shape)) for part in sizes]
    operands = [source, emit.const(sizes, np.int32), emit.const(axis, np.int32)]
    _yield_all(emit, emit.add_many("SPLIT_V", operands, [(source.dtype, s) for s in shapes], num_splits=len(sizes)))


def _parts(emit: Emit, value: Value, axis: int, sizes: list[int]) -> list[Value]:
    """Slices of these sizes along an axis, one behind the other."""
    parts, place = [], 0
    for count in sizes:
        begin, size = [0] * len(value.shape), list(value.shape)
        begin[axis], size[axis] = place, count
        parts.append(cut(emit, value, begin, size))
        place += count
    return parts


def _yield_all(emit: Emit, values: list[Value]) -> None:
    for port, value in enumerate(values):
        emit.result(value, port)


@lowers("Slice")
def slice_(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), *MOVED)
    begin = [int(b) for b in emit.static(1, "where the slice begins")]
    size = [int(s) for s in emit.static(2, "the size of the slice")]
    size = [n - b if s == -1 else s for n, b, s in zip(source.shape, begin, size, strict=True)]
    emit.result(cut(emit, source, begin, size))


@lowers("StridedSlice")
def strided_slice(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), *MOVED)
    starts, sizes, steps = slice_of(emit, node, source.shape)
    reversed_axes = [axis for axis, step in enumerate(steps) if step < 0 and sizes[axis] > 1]
    for axis in range(len(steps)):
        if axis in reversed_axes:
            starts[axis] = source.shape[axis] - 1 - starts[axis]
        steps[axis] = abs(steps[axis])
    emit.result(emit.reshape(cut(emit, _reversed(emit, source, reversed_axes), starts, sizes, steps), emit.output()[1]))


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
    masks = {name: int(node.attr(f"{name}_mask", 0)) for name in MASKS}
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


@lowers("ReverseV2")
def reverse(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), *MOVED)
    emit.result(_reversed(emit, source, sorted(emit.axes(1, len(source.shape)))))


def _reversed(emit: Emit, value: Value, axes: list[int]) -> Value:
    for axis in axes:
        value = emit.add("REVERSE_V2", [value, emit.const([axis], np.int32)], value.shape)
    return value


@lowers("Tile")
def tile(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), *MOVED)
    multiples = [int(m) for m in emit.static(1, "the multiples")]
    shape = [size * count for size, count in zip(source.shape, multiples, strict=True)]
    if tuple(shape) == source.shape:
        emit.result(source)
    elif len(shape) <= DEEPEST and all(1 in pair for pair in zip(source.shape, multiples, strict=True)):
        emit.result(_broadcast(emit, source, tuple(shape)))
    else:
        emit.result(emit.add("TILE", [source, emit.const(multiples, np.int32)], shape))


@lowers("Gather", "GatherV2")
def gather(emit: Emit, node: Node) -> None:
    source, indices = emit.require(emit.input(0), *MOVED), emit.require(emit.input(1), "int32", "int64")
    batch = int(node.attr("batch_dims", 0))
    axis = 0 if node.op == "Gather" else emit.axes(2, len(source.shape))[0]
    batch = batch + len(indices.shape) if batch < 0 else batch
    emit.result(emit.add("GATHER", [source, indices], emit.output()[1], axis=axis, batch_dims=batch))


@lowers("GatherNd")
def gather_nd(emit: Emit, node: Node) -> None:
    if node.attr("bad_indices_policy", b"") == b"IGNORE":
        raise emit.unsupported("indices that may point outside")
    source, indices = emit.require(emit.input(0), *MOVED), emit.require(emit.input(1), "int32", "int64")
    emit.result(emit.add("GATHER_ND", [source, indices], emit.output()[1]))


@lowers("OneHot")
def one_hot(emit: Emit, node: Node) -> None:
    indices = emit.require(emit.input(0), "int32", "int64", "uint8", "int8")
    if indices.dtype.size == 1:
        indices = emit.add("CAST", [indices], indices.shape, INT32)
    depth = int(np.asarray(emit.static(1, "the depth")).reshape(-1)[0])
    on, off = (emit.require(value, "float", "int32", "int64", "uint8", "int8", "bool") for value in emit.inputs(2, 4))
    result = emit.add(
        "ONE_HOT",
        [indices, emit.const(depth, np.int32), on, off],
        emit.output()[1],
        on.dtype,
        axis=int(node.attr("axis", -1)),
    )
    emit.result(result)


@lowers("Pad", "PadV2", "MirrorPad")
def padding(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), *MOVED)
    pairs = np.asarray(emit.static(1, "the paddings"), np.int32).reshape(-1, 2)
    if pairs.min(initial=0) < 0 or len(pairs) != len(source.shape) or len(pairs) > MOST_PADDED:
        raise emit.unsupported(f"the paddings {pairs.tolist()}")
    if node.op == "MirrorPad":
        emit.result(mirror_pad(emit, source, pairs, attr_text(node, "mode")))
    elif node.op == "Pad":
        emit.result(pad(emit, source, pairs))
    else:
        fill_value = emit.static(2, "the value padded with")
        emit.result(pad(emit, source, pairs, fill_value.item()))
