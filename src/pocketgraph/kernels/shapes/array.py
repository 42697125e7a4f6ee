"""Shape rules of the ops that make, reshape, join and cut tensors."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import SCALAR, UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import (
    Dim,
    at_least,
    axis_of,
    broadcast,
    exact_quotient,
    merge,
    merge_dim,
    of_rank,
    product,
    replaced,
    total,
)
from pocketgraph.kernels.shapes.rules import Call, shape_rule

LEGACY = 21  # up to this GraphDef version a placeholder's scalar shape means that none was given


@shape_rule("Const")
def const(call: Call) -> Shape:
    return Shape(call.node.tensor.shape)


@shape_rule("Placeholder", "PlaceholderV2", "_Arg")
def placeholder(call: Call) -> Shape:
    shape = call.declared()
    return UNKNOWN if call.producer <= LEGACY and shape.rank == 0 else shape


@shape_rule("PlaceholderWithDefault")
def placeholder_with_default(call: Call) -> Shape:
    shape = call.declared()
    merge(shape, call.shape(0))
    return shape


@shape_rule("EnsureShape")
def ensure_shape(call: Call) -> Shape:
    return merge(call.declared(), call.shape(0))


@shape_rule("Shape")
def shape_of(call: Call) -> Shape:
    return Shape((call.shape(0).rank,))


@shape_rule("ShapeN")
def shape_n(call: Call) -> Sequence[Shape]:
    return [Shape((shape.rank,)) for shape in call.inputs]


@shape_rule("Rank", "Size", "L2Loss")
def scalar(call: Call) -> Shape:
    return SCALAR


@shape_rule("Reshape")
def reshape(call: Call) -> Shape:
    return reshaped(call.shape(0), call.as_shape(1), minus_one=_has_minus_one(call))


def _has_minus_one(call: Call) -> bool:
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
def expand_dims(call: Call) -> Shape:
    shape, axis = call.shape(0), call.integer(1)
    if shape.dims is None:
        return UNKNOWN
    if axis is None:
        return Shape((None,) * (len(shape.dims) + 1))
    at = axis_of(axis, len(shape.dims) + 1)
    return Shape((*shape.dims[:at], 1, *shape.dims[at:]))


@shape_rule("Squeeze")
def squeeze(call: Call) -> Shape:
    shape = call.shape(0)
    axes = call.attr("squeeze_dims", ()) or call.attr("axis", ())
    if shape.dims is None:
        return UNKNOWN
    if not axes:
        return UNKNOWN if None in shape.dims else Shape(d for d in shape.dims if d != 1)
    gone = {axis_of(axis, len(shape.dims)) for axis in axes}
    for axis in gone:
        if shape.dims[axis] not in (1, None):
            raise GraphError(f"dimension {axis} of {shape} cannot be squeezed")
    return Shape(d for i, d in enumerate(shape.dims) if i not in gone)


@shape_rule("Pack")
def pack(call: Call) -> Shape:
    element = UNKNOWN
    for shape in call.inputs:
        element = merge(element, shape)
    if element.dims is None:
        return UNKNOWN
    axis = axis_of(call.attr("axis", 0), len(element.dims) + 1)
    return Shape((*element.dims[:axis], len(call.inputs), *element.dims[axis:]))


@shape_rule("ParallelConcat")
def parallel_concat(call: Call) -> Shape:
    return call.declared()


@shape_rule("Unpack")
def unpack(call: Call) -> Sequence[Shape]:
    shape, count = call.shape(0), call.count("num")
    if shape.dims is None:
        return [UNKNOWN] * count
    axis = axis_of(call.attr("axis", 0), len(shape.dims))
    merge_dim(shape.dims[axis], count)
    return [Shape(shape.dims[:axis] + shape.dims[axis + 1 :])] * count


@shape_rule("ConcatV2")
def concat_v2(call: Call) -> Shape:
    return joined(call.inputs[:-1], call.integer(len(call.inputs) - 1))


@shape_rule("Concat")
def concat(call: Call) -> Shape:
    return joined(call.inputs[1:], call.integer(0))


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


@shape_rule("ConcatOffset")
def concat_offset(call: Call) -> Sequence[Shape]:
    return call.inputs[1:]


@shape_rule("Split")
def split(call: Call) -> Sequence[Shape]:
    shape, axis, count = call.shape(1), call.integer(0), call.count("num_split")
    if shape.dims is None:
        return [UNKNOWN] * count
    if axis is None:
        return [Shape((None,) * len(shape.dims))] * count
    at = axis_of(axis, len(shape.dims))
    return [replaced(shape.dims, {at: exact_quotient(shape.dims[at], count)})] * count


@shape_rule("SplitV")
def split_v(call: Call) -> Sequence[Shape]:
    shape, sizes, axis, count = call.shape(0), call.integers(1), call.integer(2), call.count("num_split")
    if shape.dims is None:
        return [UNKNOWN] * count
    if count == 1:
        return [shape]
    if axis is None:
        return [Shape((None,) * len(shape.dims))] * count
    at = axis_of(axis, len(shape.dims))
    if sizes is None or len(sizes) != count:
        return [replaced(shape.dims, {at: None})] * count
    if sizes.count(-1) == 1:
        left = shape.dims[at]
        rest = sum(s for s in sizes if s >= 0)
        sizes = [s if s >= 0 else (-1 if left is None else left - rest) for s in sizes]
    elif shape.dims[at] is not None and sum(sizes) != shape.dims[at]:
        raise GraphError(f"parts of {sizes} do not make up {shape.dims[at]}")
    return [replaced(shape.dims, {at: size if size >= 0 else None}) for size in sizes]


@shape_rule("Tile")
def tile(call: Call) -> Shape:
    shape, times = call.shape(0), call.as_shape(1)
    if shape.dims is None or times.dims is None:
        return Shape((None,) * len(shape.dims)) if shape.dims is not None else Shape(times.dims and [None] * len(times))
    counts = of_rank(times, len(shape.dims))
    return Shape(product(d, n) for d, n in zip(shape.dims, counts, strict=True))


@shape_rule("Pad", "PadV2", "MirrorPad")
def pad(call: Call) -> Shape:
    return padded(call, call.shape(0), 1)


def padded(call: Call, shape: Shape, paddings: int) -> Shape:
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


@shape_rule("Transpose", "ConjugateTranspose")
def transpose(call: Call) -> Shape:
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


@shape_rule("Reverse", "ReverseV2")
def reverse(call: Call) -> Shape:
    return call.shape(0)


@shape_rule("Fill")
def fill(call: Call) -> Shape:
    return call.as_shape(0)


@shape_rule("BroadcastTo")
def broadcast_to(call: Call) -> Shape:
    shape = call.as_shape(1)
    return broadcast(call.shape(0), shape) if shape.is_known else shape


@shape_rule("BroadcastArgs")
def broadcast_args(call: Call) -> Shape:
    (x,), (y,) = of_rank(call.shape(0), 1), of_rank(call.shape(1), 1)
    return Shape((max(x, y) if x is not None and y is not None else None,))


@shape_rule("BroadcastGradientArgs")
def broadcast_gradient_args(call: Call) -> Sequence[Shape]:
    return [Shape((None,)), Shape((None,))]


@shape_rule("Range")
def range_of(call: Call) -> Shape:
    start, limit, delta = (call.value(i) for i in range(3))
    if start is None or limit is None or delta is None:
        return Shape((None,))
    if not delta.item():
        raise GraphError("a range with a step of 0 has no end")
    if (limit.item() - start.item()) * delta.item() < 0:
        return Shape((None,))  # refused when it runs
    from pocketgraph.kernels.steps import steps_between

    return Shape((steps_between(start, limit, delta),))


@shape_rule("LinSpace")
def lin_space(call: Call) -> Shape:
    return Shape((call.integer(2),))


@shape_rule("OneHot")
def one_hot(call: Call) -> Shape:
    indices, depth, axis = call.shape(0), call.integer(1), call.attr("axis", -1)
    if indices.dims is None:
        return UNKNOWN
    at = axis_of(axis, len(indices.dims) + 1)
    return Shape((*indices.dims[:at], depth, *indices.dims[at:]))


@shape_rule("SpaceToBatchND", "SpaceToBatch")
def space_to_batch(call: Call) -> Shape:
    block, paddings = _block(call), call.integers(2 if call.node.op.endswith("ND") else 1)
    shape = call.shape(0)
    if shape.dims is None or block is None:
        return Shape((None,) * len(shape.dims)) if shape.dims is not None else UNKNOWN
    dims = list(at_least(shape, 1 + len(block)).dims or ())
    dims[0] = product(dims[0], *block)
    for i, size in enumerate(block, 1):
        added = None if paddings is None else paddings[2 * i - 2] + paddings[2 * i - 1]
        dims[i] = exact_quotient(total(dims[i], added), size)
    return Shape(dims)


@shape_rule("BatchToSpaceND", "BatchToSpace")
def batch_to_space(call: Call) -> Shape:
    block, crops = _block(call), call.integers(2 if call.node.op.endswith("ND") else 1)
    shape = call.shape(0)
    if shape.dims is None or block is None:
        return Shape((None,) * len(shape.dims)) if shape.dims is not None else UNKNOWN
    dims = list(at_least(shape, 1 + len(block)).dims or ())
    dims[0] = exact_quotient(dims[0], product(*block))
    for i, size in enumerate(block, 1):
        removed = None if crops is None else -crops[2 * i - 2] - crops[2 * i - 1]
        dims[i] = total(product(dims[i], size), removed)
    return Shape(dims)


def _block(call: Call) -> list[int] | None:
    if not call.node.op.endswith("ND"):
        return [call.attr("block_size")] * 2
    return call.integers(1)


@shape_rule("SpaceToDepth", "DepthToSpace")
def depth_and_space(call: Call) -> Shape:
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


@shape_rule("MatrixDiag", "MatrixDiagV2")
def matrix_diag(call: Call) -> Shape:
    shape = at_least(call.shape(0), 1)
    if call.node.op != "MatrixDiag":
        return UNKNOWN
    return UNKNOWN if shape.dims is None else Shape((*shape.dims, shape.dims[-1]))


@shape_rule("MatrixDiagPart")
def matrix_diag_part(call: Call) -> Shape:
    shape = at_least(call.shape(0), 2)
    if shape.dims is None:
        return UNKNOWN
    rows, columns = shape.dims[-2:]
    return Shape((*shape.dims[:-2], None if rows is None or columns is None else min(rows, columns)))


@shape_rule("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag(call: Call) -> Shape:
    return at_least(call.shape(0), 2)


@shape_rule("Diag")
def diag(call: Call) -> Shape:
    shape = call.shape(0)
    return UNKNOWN if shape.dims is None else Shape(shape.dims + shape.dims)


@shape_rule("DiagPart")
def diag_part(call: Call) -> Shape:
    shape = call.shape(0)
    return UNKNOWN if shape.dims is None else Shape(shape.dims[: len(shape.dims) // 2])
