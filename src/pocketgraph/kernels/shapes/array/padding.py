"""Shape rules of borders put round tensors."""

from __future__ import annotations

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import of_rank, total
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("Pad", "PadV2", "MirrorPad")(lambda call: padded(call, call.shape(0), 1))


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
