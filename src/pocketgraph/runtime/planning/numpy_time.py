"""About how long NumPy takes for a call that it has not computed before, by the shapes of all tensors."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable

from pocketgraph.graph import Node, canonical
from pocketgraph.graph.op_traits import CONTRACTIONS, CONVOLUTIONS, ops_with
from pocketgraph.kernels.registry import KERNELS
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.litert.cost_model import ANSWERED_ELEMENT, ANSWERED_MODULE, ANSWERED_PRODUCT, ANSWERED_STEP
from pocketgraph.runtime.certificates.part_reference import addends

AS_THEY_ARE = ops_with("constant", "passes", "view", "shape")
"""Ops that make no numbers."""
FLOW = ops_with("control_flow", "call", "branch", "loop", "effect")
"""What the reference engine needs steps for, and cannot take node by node."""


def numpy_time(nodes: Iterable[Node], inferred: Inferred) -> float:
    """Microseconds, those for importing kernels included; infinite where the shapes of a product or a convolution are
    not known, or rounds and branches decide.

    Args:
        nodes: what is to be computed.
        inferred: what is known of its tensors.
    """
    computed = [node for node in nodes if node.op != "Const"]
    ops = {node.op for node in computed}
    if not FLOW.isdisjoint(ops):
        return math.inf
    modules = sum(f"pocketgraph.kernels.{module}" not in sys.modules for module in KERNELS.homes(ops))
    products = elements = 0
    for node in computed:
        if node.op in AS_THEY_ARE:
            continue
        elements += sum(math.prod(shape.known) for shape in inferred.shapes(node.name) if shape.is_known)
        if node.op in CONTRACTIONS:
            multiplied, moved = _of_product(node, inferred)
            if multiplied is None:
                return math.inf
            products += multiplied
            elements += moved
    return (
        ANSWERED_MODULE * modules
        + ANSWERED_STEP * len(computed)
        + ANSWERED_PRODUCT * products
        + ANSWERED_ELEMENT * elements
    )


def _of_product(node: Node, inferred: Inferred) -> tuple[int | None, int]:
    """Multiplications in products of matrices, None where nobody knows; and numbers that are moved besides the result.

    A depthwise convolution is no product of matrices. What lies under the windows of others goes through the cache, in
    half the time of a result.
    """
    taken = [inferred.shape(canonical(ref)) for ref in node.inputs if not ref.startswith("^")]
    made = inferred.shape(f"{node.name}:0")
    if len(taken) < 2 or not all(shape.is_known for shape in (made, *taken)):
        return None, 0
    size, summed = math.prod(made.known), addends(node.op, [shape.known for shape in taken], made.known)
    if "Depthwise" in node.op:
        return 0, size * summed
    weights = taken[1].known
    if node.op not in CONVOLUTIONS or math.prod(weights[:-2]) == 1:
        return size * summed, 0
    return size * summed, size // max(1, weights[-1]) * summed // 2
