"""Finds the places of what is true in a vector, as filters of boxes and of texts spell them, each as one step.

    before:  keep = Cast(Reshape(Where(scores > 0.3), [-1]))
    after:   keep in one step

Where gives a column of int64, which is then laid flat and often made int32: three nodes for one call of NumPy. Where
the condition has another rank, and whenever somebody looks at the single nodes, these run as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from pocketgraph.graph.dtype import INT32, INT64
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.engines.compilation_units import PartCall, Plan
from pocketgraph.runtime.engines.layer_nodes import (
    LayerCall,
    RunApart,
    are_free,
    made_by,
    readers,
    take_values,
    waited_for,
)
from pocketgraph.runtime.engines.needed import Item

LAST_AXIS = ((1,), (-1,))
"""How a Squeeze names the axis that Where's rows lie along."""


def fused_places(plan: Plan, wanted: Collection[Endpoint], run_apart: RunApart) -> list[PartCall]:
    """Such places of a plan as parts.

    Args:
        plan: what is compiled.
        wanted: tensors that leave the plan.
        run_apart: makes what runs nodes one by one.
    """
    held = {endpoint.node for endpoint in (*wanted, *plan.fed)} | waited_for(plan)
    parts = []
    for item in plan.items.values():
        if item.node.op == "Where" and item.data[0].node in plan.items:
            part = _part_call(plan, held, item, run_apart)
            if part is not None and take_values(plan, [part]):
                parts.append(part)
    return parts


def _part_call(plan: Plan, held: Collection[str], where: Item, run_apart: RunApart) -> PartCall | None:
    """The nodes from a Where to its flat places as a part; None where it is followed by something else."""
    flat = _only_reader(plan, held, where)
    if flat is None or not _flattens(plan, flat):
        return None
    members, kind = [where, flat], INT64
    cast = _only_reader(plan, held, flat)
    if cast is not None and cast.node.op == "Cast" and cast.node.attr("DstT") is INT32:
        members, kind = [where, flat, cast], INT32
    if not are_free(plan, members):
        return None
    inputs, outputs = (where.data[0],), (Endpoint(members[-1].node.name, 0),)
    items = {item.node.name: item for item in members}
    for endpoint in flat.data[1:]:
        items[endpoint.node] = plan.items[endpoint.node]
    call = _Places(run_apart(items, inputs, outputs), kind.numpy)
    names = frozenset(item.node.name for item in members)
    return PartCall(members[-1].node, names, inputs, outputs, call, takes_run=True)


def _only_reader(plan: Plan, held: Collection[str], item: Item) -> Item | None:
    """Who alone takes a node's output; None of what others see too."""
    found = readers(plan, item)
    return found[0] if len(found) == 1 and item.node.name not in held else None


def _flattens(plan: Plan, item: Item) -> bool:
    """Whether a node makes one axis of Where's rows, each of one place."""
    if item.node.op == "Squeeze":
        return item.node.attr("squeeze_dims", ()) in LAST_AXIS
    if item.node.op != "Reshape" or made_by(plan, item.data[0], "Where") is None:
        return False
    sizes = made_by(plan, item.data[1], "Const")
    return sizes is not None and not sizes.control and sizes.node.tensor.numpy().tolist() == [-1]


class _Places(LayerCall):
    """The places as a call: the Run and the condition in, a vector of this type out."""

    def __init__(self, apart: Callable[..., tuple[Any, ...]], kind: np.dtype[Any]) -> None:
        super().__init__(apart)
        self.kind = kind

    def fused(self, run: Any, *arrays: Any) -> tuple[Any, ...] | None:
        condition = arrays[0]
        if type(condition) is not np.ndarray or condition.ndim != 1 or condition.dtype.kind not in "biuf":
            return None
        return (condition.nonzero()[0].astype(self.kind, copy=False),)
