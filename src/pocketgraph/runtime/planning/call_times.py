"""About how long small nodes take one by one, to tell whether calling another engine for them is quicker.

The figures are microseconds on one core of a processor of 2020, measured on tensors of some hundred elements; their
proportions are what counts. Sizes are not known where this is asked, but for those of constant weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import HEAVY, MATRIX_PRODUCTS, MERGE, NEXT_ITERATION, ops_with
from pocketgraph.litert.cost_model import (
    CURVED_NODE_CALL,
    NODE_CALL,
    PART_CALL,
    PART_TENSOR,
    UNKNOWN_PRODUCT,
    WEIGHT_PRODUCT,
)
from pocketgraph.runtime.engines.compilation_units import Plan
from pocketgraph.runtime.engines.needed import Item, behind

FREE = ops_with("passes", "view", "constant", "shape") | {"NoOp", "PlaceholderWithDefault"}
"""What gives on what it took, or what a plan has at hand."""
CURVES = ops_with("transcendental")
PASSED = ops_with("passes", "enter", "switch")


def is_worth_it(items: Sequence[Item], plan: Plan, tensors: int) -> bool:
    """Whether a part of these nodes, with so many tensors in and out, is quicker than its nodes one by one."""
    return call_time(items, plan) >= PART_CALL + PART_TENSOR * tensors


def call_time(items: Sequence[Item], plan: Plan) -> float:
    """The time of these nodes one by one; that of heavy ones whose sizes nobody knows is taken to be long."""
    total = 0.0
    for item in items:
        op = item.node.op
        if op in FREE:
            continue
        if op in MATRIX_PRODUCTS:
            weights = max(_weights(endpoint, plan) for endpoint in item.data)
            total += NODE_CALL + weights * WEIGHT_PRODUCT if weights else UNKNOWN_PRODUCT
        elif op in CURVES:
            total += CURVED_NODE_CALL
        else:
            total += UNKNOWN_PRODUCT if op in HEAVY else NODE_CALL
        if total >= UNKNOWN_PRODUCT:
            break
    return total


def _weights(endpoint: Endpoint, plan: Plan) -> int:
    """The elements of a constant, be it handed through a loop; 0 of what is computed."""
    source = _origin(endpoint, plan)
    while source is not None and source.node.op in MERGE:
        first, following = source.data[0], source.data[-1]
        back = plan.items.get(following.node)
        if len(source.data) != 2 or back is None or back.node.op not in NEXT_ITERATION:
            return 0
        if _origin(back.data[0], plan) is not source:  # another one in the next round
            return 0
        source = _origin(first, plan)
    if source is None or source.node.op != "Const":
        return 0
    return math.prod(source.node.tensor.shape)


def _origin(endpoint: Endpoint, plan: Plan) -> Item | None:
    """The node that a tensor comes from, past those that hand it on."""
    source = behind(plan.items, endpoint, PASSED, plan.fed)
    return None if source in plan.fed else plan.items.get(source.node)
