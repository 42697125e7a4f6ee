"""What follows from a graph's constants alone, worked out where it is asked for and no further.

The values that inference of shapes finds (kernels/shapes/partial_values.py) are another thing: it walks the whole
graph, knows what the feeds' shapes tell, and of integers also a part.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Node, Tensor, node_name, opdefs, parse_ref
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.tensor import Array

LARGEST = 64  # elements; predicates are scalars, and what they are computed from is hardly more
MOST_NODES = 200  # a value that needs more nodes in a row than these is not looked through

_NEVER = ops_with("placeholder", "control_flow")


class ConstantValues:
    """The values of tensors that follow from constants alone, each computed once.

    ::

        one = Const(float 1.0)
        keep = Const(float 0.75)
        rate = Sub(one, keep)          value("rate") is 0.25
        y = Mul(x, rate)               value("y") is None
    """

    def __init__(
        self, nodes: Mapping[str, Node], *, ops: Collection[str] | None = None, largest: int = LARGEST
    ) -> None:
        """For a table of nodes, which may lose some meanwhile.

        Args:
            nodes: by name, as ``Graph.nodes``.
            ops: those that are computed, where nothing waits by a control input; by default all that have no state.
            largest: the elements of the largest tensor that is read or computed.
        """
        self._nodes = nodes
        self._ops = ops
        self._largest = largest
        self._values: dict[str, tuple[Array, ...] | None] = {}

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

    def _outputs(self, name: str) -> tuple[Array, ...] | None:
        """The outputs of a node; what is behind it is walked without recursion, since a file may chain any number."""
        waiting = [name]
        path: set[str] = set()
        while waiting:
            current = waiting[-1]
            node = self._nodes.get(current)
            if current in self._values:
                waiting.pop()
                continue
            if node is None or not self._is_computable(node) or len(path) > MOST_NODES:
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

    def _is_computable(self, node: Node) -> bool:
        if node.op == "Const":
            return True
        if not node.data_inputs:
            return False
        if self._ops is not None:
            return node.op in self._ops and not node.control_inputs
        return node.op not in _NEVER and not opdefs.is_stateful(node.op)

    def _computed(self, node: Node) -> tuple[Array, ...] | None:
        if node.op == "Const":
            tensor = node.attrs.get("value")
            return (tensor.numpy(),) if isinstance(tensor, Tensor) and tensor.size <= self._largest else None
        inputs = [value for ref in node.data_inputs if (value := self.value(ref)) is not None]
        if len(inputs) < len(node.data_inputs):
            return None
        sizes = np.array([max(1, value.size) for value in inputs], np.float64)
        if self._ops is not None and np.prod(sizes) > self._largest * LARGEST:
            return None  # broadcasting might make that many
        from pocketgraph.kernels import registry

        try:
            values = registry.evaluate(node, inputs)
        except (PocketgraphError, ArithmeticError, LookupError, ValueError, TypeError):
            return None
        small = all(isinstance(v, np.ndarray | np.generic) and np.size(v) <= self._largest for v in values)
        return tuple(np.asarray(value) for value in values) if small else None
