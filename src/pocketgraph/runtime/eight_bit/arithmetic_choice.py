"""Chooses how eight-bit operations run: in the original's own arithmetic, or as fast as the engine can.

Two things take the fast kernels away from the original's codes. Ranges found while running are searched for and rounded
to in each layer, which takes as long as the layer does on eight-bit kernels, or longer. Fixed ranges are rounded to by
the fast kernels too, but not in every last digit. Single codes that are rounded otherwise become ten times as many with
each layer, so that a deep network comes to the original's result either by its very codes or not at all: networks of
fixed ranges are kept in its arithmetic where they are deep, their run is short or their sums are few, those of searched
ones where they have few layers or their run is short. Fixed ranges with searched ones all along between them (behind
depthwise convolutions, which the original computes in float) are kept in the original's arithmetic always.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from pocketgraph.graph import DType, Graph, Node, Shape
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.litert.cost_model import (
    DEEP_LAYERS,
    FEW_SEARCHED_LAYERS,
    MANY_PRODUCTS_PER_SUM,
    MOST_FIXED,
    MOST_LAYERS_PER_RANGE,
    MOST_SEARCHED,
)
from pocketgraph.runtime.eight_bit.quantized_operands import operands

LAYERS = ("QuantizedConv2D", "QuantizedMatMul")
Feeds = Mapping[Endpoint, tuple[DType | None, tuple[int | None, ...]]]


def shapes_of(graph: Graph, feeds: Feeds) -> Inferred:
    """The shapes of all tensors for these feeds."""
    return infer(graph, {str(e): (dtype, Shape(shape)) for e, (dtype, shape) in feeds.items() if dtype is not None})


def wants_codes(nodes: Collection[Node], shapes: Inferred, follows: bool, found_between: int) -> bool:
    """Whether eight-bit operations are to be computed in the original's arithmetic.

    Args:
        nodes: the operations; what multiplies and has an unknown shape counts for nothing.
        shapes: those of the graph.
        follows: whether results are moved to ranges that are found while running.
        found_between: how many other tensors between layers have such ranges.
    """
    layers = sum(node.op in LAYERS for node in nodes)
    if follows:
        return layers < FEW_SEARCHED_LAYERS or sum(products(node, shapes) for node in nodes) <= MOST_SEARCHED
    if layers >= DEEP_LAYERS or found_between * MOST_LAYERS_PER_RANGE > layers:
        return True
    found = sum(products(node, shapes) for node in nodes)
    return found <= MOST_FIXED or found >= MANY_PRODUCTS_PER_SUM * sum(values(node, shapes) for node in nodes)


def values(node: Node, shapes: Inferred) -> int:
    """How many sums of products of codes an operation gives, 0 where that is not known."""
    result = shapes.shape(f"{node.name}:0")
    return math.prod(result.known) if node.op in LAYERS and result.is_known else 0


def products(node: Node, shapes: Inferred) -> int:
    """How many products of codes an operation makes, 0 where that is not known."""
    if node.op not in LAYERS:
        return 0
    result, weights = shapes.shape(f"{node.name}:0"), shapes.shape(operands(node)[1].codes)
    if not result.is_known or not weights.is_known:
        return 0
    return math.prod(result.known) * math.prod(weights.known) // max(1, result.known[-1])
