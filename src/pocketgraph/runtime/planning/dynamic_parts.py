"""Parts of a graph that are planned when they run, once for each shape they run with.

Inside loops, branches and functions, and after tensors whose size depends on values, shapes are known only in the run.
There each heavy part is a small graph of its own: when it is called with shapes not seen before it is planned like any
graph, so that LiteRT takes what it can, and kept for the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pocketgraph.graph import DType, Graph, Node
from pocketgraph.graph.dtype import RESOURCE, VARIANT
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.engines.compilation_units import PartCall, Plan
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.op_weights import HEAVY
from pocketgraph.runtime.planning.call_times import is_worth_it
from pocketgraph.runtime.planning.dynamic_part import DynamicPart, Planned
from pocketgraph.runtime.planning.value_keyed_part import ValueKeyedPart, sized_inputs
from pocketgraph.runtime.warm_start import Executable

Array = np.ndarray[Any, Any]
KeptPart = tuple[str, list[str], list[Endpoint], list[Endpoint]]
"""A part as it is kept between processes: the node that it is called by, its nodes, what it takes, what it gives."""

FEW_SCORES = 4096  # that NumPy sorts out (a millisecond) before LiteRT is made ready to do it, which takes ten
PASSED_ON = ("Identity", "Enter", "StopGradient", "Snapshot", "PreventGradient")
REFUSED = ("string", "double", "complex64", "complex128", "resource", "variant")


class DynamicParts:
    """Says which nodes may be planned when they run, and makes the calls (see engines/dynamic_part_search.py).

    Args:
        graph: where constants and functions are found.
        plan: plans a part: (the part, feeds with type and shape, fetches, key, whether by steps).
        key: names the request across processes; "" when nothing may be kept.
        able: the nodes that may be in a dynamic part; None for all (the body of a function).
        static: nodes whose outputs are the same in every run.
        from_cache: finds what an earlier process compiled for (key, arrays by name, fetches).
        parts: what an earlier process found to be the parts; None: they are to be found.
    """

    def __init__(
        self,
        graph: Graph,
        plan: Callable[[DynamicPart, Mapping[Endpoint, Any], tuple[Endpoint, ...], str, bool], Planned],
        key: str,
        able: Collection[str] | None = None,
        static: Collection[str] = (),
        from_cache: Callable[[str, Mapping[str, Array], Sequence[str]], Executable | None] | None = None,
        *,
        parts: Sequence[KeptPart] | None = None,
    ) -> None:
        self.graph = graph
        self.plan = plan
        self.key = key
        self.able = able
        self.static = static
        self.from_cache = from_cache
        self.parts = parts
        self._is_static: dict[tuple[int, str], bool] = {}
        self._scores = 0  # that were sorted out so far
        self._lowered: Collection[str] | None = None

    def for_bodies(self) -> DynamicParts:
        """The same for the bodies of functions, whose nodes have names of their own."""
        return DynamicParts(self.graph, self.plan, f"{self.key} body" if self.key else "", None, (), self.from_cache)

    def is_heavy(self, item: Item) -> bool:
        return item.node.op in HEAVY and self.is_able(item)

    def is_worth_it(self, items: Sequence[Item], plan: Plan, tensors: int) -> bool:
        return is_worth_it(items, plan, tensors)

    def is_able(self, item: Item) -> bool:
        if self._lowered is None:
            from pocketgraph.litert.lowerings import LOWERINGS

            self._lowered = LOWERINGS.keys()
        node = item.node
        if node.op not in self._lowered or (self.able is not None and node.name not in self.able):
            return False
        return not any(isinstance(v, DType) and (v.name in REFUSED or v.is_ref) for v in node.attrs.values())

    def is_static(self, name: str, plan: Plan) -> bool:
        key = (id(plan), name)
        found = self._is_static.get(key)
        if found is None:
            found = self._is_static[key] = self._static(name, plan)
        return found

    def _static(self, name: str, plan: Plan) -> bool:
        asked = name
        for _ in range(len(plan.items)):
            item = plan.items.get(name)
            if item is None:
                return False
            if name in self.static:
                return True
            if item.node.op == "Const":  # what a Const waits for, those who take it wait for too (units.waits_of)
                return name == asked or not item.control
            passes = (item.node.op in PASSED_ON and len(item.data) == 1) or item.node.op == "Switch"
            if not passes or item.control or item.data[0] in plan.fed:
                return False
            if item.node.op == "Enter" and not item.node.attr("is_constant", False):
                return False
            name = item.data[0].node
        return False

    def decided(self, plan: Plan) -> list[PartCall] | None:
        if self.parts is None:
            return None
        return [
            PartCall(
                Node(heaviest, plan.items[heaviest].node.op), frozenset(members), tuple(inputs), tuple(outputs),
                self.call(plan, members, inputs, outputs), is_dynamic=True,
            )
            for heaviest, members, inputs, outputs in self.parts
        ]  # fmt: skip

    def quicker(self, node: Node, call: Callable[..., Any]) -> Callable[..., Any]:
        if "NonMaxSuppression" not in node.op:  # as cheap as can be: it is asked for every node
            return call
        quick: Callable[..., Any] | None = None

        def suppression(*inputs: Any) -> Any:
            nonlocal quick
            if quick is None:
                self._scores += inputs[1].size
                if self._scores <= FEW_SCORES:
                    return call(*inputs)
                from pocketgraph.litert.suppression import HELPED, quicker

                quick = quicker(node, call) if node.op in HELPED else call
            return quick(*inputs)

        return suppression

    def call(
        self, plan: Plan, members: Sequence[str], inputs: Sequence[Endpoint], outputs: Sequence[Endpoint]
    ) -> DynamicPart | ValueKeyedPart:
        """A part as a call; its nodes' waiting for others is seen to by the caller."""
        taken = {endpoint: f"given_{index}" for index, endpoint in enumerate(inputs)}
        while any(name in plan.items for name in taken.values()):
            taken = {endpoint: f"{name}_" for endpoint, name in taken.items()}
        key = f"{self.key}|{members[0]} {len(members)}" if self.key else ""
        made = partial(self._graph_of, plan, tuple(members), taken)
        part = DynamicPart(self, made, tuple(members), tuple(taken.values()), tuple(outputs), key)
        sized = sized_inputs(plan, set(members), inputs)
        return ValueKeyedPart(part, sized) if sized else part

    def _graph_of(self, plan: Plan, members: Sequence[str], taken: Mapping[Endpoint, str]) -> Graph:
        """The nodes of a part with what they read from outside, the ``taken``, as placeholders."""
        nodes: dict[str, Node] = {name: Node(name, "Placeholder") for name in taken.values()}
        waiting = list(members)
        while waiting:
            name = waiting.pop()
            if name in nodes:
                continue
            item = plan.items[name]
            op, attrs = item.node.op, item.node.attrs
            if op == "Enter":
                op, attrs = "Identity", {"T": attrs["T"]} if "T" in attrs else {}
            known = {
                e for e in item.data if e in taken and _is_constant(e, plan)
            }  # given to tell whether the part runs
            data = [e if e in taken and e not in known else _before_switches(e, plan) for e in item.data]
            nodes[name] = Node(name, op, [str(e) if e in known else taken.get(e) or str(e) for e in data], attrs)
            waiting.extend(e.node for e in data if e not in taken or e in known)
        return self.graph.replace(nodes.values(), inputs=(), outputs=(), signatures={})


def _is_constant(endpoint: Endpoint, plan: Plan) -> bool:
    """Whether a tensor has one value, be it that it is there on one branch only."""
    item = plan.items.get(endpoint.node)
    return item is not None and item.node.op == "Const" and endpoint not in plan.fed


def _before_switches(endpoint: Endpoint, plan: Plan) -> Endpoint:
    """What a Switch passes on: inside of a part that runs, every Switch before it has passed its input on."""
    item = plan.items.get(endpoint.node)
    while item is not None and item.node.op == "Switch" and endpoint not in plan.fed:
        endpoint = item.data[0]
        item = plan.items.get(endpoint.node)
    return endpoint


def may_be_dynamic(item: Item, shape_of: Callable[[str], Any], dtype_of: Callable[[str], DType | None]) -> bool:
    """Whether a node outside of loops and branches waits for the run only to learn its inputs' shapes."""
    unknown = False
    for endpoint in item.data:
        dtype = dtype_of(str(endpoint))
        if dtype is not None and (dtype.base in (RESOURCE, VARIANT) or dtype.is_ref):
            return False
        unknown |= not shape_of(str(endpoint)).is_known
    return unknown
