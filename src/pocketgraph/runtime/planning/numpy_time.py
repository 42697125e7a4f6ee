"""About how long NumPy takes for a call that it has not computed before, by the shapes of all tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from pocketgraph.graph import Node, canonical
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.litert.cost_model import ANSWERED_AT_ALL, ANSWERED_ELEMENT, ANSWERED_PRODUCT, ANSWERED_STEP
from pocketgraph.runtime.certificates.part_reference import addends

AS_THEY_ARE = ops_with("constant", "passes", "view", "shape")
"""Ops that make no numbers."""
CONVOLUTIONS, MATRIX_PRODUCTS = ops_with("convolution"), ops_with("matrix_product")


def numpy_time(nodes: Iterable[Node], inferred: Inferred) -> float:
    """Microseconds; infinite where the shapes of a product or a convolution are not known.

    Args:
        nodes: what is to be computed.
        inferred: what is known of its tensors.
    """
    steps = products = elements = 0
    for node in nodes:
        if node.op == "Const":
            continue
        steps += 1
        if node.op in AS_THEY_ARE:
            continue
        shapes = inferred.shapes(node.name)
        made = sum(math.prod(shape.known) for shape in shapes if shape.is_known)
        elements += made
        if node.op not in CONVOLUTIONS and node.op not in MATRIX_PRODUCTS:
            continue
        taken = [inferred.shape(canonical(ref)) for ref in node.inputs]
        if len(taken) < 2 or not shapes or not all(shape.is_known for shape in (shapes[0], *taken)):
            return math.inf
        of_inputs = [np.broadcast_to(0, shape.known) for shape in taken]
        summed = addends(node.op, of_inputs, np.broadcast_to(0, shapes[0].known))
        if "Depthwise" in node.op:
            elements += made * summed
            continue
        products += made * summed
        if node.op in CONVOLUTIONS:
            weights = taken[1].known
            if math.prod(weights[:-2]) > 1:  # what lies under the windows goes through the cache, in half the time
                elements += made // max(1, weights[-1]) * summed // 2
    return ANSWERED_AT_ALL + ANSWERED_STEP * steps + ANSWERED_PRODUCT * products + ANSWERED_ELEMENT * elements
