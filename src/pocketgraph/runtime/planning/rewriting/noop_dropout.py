"""Takes arithmetic out that changes nothing for the values known: a dropout that keeps everything, a division by one.

What a mask is tells passes/dropout_removal.py; here it is decided where in a plan a product with ones may go. Inside of
a loop (a DropoutWrapper around a cell) that is where a value is dead, after the last round, without the mask as well:
what goes round would go round once more otherwise.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from pocketgraph.graph import Graph, Node
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import PASSES, PRODUCTS, QUOTIENTS, SWITCH
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.runtime.engines.compilation_units import Plan

SCALING = PRODUCTS | QUOTIENTS


def without_noop_dropout(graph: Graph, plan: Plan, inferred: Inferred, conditional: Collection[str]) -> Graph:
    """The graph with such nodes replaced by an Identity of what they would give unchanged; the same graph if none.

    The masks themselves stay, for who fetches them.

    Args:
        plan: its needed nodes.
        inferred: types, shapes and values of its tensors.
        conditional: nodes that do not run in every run; they are left alone.
    """
    found = _MaskFinder(plan, inferred)
    changed: dict[str, Node] = {}
    for name, item in plan.items.items():
        if item.node.op not in SCALING or len(item.data) != 2 or name in conditional:
            continue
        for kept, other in ((0, 1), (1, 0))[: 1 if item.node.op in QUOTIENTS else 2]:
            if not found.is_one(item.data[other], item.node.op in PRODUCTS):
                continue
            if not found.same_shape(name, item.data[kept], item.data[other]):
                continue
            if not plan.frames[name].depth or found.ends_with_its_loop(item.data[kept]):
                waits = tuple(f"^{waited}" for waited in item.control)
                attrs = {"T": item.node.attrs["T"]} if "T" in item.node.attrs else {}
                changed[name] = Node(name, "Identity", (str(item.data[kept]), *waits), attrs)
                break
    return graph.replace([changed.get(node.name, node) for node in graph]) if changed else graph


class _MaskFinder:
    """Answers questions about the tensors of a plan."""

    def __init__(self, plan: Plan, inferred: Inferred) -> None:
        self.plan = plan
        self.inferred = inferred
        self._branched: dict[Any, bool] = {}

    def ends_with_its_loop(self, endpoint: Endpoint) -> bool:
        """Whether a tensor inside of a loop is dead when the loop's condition ends it, and in no branch inside."""
        frame = self.plan.frames.get(endpoint.node)
        if endpoint in self.plan.fed or frame is None or self._has_branches(frame):
            return False
        items, ends = self.plan.items, ("Merge", "Enter", "Exit")
        before = closure([endpoint.node], lambda name: (source.node for source in items[name].data),
                         lambda name: items[name].node.op not in ends)  # fmt: skip
        return any(items[name].node.op in SWITCH for name in before)

    def _has_branches(self, frame: Any) -> bool:
        if frame not in self._branched:
            self._branched[frame] = any(
                item.node.op in SWITCH and self.plan.items[item.data[1].node].node.op != "LoopCond"
                for name, item in self.plan.items.items()
                if self.plan.frames[name] == frame
            )
        return self._branched[frame]

    def same_shape(self, name: str, source: Endpoint, ones: Endpoint) -> bool:
        """Whether a node has the shape of its input ``source``; the other one is ``ones``."""
        shape, given = self.inferred.shape(f"{name}:0"), self.inferred.shape(str(source))
        if shape.is_known and given.is_known:
            return shape.known == given.known
        if self.inferred.shape(str(ones)).rank == 0:
            return True
        from pocketgraph.passes.dropout_removal import mask_of

        mask = mask_of(self, str(ones))
        like = self.producer(mask.noise.data_inputs[0]) if mask is not None and mask.noise.data_inputs else None
        if like is None or like.op != "Shape":
            return False
        return self._origin(self.plan.items[like.name].data[0]) == self._origin(source)

    def _origin(self, endpoint: Endpoint) -> Endpoint:
        """The tensor whose shape this one surely has: past what passes it on, and scaling by a number."""
        while endpoint not in self.plan.fed:
            item = self.plan.items.get(endpoint.node)
            if item is None or not item.data:
                break
            scaled = item.node.op in SCALING and self.inferred.shape(str(item.data[1])).rank == 0
            if not scaled and item.node.op not in PASSES:
                break
            endpoint = item.data[0]
        return endpoint

    def is_one(self, endpoint: Endpoint, masks: bool) -> bool:
        """Whether every element is 1; ``masks``: also where random numbers were compared to make it so."""
        from pocketgraph.passes.dropout_removal import is_number, mask_of  # most graphs have no products of tensors

        if is_number(self, str(endpoint), 1):
            return True
        mask = mask_of(self, str(endpoint)) if masks else None
        return mask is not None and mask.keeps_everything

    def value(self, ref: str) -> np.ndarray[Any, Any] | None:
        """The value of a small tensor where it is the same in every run."""
        return self.inferred.value(ref)

    def producer(self, ref: str) -> Node | None:
        """The node that makes a tensor, past those that only pass it on; None for a fed one."""
        endpoint = Endpoint.of(ref)
        while endpoint not in self.plan.fed:
            item = self.plan.items.get(endpoint.node)
            if item is None:
                return None
            enters = item.node.op == "Enter" and item.node.attrs.get("is_constant") is True
            if not item.data or (not enters and item.node.op not in PASSES):
                return item.node
            endpoint = item.data[0]
        return None
