"""Shape rules that ops of many families share."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import SCALAR, Shape
from pocketgraph.kernels.shapes.algebra import broadcast, merge
from pocketgraph.kernels.shapes.rules import ShapeCall

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
