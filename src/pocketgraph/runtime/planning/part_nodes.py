"""A graph with one node in the place of each compiled part, and without the nodes that the parts compute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pocketgraph.graph import Node
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.planning.compiled_part import CompiledPart

PREFIX = "litert_segment"


class PartNodes:
    """One node for each compiled part of a graph, which is left without the nodes inside of them.

    Args:
        feeds: the fed tensors, which keep their names.
        made: the compiled parts.

    Attributes:
        fed: the fed tensors.
        names: the name of each part's node.
        home: the part's node for each node that a part computes.
    """

    def __init__(self, feeds: Iterable[Endpoint], made: Sequence[CompiledPart]) -> None:
        self.fed = set(feeds)
        self.names = [f"{PREFIX}_{index}" for index in range(len(made))]
        self._parts = list(zip(self.names, made, strict=True))
        self.home = {name: part_node for part_node, part in self._parts for name in part.ops}
        self._moved = {
            endpoint: Endpoint(part_node, port)
            for part_node, part in self._parts
            for port, endpoint in enumerate(part.outputs)
        }

    def moved(self, endpoint: Endpoint) -> Endpoint:
        """Where a tensor comes from now."""
        return endpoint if endpoint in self.fed else self._moved.get(endpoint, endpoint)

    def spelled(self, endpoints: Iterable[Endpoint]) -> list[str]:
        """Where tensors come from now, as inputs name them."""
        return [str(self.moved(endpoint)) for endpoint in endpoints]

    def nodes(self, feeds: Iterable[Endpoint], items: Mapping[str, Item]) -> list[Node]:
        """The nodes of the graph that is left: fed ones, those that no part computes, and the parts'."""
        nodes = [Node(endpoint.node, "Placeholder") for endpoint in feeds if endpoint.node not in items]
        for name, item in items.items():
            if name not in self.home:
                is_source = not (item.data or item.control)  # as constants are, which most nodes are
                moved = item.node if is_source else item.node.replace(inputs=self._rewired(item.data, item.control, ""))
                nodes.append(moved)
        for part_node, part in self._parts:
            waits = [control for name in part.ops for control in items[name].control]
            nodes.append(Node(part_node, "NoOp", self._rewired(part.inputs, waits, part_node)))
        return nodes

    def _rewired(self, data: Sequence[Endpoint], control: Sequence[str], own: str) -> list[str]:
        waits = dict.fromkeys(self.home.get(name, name) for name in control)
        waits.pop(own, None)
        return [*self.spelled(data), *(f"^{name}" for name in waits)]

    def listed(self) -> list[tuple[Any, ...]]:
        """What ``find`` wants of each part: its node, what finds it, its inputs, how many outputs, its ops."""
        parts: list[tuple[Any, ...]] = []
        for part_node, part in self._parts:
            assert part.found_by is not None
            parts.append((part_node, *part.found_by, self.spelled(part.inputs), len(part.outputs), part.ops))
        return parts
