"""The graph that a loop is written out into: new nodes, constants, what is computed already, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pocketgraph.graph import DType, Graph, Node, const
from pocketgraph.graph.dtype import INT32
from pocketgraph.kernels import registry
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.runtime.engines.units import Plan
from pocketgraph.runtime.names import Endpoint
from pocketgraph.runtime.unrolling.values import (
    COUNTED,
    MOST_KNOWN,
    MOST_NODES,
    CannotUnrollError,
    Held,
    Known,
    Ref,
    Value,
)


@dataclass
class Writing:
    """A graph in the making.

    Attributes:
        graph, plan, inferred: the graph, its needed nodes, and what is known of its tensors.
        kept: nodes that are fetched or targets.
        fresh: the new nodes.
        replaced: nodes of the graph that become others of the same name.
        arrays: what each TensorArray outside of loops holds.
        guards: the assertions of the round at hand that a node stands for.
        gone: nodes of loops that are written out.
        hollow: nodes whose TensorArray nobody looks at any more.
    """

    graph: Graph
    plan: Plan
    inferred: Inferred
    kept: frozenset[str]
    fresh: dict[str, Node] = field(default_factory=dict)
    replaced: dict[str, Node] = field(default_factory=dict)
    arrays: dict[Endpoint, Held] = field(default_factory=dict)
    guards: dict[str, tuple[str, ...]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    hollow: set[str] = field(default_factory=set)

    # Undoing

    def mark(self) -> tuple[Any, ...]:
        return dict(self.fresh), dict(self.replaced), dict(self.arrays), {}, set(self.gone), set(self.hollow)

    def back_to(self, mark: tuple[Any, ...]) -> None:
        self.fresh, self.replaced, self.arrays, self.guards, self.gone, self.hollow = mark

    # New nodes

    def name(self, wanted: str) -> str:
        while wanted in self.fresh or wanted in self.graph.nodes:
            wanted += "_"
        return wanted

    def add(self, node: Node) -> str:
        if len(self.fresh) >= MOST_NODES:
            raise CannotUnrollError("too many nodes")
        self.fresh[node.name] = node
        return node.name

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        name = f"known/{array.dtype.name}{list(array.shape)}/{array.tobytes().hex()}" if array.size <= 16 else ""
        if not name or name not in self.fresh:
            name = self.name(
                name.replace(" ", "").replace(",", "x").replace("[", "_").replace("]", "") or "known/value"
            )
            name = self.add(const(name, array, DType.of_numpy(array.dtype)))
        return name

    def text(self, value: Value) -> str:
        """A value as a node's input."""
        if isinstance(value, Ref):
            return value.name
        if isinstance(value, Known):
            return self.constant(value.array)
        raise CannotUnrollError("a TensorArray is used in an unknown way")

    def computed(self, node: Node, data: Sequence[Value]) -> list[Value] | None:
        """The outputs of a node that counts, when its inputs are known."""
        if node.op == "Shape":
            value = self.inferred.value(f"{node.name}:0")
            return None if value is None else [Known(np.asarray(value, node.attr("out_type", INT32).numpy))]
        if node.op not in COUNTED or not all(isinstance(v, Known) and v.array.dtype.kind in "iub" for v in data):
            return None
        found = registry.find(node.op)
        if found is None or found.takes_context:
            return None
        arrays = [value.array for value in data if isinstance(value, Known)]
        made = found.function(*arrays, **registry.arguments(found, node))
        outputs = made if isinstance(made, tuple) else (made,)
        arrays = [np.asarray(value) for value in outputs]
        if any(a.size > MOST_KNOWN or a.dtype.kind not in "iub" for a in arrays):
            return None
        return [Known(a) for a in arrays]
