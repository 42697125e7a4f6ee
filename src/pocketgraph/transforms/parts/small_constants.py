"""The values of nodes that a few constants make: what batch normalizations are spelled with before folding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Node, Tensor, parse_ref
from pocketgraph.kernels import registry

Array = np.ndarray[Any, Any]

COMPUTED = frozenset({
    "Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "Neg", "Rsqrt", "Sqrt", "Square", "Reciprocal", "Inv", "Reshape",
    "ExpandDims", "Squeeze", "Maximum",
})  # fmt: skip
"""Not a trait: what batch norms are made of, computed here to tell whether weights are degenerate."""
DEEPEST = 24  # nodes in a row; a spelled-out batch normalization has five
LARGEST = 1 << 20  # elements; parameters of channels are far smaller


class Constants:
    """Computes constant tensors of a table of nodes, each once; the table may lose nodes meanwhile."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self._nodes = nodes
        self._known: dict[str, Array | None] = {}

    def value(self, ref: str) -> Array | None:
        """The value of a reference; None when it is not constant, or not of a few small constants."""
        name, port, control = parse_ref(ref)
        return None if control or port != 0 else self._value(name, DEEPEST)

    def _value(self, name: str, depth: int) -> Array | None:
        if name in self._known:
            return self._known[name]
        node = self._nodes.get(name)
        if node is None or depth == 0:
            return None
        found = self._computed(node, depth)
        self._known[name] = found
        return found

    def _computed(self, node: Node, depth: int) -> Array | None:
        if node.op == "Const":
            tensor = node.attrs.get("value")
            return tensor.numpy() if isinstance(tensor, Tensor) and tensor.size <= LARGEST else None
        if node.op not in COMPUTED or node.control_inputs or not node.data_inputs:
            return None
        inputs = []
        for ref in node.data_inputs:
            source, port, _ = parse_ref(ref)
            value = self._value(source, depth - 1) if port == 0 else None
            if value is None:
                return None
            inputs.append(value)
        if np.prod(np.array([max(1, value.size) for value in inputs], np.float64)) > LARGEST * 64:
            return None
        try:
            with np.errstate(all="ignore"):
                result = np.asarray(registry.evaluate(node, inputs)[0])
        except (PocketgraphError, ArithmeticError, LookupError, ValueError, TypeError):
            return None
        return result if result.size <= LARGEST else None
