"""Lowerings of what hands on, reshapes, transposes, repeats, joins, splits and pads, and of blocks moved."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from pocketgraph.graph import Node, Shape
from pocketgraph.graph.dtype import BOOL, FLOAT, INT64
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.image_layout import data_format, image, yield_image
from pocketgraph.litert.lowering import MOVED, lowers
from pocketgraph.litert.lowerings.pieces import DEEPEST, MOST_PADDED, cut, mirror_pad, pad
from pocketgraph.litert.operands import attr_text
from pocketgraph.litert.program import Value
from pocketgraph.litert.static_values import PASS_THROUGH


@lowers(*sorted(PASS_THROUGH))
def identity(emit: Emit, node: Node) -> Value:
    source, wanted = emit.input(0), node.attr("shape")
    if node.op == "EnsureShape" and isinstance(wanted, Shape) and not wanted.fits(source.shape):
        raise emit.unsupported(f"the shape {list(source.shape)}, which is not {wanted}")
    return source


@lowers("IdentityN", "XlaOptimizationBarrier")
def identities(emit: Emit, node: Node) -> list[Value]:
    return emit.inputs()


@lowers("Reshape", "ExpandDims", "Squeeze", takes=MOVED)
def reshape(emit: Emit, node: Node, source: Value) -> Value:
    return emit.reshape(source, emit.output()[1])


@lowers("Shape", "ShapeN", "Size", "Rank")
def shape_facts(emit: Emit, node: Node) -> None:
    """The sizes are known, so these are constants."""
    for port in range(len(node.data_inputs)):
        dtype = emit.output(port)[0]
        sizes = emit.input(port).shape
        answer = {"Size": int(np.prod(sizes, dtype=np.int64)), "Rank": len(sizes)}.get(node.op, list(sizes))
        emit.result(emit.const(answer, dtype.numpy), port)


@lowers("ZerosLike", "OnesLike", takes=MOVED)
def filled_like(emit: Emit, node: Node, source: Value) -> Value:
    return emit.constant_like(source, int(node.op == "OnesLike"))


@lowers("Fill")
def fill(emit: Emit, node: Node) -> Value:
    return _broadcast(emit, emit.require(emit.input(1), *MOVED), emit.output()[1])


@lowers("BroadcastTo", takes=MOVED)
def broadcast_to(emit: Emit, node: Node, source: Value) -> Value:
    return _broadcast(emit, source, emit.output()[1])


def _broadcast(emit: Emit, value: Value, shape: tuple[int, ...]) -> Value:
    """``value`` in a larger shape, as copies; LiteRT's BROADCAST_TO goes element by element, which takes 4 to 80 times
    as long."""
    if value.shape == shape:
        return value
    if not len(value.shape) <= len(shape) <= DEEPEST or not shape:
        raise emit.unsupported(f"broadcasting from rank {len(value.shape)} to {len(shape)}")
    emit.check(value.dtype, shape)
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


@lowers("Transpose", takes=MOVED)
def transpose(emit: Emit, node: Node, source: Value) -> Value:
    order = emit.axes(1, len(source.shape), "the permutation")
    if sorted(order) != list(range(len(source.shape))):
        raise emit.unsupported(f"the permutation {order}")
    return _transposed(emit, source, order)


def _transposed(emit: Emit, source: Value, order: list[int]) -> Value:
    """A value with its axes permuted: many axes as fewer, as those that stay together are one, or in several steps,
    each of which takes one axis to its place."""
    if len(order) <= DEEPEST or source.constant is not None:
        return emit.transpose(source, order)
    shape = [source.shape[axis] for axis in order]
    together = _together(source.shape, order)
    if len(together) <= DEEPEST:
        places = {axes[0]: place for place, axes in enumerate(sorted(together))}
        merged = emit.reshape(source, [_size(source.shape, axes) for axes in sorted(together)])
        return emit.reshape(emit.transpose(merged, [places[axes[0]] for axes in together]), shape)
    place = next(place for place, axis in enumerate(order) if place != axis)
    axis = order[place]
    blocks = [range(place), range(place, axis), range(axis, axis + 1), range(axis + 1, len(order))]
    moved = emit.transpose(emit.reshape(source, [_size(source.shape, axes) for axes in blocks]), [0, 2, 1, 3])
    stands = [*blocks[0], *blocks[2], *blocks[1], *blocks[3]]
    rest = emit.reshape(moved, [source.shape[axis] for axis in stands])
    return _transposed(emit, rest, [stands.index(axis) for axis in order])


def _together(shape: tuple[int, ...], order: list[int]) -> list[list[int]]:
    """The axes of a permutation in groups that stay side by side, in their new order; without those of one element."""
    found: list[list[int]] = []
    axes = [axis for axis in range(len(shape)) if shape[axis] != 1]
    after = dict(itertools.pairwise(axes))
    for axis in order:
        if shape[axis] == 1:
            continue
        if found and after.get(found[-1][-1]) == axis:
            found[-1].append(axis)
        else:
            found.append([axis])
    return found


def _size(shape: tuple[int, ...], axes: Sequence[int]) -> int:
    return math.prod(shape[axis] for axis in axes)


@lowers("Tile", takes=MOVED)
def tile(emit: Emit, node: Node, source: Value) -> Value:
    multiples = [int(m) for m in emit.static(1, "the multiples")]
    shape = [size * count for size, count in zip(source.shape, multiples, strict=True)]
    if tuple(shape) == source.shape:
        return source
    elif len(shape) <= DEEPEST and all(1 in pair for pair in zip(source.shape, multiples, strict=True)):
        return _broadcast(emit, source, tuple(shape))
    else:
        return emit.add("TILE", [source, emit.const(multiples, np.int32)], shape)


@lowers("ConcatV2", "Concat")
def concat(emit: Emit, node: Node) -> Value:
    last = len(node.data_inputs) - 1
    where, parts = (last, emit.inputs(0, last)) if node.op == "ConcatV2" else (0, emit.inputs(1))
    parts = [emit.require(part, *MOVED) for part in parts]
    (axis,) = emit.axes(where, len(emit.output()[1]))
    return emit.concatenated(parts, axis)


@lowers("Pack")
def pack(emit: Emit, node: Node) -> Value:
    parts = [emit.require(part, *MOVED) for part in emit.inputs()]
    shape = emit.output()[1]
    axis = int(node.attr("axis", 0)) % len(shape)
    if len(parts) == 1:
        return emit.reshape(parts[0], shape)
    if parts[0].dtype is BOOL:  # which LiteRT joins, but does not pack
        thin = (*shape[:axis], 1, *shape[axis + 1 :])
        parts = [emit.reshape(part, thin) for part in parts]
        return emit.concatenated(parts, axis)
    return emit.add("PACK", list(parts), shape, values_count=len(parts), axis=axis)


@lowers("Unpack", takes=MOVED)
def unpack(emit: Emit, node: Node, source: Value) -> list[Value]:
    rank, axis = len(source.shape), int(node.attr("axis", 0))
    if not -rank <= axis < rank or int(node.attr("num", 0)) != source.shape[axis]:
        raise emit.unsupported(f"{node.attr('num', 0)} parts of {list(source.shape)} along the axis {axis}")
    axis, count = axis % rank, source.shape[axis]
    shape = tuple(size for index, size in enumerate(source.shape) if index != axis)
    if source.dtype is INT64:  # which LiteRT splits, but does not unpack
        return [emit.reshape(part, shape) for part in _parts(emit, source, axis, [1] * count)]
    return emit.add_many("UNPACK", [source], [(source.dtype, shape)] * count, num=count, axis=axis)


@lowers("Split")
def split(emit: Emit, node: Node) -> list[Value]:
    source = emit.require(emit.input(1), *MOVED)
    (axis,) = emit.axes(0, len(source.shape))
    count = int(node.attr("num_split", 1))
    if count < 1 or source.shape[axis] % count:
        raise emit.unsupported(f"{source.shape[axis]} elements do not split into {count} equal parts")
    if count == 1:
        return [source]
    if source.dtype is BOOL:  # which LiteRT cuts, but does not split
        return _parts(emit, source, axis, [source.shape[axis] // count] * count)
    shape = tuple(size // count if index == axis else size for index, size in enumerate(source.shape))
    operands = [emit.const(axis, np.int32), source]
    return emit.add_many("SPLIT", operands, [(source.dtype, shape)] * count, num_splits=count)


@lowers("SplitV", takes=MOVED)
def split_v(emit: Emit, node: Node, source: Value) -> list[Value]:
    (axis,) = emit.axes(2, len(source.shape))
    sizes = [int(size) for size in np.asarray(emit.static(1, "the sizes")).reshape(-1)]
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = source.shape[axis] - sum(size for size in sizes if size != -1)
    if sum(sizes) != source.shape[axis] or min(sizes) < 0:
        raise emit.unsupported(f"the sizes {sizes} of {list(source.shape)}")
    if len(sizes) == 1:
        return [source]
    if source.dtype is BOOL:
        return _parts(emit, source, axis, sizes)
    shapes = [tuple(part if index == axis else size for index, size in enumerate(source.shape)) for part in sizes]
    operands = [source, emit.const(sizes, np.int32), emit.const(axis, np.int32)]
    return emit.add_many("SPLIT_V", operands, [(source.dtype, s) for s in shapes], num_splits=len(sizes))


def _parts(emit: Emit, value: Value, axis: int, sizes: list[int]) -> list[Value]:
    """Slices of these sizes along an axis, one behind the other."""
    parts, place = [], 0
    for count in sizes:
        begin, size = [0] * len(value.shape), list(value.shape)
        begin[axis], size[axis] = place, count
        parts.append(cut(emit, value, begin, size))
        place += count
    return parts


@lowers("Pad", "PadV2", "MirrorPad", takes=MOVED)
def padding(emit: Emit, node: Node, source: Value) -> Value:
    pairs = np.asarray(emit.static(1, "the paddings"), np.int32).reshape(-1, 2)
    most = MOST_PADDED if node.op == "MirrorPad" else DEEPEST
    if pairs.min(initial=0) < 0 or len(pairs) != len(source.shape) or len(pairs) > most:
        raise emit.unsupported(f"the paddings {pairs.tolist()}")
    if node.op == "MirrorPad":
        return mirror_pad(emit, source, pairs, attr_text(node, "mode"))
    elif node.op == "Pad":
        return pad(emit, source, pairs, always=emit.is_kept)
    else:
        fill_value = emit.static(2, "the value padded with")
        return pad(emit, source, pairs, fill_value.item(), always=emit.is_kept)


PIXELS = ("float", "int32", "int64", "uint8", "int8")
"""Element types that LiteRT moves between space, depth and batch."""


@lowers("DepthToSpace", "SpaceToDepth")
def depth_and_space(emit: Emit, node: Node) -> None:
    layout = data_format(emit, node)
    source = image(emit, 0, layout, PIXELS)
    block = int(node.attr("block_size", 0))
    batch, height, width, depth = source.shape
    if block < 2:
        raise emit.unsupported(f"a block size of {block}")
    if node.op == "DepthToSpace":
        result = emit.add(
            "DEPTH_TO_SPACE", [source], (batch, height * block, width * block, depth // block**2), block_size=block
        )
    else:
        result = emit.add(
            "SPACE_TO_DEPTH", [source], (batch, height // block, width // block, depth * block**2), block_size=block
        )
    yield_image(emit, result, layout)


@lowers("SpaceToBatchND", "BatchToSpaceND", takes=PIXELS)
def batch_and_space(emit: Emit, node: Node, source: Value) -> Value:
    block = np.asarray(emit.static(1, "the block shape"), np.int32).reshape(-1)
    borders = np.asarray(emit.static(2, "the paddings or crops"), np.int32).reshape(-1, 2)
    to_batch = node.op == "SpaceToBatchND"
    if (len(block), len(source.shape)) not in ((2, 4), (1, 3)):
        return _axis_by_axis(emit, source, block.tolist(), borders, to_batch=to_batch)
    code = "SPACE_TO_BATCH_ND" if to_batch else "BATCH_TO_SPACE_ND"
    shape = emit.output()[1]
    return emit.add(code, [source, emit.const(block), emit.const(borders)], shape)


def _axis_by_axis(emit: Emit, value: Value, block: list[int], borders: Array, *, to_batch: bool) -> Value:
    """Space to batch, or back, of any rank, by a transpose for each axis: the batch counts in the last axis first."""
    rank = len(value.shape)
    if rank > DEEPEST or borders.min(initial=0) < 0:
        raise emit.unsupported(f"space and batch of rank {rank} with the borders {borders.tolist()}")
    if to_batch:
        beyond = [(0, 0)] * (rank - 1 - len(block))
        value = pad(emit, value, np.array([(0, 0), *borders.tolist(), *beyond], np.int32))
    for axis in range(len(block), 0, -1) if to_batch else range(1, len(block) + 1):
        size, sizes = block[axis - 1], list(value.shape)
        if size == 1:
            continue
        before, after = math.prod(sizes[1:axis]), math.prod(sizes[axis + 1 :])
        if to_batch:
            sizes[0], sizes[axis] = sizes[0] * size, sizes[axis] // size
            parts = emit.reshape(value, (value.shape[0] * before, sizes[axis], size, after))
            turned = emit.transpose(parts, (2, 0, 1, 3))
        else:
            sizes[0], sizes[axis] = sizes[0] // size, sizes[axis] * size
            parts = emit.reshape(value, (size, sizes[0] * before, value.shape[axis], after))
            turned = emit.transpose(parts, (1, 2, 0, 3))
        value = emit.reshape(turned, sizes)
    if to_batch:
        return value
    inside = [size - int(a) - int(b) for size, (a, b) in zip(value.shape[1:], borders, strict=False)]
    begin = [0, *borders[:, 0].tolist(), *[0] * (rank - 1 - len(block))]
    return cut(emit, value, begin, [value.shape[0], *inside, *value.shape[1 + len(block) :]])


@lowers("SpaceToBatch", "BatchToSpace")
def old_batch_and_space(emit: Emit, node: Node) -> Value:
    source = image(emit, 0, "NHWC", PIXELS)
    borders = np.asarray(emit.static(1, "the paddings or crops"), np.int32).reshape(2, 2)
    block = np.full(2, int(node.attr("block_size", 0)), np.int32)
    code = "SPACE_TO_BATCH_ND" if node.op == "SpaceToBatch" else "BATCH_TO_SPACE_ND"
    shape = emit.output()[1]
    return emit.add(code, [source, emit.const(block), emit.const(borders)], shape)
