"""The layers of a training that run as steps of their own: forward, and all gradients of the weights."""

from __future__ import annotations

from collections.abc import Collection

from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.engines.compilation_units import PartCall, Plan
from pocketgraph.runtime.engines.layer_nodes import RunApart
from pocketgraph.runtime.engines.pooled_layers import fused_pooled_layers
from pocketgraph.runtime.engines.rectified_layers import fused_rectified_layers


def trained_layers(plan: Plan, wanted: Collection[Endpoint], run_apart: RunApart) -> list[PartCall]:
    """The layers of a plan as parts.

    Args:
        plan: what is compiled.
        wanted: tensors that leave the plan.
        run_apart: makes what runs nodes one by one.
    """
    parts: list[PartCall] = []
    if plan.uses("fused_pooled_layers"):
        parts += fused_pooled_layers(plan, wanted, run_apart)
    if plan.uses("fused_rectified_layers"):
        taken = frozenset[str]().union(*(part.members for part in parts))
        parts += fused_rectified_layers(plan, wanted, run_apart, taken)
    return parts
