"""Shape rules of constants, placeholders, and what fills, pads, joins, cuts and moves arrays as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import LAST_PRODUCER_WITHOUT_SCALARS, UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import (
    Dim,
    at_least,
    axis_of,
    broadcast,
    dims_of,
    exact_quotient,
    merge,
    merge_dim,
    of_rank,
    product,
    replaced,
    total,
    window,
)
from pocketgraph.kernels.shapes.common_rules import VECTOR, counted_by, fixed, held_by, scalar, unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule(
    "CheckNumerics", "CheckNumericsV2", "Copy", "CopyHost", "DebugGradientIdentity", "DebugIdentity", "DebugNanCount",
    "DeepCopy", "GuaranteeConst", "HostConst", "Identity", "PreventGradient", "Snapshot", "StopGradient",
    "XlaSharding", "XlaClusterOutput",
)(unchanged)  # fmt: skip


shape_rule("IdentityN", "XlaOptimizationBarrier")(lambda call: call.inputs)
shape_rule("Const")(lambda call: Shape(call.node.tensor.shape))


@shape_rule("Placeholder", "PlaceholderV2")
def placeholder(call: ShapeCall) -> Shape:
    shape = call.node.declared_shape(call.producer)
    if shape is None:
        return UNKNOWN
    return UNKNOWN if call.producer <= LAST_PRODUCER_WITHOUT_SCALARS and shape.rank == 0 else shape


@shape_rule("PlaceholderWithDefault")
def placeholder_with_default(call: ShapeCall) -> Shape:
    shape = call.declared()
    merge(shape, call.shape(0))
    return shape


shape_rule("EnsureShape")(lambda call: merge(call.declared(), call.shape(0)))


shape_rule("OnesLike", "ZerosLike")(unchanged)
shape_rule("Fill", "Empty")(held_by(0))
shape_rule("LinSpace")(counted_by(2))


@shape_rule("Range")
def range_of(call: ShapeCall) -> Shape:
    start, limit, delta = (call.value(i) for i in range(3))
    if start is None or limit is None or delta is None:
        return Shape((None,))
    if not delta.item():
        raise GraphError("a range with a step of 0 has no end")
    if (limit.item() - start.item()) * delta.item() < 0:
        return Shape((None,))  # refused when it runs
    from pocketgraph.kernels.range_length import steps_between

    return Shape((steps_between(start, limit, delta),))


shape_rule("DataFormatDimMap", "DataFormatVecPermute", "InvertPermutation")(unchanged)
shape_rule("Rank", "Size")(scalar)
shape_rule("BroadcastGradientArgs")(fixed(VECTOR, VECTOR))


shape_rule("Shape")(lambda call: Shape((call.shape(0).rank,)))
shape_rule("ShapeN")(lambda call: [Shape((shape.rank,)) for shape in call.inputs])


@shape_rule("Reshape")
def reshape(call: ShapeCall) -> Shape:
    return reshaped(call.shape(0), call.as_shape(1), minus_one=_has_minus_one(call))


def _has_minus_one(call: ShapeCall) -> bool:
    wanted = call.integers(1)
    return wanted is not None and wanted.count(-1) == 1


def reshaped(old: Shape, new: Shape, *, minus_one: bool) -> Shape:
    """What ``new`` becomes when ``old`` is poured into it.

    Args:
        old: the shape of the input.
        new: the wanted shape.
        minus_one: whether the wanted shape is fully known but for one size, which is to be computed.

    Raises:
        GraphError: the numbers of elements differ.
    """
    if new.dims is None:
        return UNKNOWN
    have = product(*old.dims) if old.dims is not None else None
    if new.is_known:
        if have is not None and have != new.elements:
            raise GraphError(f"{have} elements cannot be reshaped to {new}")
        return new
    if new.dims.count(None) == 1:
        rest = product(*(d for d in new.dims if d is not None))
        if have is not None and rest:
            size = exact_quotient(have, rest)
            return replaced(new.dims, {new.dims.index(None): size})
        if minus_one and old.dims is not None and old.dims.count(None) == 1 and rest:
            known = product(*(d for d in old.dims if d is not None))
            if known and known == rest:  # the one unknown size goes through
                return new
    return new


@shape_rule("ExpandDims")
def expand_dims(call: ShapeCall) -> Shape:
    dims, axis = call.dims(0), call.integer(1)
    if axis is None:
        return UNKNOWN if 1 in call.unread else Shape((None,) * (len(dims) + 1))
    at = axis_of(axis, len(dims) + 1)
    return Shape((*dims[:at], 1, *dims[at:]))


@shape_rule("Squeeze")
def squeeze(call: ShapeCall) -> Shape:
    dims = call.dims(0)
    axes = call.attr("squeeze_dims", ()) or call.attr("axis", ())
    if not axes:
        return UNKNOWN if None in dims else Shape(d for d in dims if d != 1)
    gone = {axis_of(axis, len(dims)) for axis in axes}
    for axis in gone:
        if dims[axis] not in (1, None):
            raise GraphError(f"dimension {axis} of {call.shape(0)} cannot be squeezed")
    return Shape(d for i, d in enumerate(dims) if i not in gone)


shape_rule("ConcatOffset")(lambda call: call.inputs[1:])


@shape_rule("Transpose", "ConjugateTranspose")
def transpose(call: ShapeCall) -> Shape:
    shape, order = call.shape(0), call.integers(1)
    if order is None:
        length = call.shape(1)
        rank = shape.rank if shape.rank is not None else (length[0] if length.rank == 1 else None)
        return UNKNOWN if rank is None or rank > 254 else Shape((None,) * rank)
    dims = of_rank(shape, len(order))
    order = [axis_of(axis, len(order)) for axis in order]
    if sorted(order) != list(range(len(order))):
        raise GraphError(f"{order} is not a permutation")
    return Shape(dims[axis] for axis in order)


@shape_rule("BroadcastTo")
def broadcast_to(call: ShapeCall) -> Shape:
    shape = call.as_shape(1)
    return broadcast(call.shape(0), shape) if shape.is_known else shape


@shape_rule("BroadcastArgs")
def broadcast_args(call: ShapeCall) -> Shape:
    (x,), (y,) = of_rank(call.shape(0), 1), of_rank(call.shape(1), 1)
    return Shape((max(x, y) if x is not None and y is not None else None,))


shape_rule("Reverse", "ReverseSequence", "ReverseV2", "Roll")(unchanged)


@shape_rule("Pack")
def pack(call: ShapeCall) -> Shape:
    element = UNKNOWN
    for shape in call.inputs:
        element = merge(element, shape)
    dims = dims_of(element)
    axis = axis_of(call.attr("axis", 0), len(dims) + 1)
    return Shape((*dims[:axis], len(call.inputs), *dims[axis:]))


shape_rule("ParallelConcat")(lambda call: call.declared())


@shape_rule("Unpack")
def unpack(call: ShapeCall) -> Sequence[Shape]:
    dims, count = call.dims(0), call.count("num")
    axis = axis_of(call.attr("axis", 0), len(dims))
    merge_dim(dims[axis], count)
    return [Shape(dims[:axis] + dims[axis + 1 :])] * count


shape_rule("ConcatV2")(lambda call: joined(call.inputs[:-1], call.integer(len(call.inputs) - 1)))
shape_rule("Concat")(lambda call: joined(call.inputs[1:], call.integer(0)))


def joined(parts: Sequence[Shape], axis: int | None) -> Shape:
    """The shape of these parts concatenated along an axis (None: not known which)."""
    ranks = [part.rank for part in parts if part.rank is not None]
    if not ranks:
        return UNKNOWN
    rank = ranks[0]
    if axis is None:
        for part in parts:
            of_rank(part, rank)
        return Shape((None,) * rank)
    at = axis_of(axis, rank)
    rest = UNKNOWN
    for part in parts:
        rest = merge(rest, replaced(of_rank(part, rank), {at: None}))
    return replaced(of_rank(rest, rank), {at: total(*(of_rank(part, rank)[at] for part in parts))})


@shape_rule("Split")
def split(call: ShapeCall) -> Sequence[Shape]:
    dims, axis, count = call.dims(1), call.integer(0), call.count("num_split")
    if axis is None:
        return [Shape((None,) * len(dims))] * count
    at = axis_of(axis, len(dims))
    return [replaced(dims, {at: exact_quotient(dims[at], count)})] * count


@shape_rule("SplitV")
def split_v(call: ShapeCall) -> Sequence[Shape]:
    dims, sizes, axis, count = call.dims(0), call.integers(1), call.integer(2), call.count("num_split")
    if count == 1:
        return [Shape(dims)]
    if axis is None:
        return [Shape((None,) * len(dims))] * count
    at = axis_of(axis, len(dims))
    left = dims[at]
    if sizes is None or len(sizes) != count:
        return [replaced(dims, {at: None})] * count
    if sizes.count(-1) == 1:
        rest = sum(s for s in sizes if s >= 0)
        sizes = [s if s >= 0 else (-1 if left is None else left - rest) for s in sizes]
    elif left is not None and sum(sizes) != left:
        raise GraphError(f"parts of {sizes} do not make up {left}")
    return [replaced(dims, {at: size if size >= 0 else None}) for size in sizes]


@shape_rule("Tile")
def tile(call: ShapeCall) -> Shape:
    shape, times = call.shape(0), call.as_shape(1)
    if shape.dims is None or times.dims is None:
        return Shape((None,) * len(shape.dims)) if shape.dims is not None else Shape(times.dims and [None] * len(times))
    counts = of_rank(times, len(shape.dims))
    return Shape(product(d, n) for d, n in zip(shape.dims, counts, strict=True))


@shape_rule("TileGrad")
def of_copies(call: ShapeCall) -> Shape:
    whole, times = call.shape(0), call.integers(1)
    if whole.dims is None or times is None or len(times) != len(whole.dims) or 0 in times:
        return whole if whole.dims is None else Shape((None,) * len(whole.dims))
    return Shape(None if s is None else s // t for s, t in zip(whole.dims, times, strict=True))


shape_rule("Pad", "PadV2")(lambda call: padded(call, call.shape(0), 1))


@shape_rule("MirrorPad")
def mirrored(call: ShapeCall) -> Shape:
    """As where zeros are put around, of sides that are long enough."""
    result, amounts = padded(call, call.shape(0), 1), call.integers(1) or ()
    edge = int(call.attr("mode") == "REFLECT")
    for size, before, after in zip(call.shape(0).dims or (), amounts[::2], amounts[1::2], strict=False):
        if size is not None and max(before, after) > max(size - edge, 0):
            raise GraphError(f"borders of {before} and {after} do not mirror a side of {size}")
    return result


def padded(call: ShapeCall, shape: Shape, paddings: int) -> Shape:
    """The shape with the amounts of input number ``paddings`` added before and after each dimension."""
    amounts = call.integers(paddings)
    if amounts is None:
        rows = call.shape(paddings)
        rank = rows[0] if rows.rank == 2 else shape.rank
        return UNKNOWN if rank is None or rank > 254 else Shape((None,) * rank)
    dims = of_rank(shape, len(amounts) // 2)
    if any(a < 0 for a in amounts):
        raise GraphError(f"paddings {amounts} are negative")
    return Shape(total(d, amounts[2 * i], amounts[2 * i + 1]) for i, d in enumerate(dims))


@shape_rule("XlaPad")
def with_elements_between(call: ShapeCall) -> Shape:
    amounts = [call.integers(place) for place in (2, 3, 4)]
    dims = call.shape(0).dims
    if dims is None or any(each is None or len(each) != len(dims) for each in amounts):
        return UNKNOWN if dims is None else Shape((None,) * len(dims))
    rows = zip(dims, *(each or () for each in amounts), strict=True)
    return Shape(None if n is None else max(max(n + (n - 1) * i, 0) + low + high, 0) for n, low, high, i in rows)


@shape_rule("MirrorPadGrad")
def of_mirrored_borders(call: ShapeCall) -> Shape:
    grad, borders = call.shape(0), call.value(1)
    if grad.dims is None or borders is None or borders.shape != (len(grad.dims), 2):
        return UNKNOWN if grad.dims is None else Shape((None,) * len(grad.dims))
    return Shape(None if s is None else s - int(sum(pair)) for s, pair in zip(grad.dims, borders, strict=True))


@shape_rule("SpaceToBatchND", "SpaceToBatch", "BatchToSpaceND", "BatchToSpace")
def space_and_batch(call: ShapeCall) -> Shape:
    """Blocks that go into the batch after borders were put around, or come out of it before they are cut off."""
    op = call.node.op
    to_batch, has_blocks = op.startswith("Space"), op.endswith("ND")
    block = call.integers(1) if has_blocks else [call.attr("block_size")] * 2
    borders = call.integers(2 if has_blocks else 1)
    shape = call.shape(0)
    if shape.dims is None or block is None:
        return Shape((None,) * len(shape.dims)) if shape.dims is not None else UNKNOWN
    dims = list(at_least(shape, 1 + len(block)).dims or ())
    dims[0] = product(dims[0], *block) if to_batch else exact_quotient(dims[0], product(*block))
    for i, size in enumerate(block, 1):
        around = None if borders is None else borders[2 * i - 2] + borders[2 * i - 1]
        if to_batch:
            dims[i] = exact_quotient(total(dims[i], around), size)
        else:
            dims[i] = total(product(dims[i], size), None if around is None else -around)
    return Shape(dims)


@shape_rule("SpaceToDepth", "DepthToSpace")
def depth_and_space(call: ShapeCall) -> Shape:
    block, layout = call.attr("block_size"), call.attr("data_format", "NHWC")
    if layout not in ("NHWC", "NCHW"):
        return UNKNOWN
    dims: list[Dim] = list(of_rank(call.shape(0), 4))
    channel, space = (3, (1, 2)) if layout == "NHWC" else (1, (2, 3))
    for axis in space:
        dims[axis] = product(dims[axis], block) if call.node.op == "DepthToSpace" else exact_quotient(dims[axis], block)
    squared = block * block
    to_space = call.node.op == "DepthToSpace"
    dims[channel] = exact_quotient(dims[channel], squared) if to_space else product(dims[channel], squared)
    return Shape(dims)


@shape_rule("ExtractImagePatches")
def extract_patches(call: ShapeCall) -> Shape:
    batch, *space, channels = of_rank(call.shape(0), 4)
    sizes, strides, rates = call.attr("ksizes"), call.attr("strides"), call.attr("rates")
    padding = call.attr("padding")
    out = [window(space[i - 1], sizes[i], strides[i], padding, dilation=rates[i]) for i in (1, 2)]
    return Shape((batch, *out, product(channels, sizes[1], sizes[2])))
