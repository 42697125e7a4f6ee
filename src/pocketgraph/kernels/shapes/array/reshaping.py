"""Shape rules of shapes asked for and changed."""

from __future__ import annotations

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import axis_of, broadcast, exact_quotient, of_rank, product, replaced
from pocketgraph.kernels.shapes.common_rules import VECTOR, fixed, scalar, unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

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
        return Shape((None,) * (len(dims) + 1))
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
