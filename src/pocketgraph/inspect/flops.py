"""How many floating point operations a graph takes, counted by the formulas in flop_formulas.py.

The original tool counts four ops only (``ORIGINAL``); its formulas are those of stat_summarizer and benchmark_model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pocketgraph.graph import DType, Graph, Node, Shape, canonical, node_name
from pocketgraph.graph.op_traits import PASSES_OR_ROUTES
from pocketgraph.inspect.flop_formulas import FORMULAS, FREE, Formula, Sizes
from pocketgraph.inspect.litert_flop_formulas import LITERT_FORMULAS, LITERT_FREE

ORIGINAL = frozenset(("Conv2D", "MatMul", "QuantizedConv2D", "QuantizedMatMul", "DepthwiseConv2dNative"))
"""Not a trait: what the original benchmark_model counts."""
MOST_PASSED = 20  # such nodes in a row


@dataclass
class Flops:
    """Operations of a graph.

    Attributes:
        by_node: operations of each node, all its executions together; nodes that cost nothing are left out.
        by_op: the same by op type.
        original: what the original tool counts.
        unknown: nodes whose shapes are not known.
        uncounted: op types without a formula.
    """

    by_node: dict[str, int] = field(default_factory=dict)
    by_op: dict[str, int] = field(default_factory=dict)
    original: int = 0
    unknown: list[str] = field(default_factory=list)
    uncounted: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Operations of all nodes together."""
        return sum(self.by_node.values())

    def as_dict(self) -> dict[str, Any]:
        """For JSON, without single nodes."""
        return {
            "total": self.total, "original": self.original, "by_op": self.by_op, "unknown": self.unknown,
            "uncounted": self.uncounted,
        }  # fmt: skip


def count(
    nodes: Iterable[Node], shapes: Mapping[str, Sizes | None], executions: Mapping[str, float] | None = None
) -> Flops:
    """Counts the operations of these nodes.

    Args:
        shapes: the shape of each tensor (``name:port``), None where it is not known.
        executions: how often a node runs in one run, where that is not once.
    """
    found = Flops()
    for node in nodes:
        if node.op in FREE or node.op in LITERT_FREE:
            continue
        formula = FORMULAS.get(node.op) or LITERT_FORMULAS.get(node.op)
        if formula is None:
            found.uncounted[node.op] = found.uncounted.get(node.op, 0) + 1
            continue
        cost = _cost(formula, node, shapes)
        if cost is None:
            found.unknown.append(node.name)
            continue
        if node.op in ORIGINAL:
            found.original += cost
        cost = round(cost * (executions or {}).get(node.name, 1))
        if cost:
            found.by_node[node.name] = cost
            found.by_op[node.op] = found.by_op.get(node.op, 0) + cost
    return found


def count_graph(
    graph: Graph,
    feeds: Mapping[str, Sizes],
    nodes: Iterable[Node] | None = None,
    seen: Mapping[str, Sizes] | None = None,
    executions: Mapping[str, float] | None = None,
) -> Flops:
    """Counts the operations of a graph whose shapes follow from what is fed.

    Args:
        feeds: the shapes that are fed, by tensor name.
        nodes: which to count; all of them by default.
        seen: shapes that a run has shown, by tensor name, for what cannot be told beforehand.
        executions: as for ``count``.
    """
    from pocketgraph.kernels.shapes import infer

    given = {}
    for name, sizes in feeds.items():
        dtype = graph.producer(name).attr("dtype")
        given[canonical(name)] = (dtype if isinstance(dtype, DType) else DType.named("float"), Shape(sizes))
    inferred = infer(graph, given)
    chosen = list(graph if nodes is None else nodes)
    shapes: dict[str, Sizes | None] = {}
    for node in chosen:
        for tensor in [*map(canonical, node.data_inputs), f"{node.name}:0"]:
            if tensor not in shapes:
                shapes[tensor] = _shape_of(graph, tensor, inferred, seen or {})
    return count(chosen, shapes, executions)


def _shape_of(graph: Graph, tensor: str, inferred: Any, seen: Mapping[str, Sizes]) -> Sizes | None:
    """A tensor's shape: inferred, seen in a run, or that of what a node of control flow passes on."""
    for _ in range(MOST_PASSED):
        shape = inferred.shape(tensor)
        if shape.is_known:
            return tuple(shape.known)
        if tensor in seen:
            return seen[tensor]
        node = graph.nodes.get(node_name(tensor))
        if node is None or node.op not in PASSES_OR_ROUTES or not node.data_inputs:
            return None
        tensor = canonical(node.data_inputs[0])
    return None


def _cost(formula: Formula, node: Node, shapes: Mapping[str, Sizes | None]) -> int | None:
    # A formula looks at the shapes that it needs; only a missing one of these makes the cost unknown.
    missing: Sizes = (-1,)
    inputs = [shapes.get(canonical(ref)) for ref in node.data_inputs]
    output = shapes.get(f"{node.name}:0")
    try:
        cost = formula(node, [missing if s is None else s for s in inputs], [missing if output is None else output])
    except (IndexError, KeyError, ValueError, TypeError):
        return None
    return cost if cost >= 0 else None
