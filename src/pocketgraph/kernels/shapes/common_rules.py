"""Shape rules that ops of many families share."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import SCALAR, Shape
from pocketgraph.kernels.shapes.algebra import broadcast, merge
from pocketgraph.kernels.shapes.rules import Call

VECTOR = Shape((None,))


def unchanged(call: Call) -> Shape:
    return call.shape(0)


def broadcast_both(call: Call) -> Shape:
    return broadcast(call.shape(0), call.shape(1))


def merged(call: Call) -> Shape:
    return merge(call.shape(0), call.shape(1))


def scalar(call: Call) -> Shape:
    return SCALAR


def no_outputs(call: Call) -> Sequence[Shape]:
    return []
