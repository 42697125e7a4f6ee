"""The layers of a training that run as steps of their own: forward, and all gradients of the weights."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.kernels.recycled_arrays import keep_heap
from pocketgraph.runtime.engines.compilation_units import PartCall, Plan
from pocketgraph.runtime.engines.layer_nodes import RunApart, names_of, take_values
from pocketgraph.runtime.engines.pooled_layers import pooled_layers, pooled_parts
from pocketgraph.runtime.engines.rectified_layers import rectified_layers, rectified_parts
from pocketgraph.runtime.engines.single_convolutions import single_convolution_parts, single_convolutions
from pocketgraph.runtime.engines.trained_norms import PASS as NORMS_PASS
from pocketgraph.runtime.engines.trained_norms import trained_norm_parts, trained_norms

LayersOf = Callable[[Plan, Collection[str]], list[Any]]
PartsOf = Callable[[Plan, Any, RunApart], list[PartCall]]
KINDS: tuple[tuple[str, LayersOf, PartsOf], ...] = (
    ("fused_pooled_layers", pooled_layers, pooled_parts),
    ("fused_rectified_layers", rectified_layers, rectified_parts),
    (NORMS_PASS, trained_norms, trained_norm_parts),
    ("changing_weights", single_convolutions, single_convolution_parts),
)
"""The pass that fuses them, what finds such layers, and what makes parts of one; the first that takes a node has it."""


def trained_layers(plan: Plan, wanted: Collection[Endpoint], run_apart: RunApart) -> list[PartCall]:
    """The layers of a plan as parts, two for each.

    Args:
        plan: what is compiled.
        wanted: tensors that leave the plan.
        run_apart: makes what runs nodes one by one.
    """
    held = {endpoint.node for endpoint in (*wanted, *plan.fed)}
    parts: list[PartCall] = []
    for name, layers_of, parts_of in KINDS:
        if not plan.uses(name):
            continue
        taken = frozenset[str]().union(*(part.members for part in parts))
        for layer in layers_of(plan, held):
            found = parts_of(plan, layer, run_apart) if names_of(layer).isdisjoint(taken) else []
            if take_values(plan, found):
                parts += found
    if parts and plan.uses("kept_heap"):
        keep_heap()
    return parts
