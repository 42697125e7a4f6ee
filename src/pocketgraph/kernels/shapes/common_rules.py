"""Shape rules that ops of many families share."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import SCALAR, Shape
from pocketgraph.kernels.shapes.algebra import broadcast, merge, of_rank
from pocketgraph.kernels.shapes.rules import Rule, ShapeCall

VECTOR = Shape((None,))


def unchanged(call: ShapeCall) -> Shape:
    return call.shape(0)


def broadcast_both(call: ShapeCall) -> Shape:
    return broadcast(call.shape(0), call.shape(1))


def merged(call: ShapeCall) -> Shape:
    return merge(call.shape(0), call.shape(1))


def scalar(call: ShapeCall) -> Shape:
    return SCALAR


def no_outputs(call: ShapeCall) -> Sequence[Shape]:
    return []


def fixed(*shapes: Shape) -> Rule:
    """The rule of outputs whose shapes are the same whatever comes in."""
    return lambda call: shapes


def of_input(index: int, *, rank: int | None = None, times: int = 1) -> Rule:
    """The rule of ``times`` outputs in the shape of an input, which has this rank."""

    def rule(call: ShapeCall) -> Sequence[Shape]:
        shape = call.shape(index)
        return [shape if rank is None else Shape(of_rank(shape, rank))] * times

    return rule


def held_by(index: int) -> Rule:
    """The rule of an output whose sizes an input holds."""
    return lambda call: call.as_shape(index)


def counted_by(index: int) -> Rule:
    """The rule of a vector whose length an input holds."""
    return lambda call: Shape((call.integer(index),))


def behind_handle(call: ShapeCall) -> Shape:
    """What the variable, or the element of a TensorArray, behind input 0 has."""
    return call.handle(0)
