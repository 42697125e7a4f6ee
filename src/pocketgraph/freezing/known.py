"""Which values a graph knows before it runs: predicates and other small results of constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Node, Tensor, node_name, parse_ref
from pocketgraph.graph.op_traits import ops_with

LARGEST = 64  # elements; predicates are scalars, and what they are computed from is hardly more
MOST_NODES = 200  # a predicate that needs more nodes than these is not looked through

Array = np.ndarray[Any, Any]
_NEVER = ops_with("placeholder", "control_flow")


class Known:
    """The values of a graph's tensors that follow from its constants alone."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._values: dict[str, tuple[Any, ...] | None] = {}

    def value(self, ref: str) -> Array | None:
        """What a tensor always is, when it is small and follows from small constants; else None."""
        name, port, control = parse_ref(ref)
        if control:
            return None
        values = self._outputs(name)
        return values[port] if values is not None and port < len(values) else None

    def truth(self, ref: str) -> bool | None:
        """Which way a predicate always goes, or None: numbers that are not 0 and strings that are not empty hold."""
        value = self.value(ref)
        if value is None:
            return None
        if value.ndim:
            return value.size > 0
        return bool(value[()])

    def _outputs(self, name: str) -> tuple[Any, ...] | None:
        """The outputs of a node; what is behind it is walked without recursion, since a file may chain any number."""
        waiting = [name]
        path: set[str] = set()
        while waiting:
            current = waiting[-1]
            node = self._graph.nodes.get(current)
            if current in self._values:
                waiting.pop()
                continue
            if node is None or not _computable(node) or len(path) > MOST_NODES:
                self._values[current] = None
                continue
            sources = [node_name(ref) for ref in node.data_inputs]
            unknown = [source for source in sources if source not in self._values]
            if unknown and current not in path:
                path.add(current)
                waiting.extend(unknown)
                continue
            # what is still unknown after its turn hangs on this very node: a circle
            self._values[current] = None if unknown else self._computed(node)
        return self._values[name]

    def _computed(self, node: Node) -> tuple[Any, ...] | None:
        if node.op == "Const":
            value = node.attrs.get("value")
            small = isinstance(value, Tensor) and value.size <= LARGEST
            return (value.numpy(),) if isinstance(value, Tensor) and small else None
        inputs = [self.value(ref) for ref in node.data_inputs]
        if any(value is None for value in inputs):
            return None
        from pocketgraph.kernels import registry

        try:
            values = registry.evaluate(node, inputs)
        except PocketgraphError:
            return None
        small = all(isinstance(v, np.ndarray | np.generic) and np.size(v) <= LARGEST for v in values)
        return tuple(np.asarray(value) for value in values) if small else None


def _computable(node: Node) -> bool:
    if node.op == "Const":
        return True
    if node.op in _NEVER or not node.data_inputs:
        return False
    from pocketgraph.graph import opdefs

    definition = opdefs.find(node.op)
    return definition is not None and not definition.stateful
