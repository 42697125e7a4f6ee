"""Orders nodes: so that producers come before consumers, and backwards from what is wanted."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pocketgraph.errors import GraphError, did_you_mean
from pocketgraph.graph.graph import Graph
from pocketgraph.graph.node import Node, node_name, parse_ref

MERGES = frozenset({"Merge", "RefMerge", "_XlaMerge"})


def topological(graph: Graph, *, partial: bool = False) -> list[Node]:
    """The nodes in an order in which each comes after its inputs, data and control.

    The order is that of TensorFlow's Graph Transform Tool: the ready nodes are a stack, so the last source of the
    file comes first. A ``Merge`` is ready when its control inputs and one data input are, so while-loops have an
    order too.

    Args:
        graph: the graph.
        partial: leave out the nodes that are in a cycle or behind one, instead of raising.

    Raises:
        GraphError: an input names a node that is not there; or nodes form a cycle without a ``Merge``.
    """
    nodes = list(graph)
    index = {node.name: i for i, node in enumerate(nodes)}
    consumers: list[list[int]] = [[] for _ in nodes]
    pending = []
    ready = []
    for i, node in enumerate(nodes):
        count = len(node.inputs)
        if node.op in MERGES:
            count = len(node.control_inputs) + 1
        pending.append(count)
        if not node.inputs:
            ready.append(i)
        for ref in node.inputs:
            source = index.get(parse_ref(ref).name)
            if source is None:
                raise GraphError(f"unknown input node '{ref}'", where=f"node '{node.name}'")
            consumers[source].append(i)
    order: list[Node] = []
    while ready:
        i = ready.pop()
        order.append(nodes[i])
        for consumer in consumers[i]:
            pending[consumer] -= 1
            if pending[consumer] == 0:
                ready.append(consumer)
    if len(order) < len(nodes) and not partial:
        stuck = [node.name for node, left in zip(nodes, pending, strict=True) if left > 0]
        shown = ", ".join(f"'{name}'" for name in stuck[:3]) + (", …" if len(stuck) > 3 else "")
        raise GraphError(f"{len(nodes) - len(order)} nodes are in a cycle or behind one: {shown}")
    return order


def reachable(graph: Graph, outputs: Iterable[str], *, stop: Collection[str] = ()) -> set[str]:
    """The names of the nodes that ``outputs`` need, themselves included.

    Args:
        graph: the graph.
        outputs: node or tensor names.
        stop: node or tensor names of nodes whose own inputs are not needed (because they will be fed).

    Raises:
        GraphError: an output or an input on the way is not in the graph.
    """
    stops = {node_name(name) for name in stop}
    found: set[str] = set()
    todo = [(node_name(name), "") for name in outputs]
    while todo:
        name, wanted_by = todo.pop()
        if name in found:
            continue
        node = graph.nodes.get(name)
        if node is None:
            if wanted_by:
                raise GraphError(f"unknown input node '{name}'", where=f"node '{wanted_by}'")
            raise GraphError(f"the graph has no node '{name}'", hint=did_you_mean(name, graph.nodes))
        found.add(name)
        if name not in stops:
            todo.extend((parse_ref(ref).name, name) for ref in node.inputs)
    return found
