"""Removes nodes, what then nobody reads, and what then has nothing left to do, by the original's count of readers."""

from __future__ import annotations

from collections.abc import Iterable

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph, Node

NEED_TWO = frozenset({"Assign", "Reshape", "Equal", "Mean", "ScalarSummary"})  # pointless with one input
"""Not a trait: ops that are pointless once one of their two inputs is gone."""


class ReaderCounts:
    """How often each reference is read, as the original counts: by its spelling without ``^``."""

    def __init__(self, graph: Graph) -> None:
        self.counts: dict[str, int] = {}
        for node in graph:
            for ref in node.inputs:
                self.add(ref)

    def add(self, ref: str, by: int = 1) -> int:
        """Counts one reader more, or so many, and gives back how many there are."""
        key = ref.replace("^", "")
        self.counts[key] = self.counts.get(key, 0) + by
        return self.counts[key]

    def unread(self, protected: Iterable[str]) -> list[str]:
        """What lost all its readers, after forgetting about ``protected``."""
        for name in protected:
            self.counts.pop(name, None)
        return [name for name, count in self.counts.items() if count == 0]


def without(graph: Graph, names: list[str], readers: ReaderCounts) -> Graph:
    """The graph without these nodes and what they leave behind.

    References to them are dropped. A ConcatV2 goes on with the values that are left, as an Identity with the last one.

    Raises:
        TransformError: a ConcatV2 loses all its values, or shares the axis that it no longer needs.
    """
    nodes = dict(graph.nodes)
    by_ref: dict[str, set[str]] = {}
    for node in graph:
        for ref in node.inputs:
            by_ref.setdefault(ref.removeprefix("^"), set()).add(node.name)
    place = {name: i for i, name in enumerate(nodes)}
    todo = list(names)
    while todo:
        name = todo.pop()
        # in the graph's order, as what is removed first decides what the counts say later
        touched = sorted({name, *by_ref.pop(name, ())} & nodes.keys(), key=place.__getitem__)
        for other in touched:
            node = nodes[other]
            if other == name and node.op != "RestoreV2":
                todo += [ref.replace("^", "") for ref in node.inputs if readers.add(ref, -1) == 0]
                del nodes[name]
                continue
            inputs = [ref for ref in node.inputs if ref.removeprefix("^") != name]
            if len(inputs) == len(node.inputs):
                continue
            node = node.replace(inputs=inputs)
            if node.op == "ConcatV2":
                node, axis = _shortened(node, readers)
                todo += axis
            nodes[other] = node
            if (node.op in NEED_TWO and len(node.inputs) == 1) or not node.inputs:
                todo.append(other)
    return graph.replace(nodes.values())


def _shortened(concat: Node, readers: ReaderCounts) -> tuple[Node, list[str]]:
    """A ConcatV2 that lost values, and what else is to be removed."""
    count = len(concat.inputs)
    if count > 2:
        return concat.with_attrs(N=count - 1), []
    if count < 2:
        raise TransformError("ConcatV2 should have at least two elements", where=f"node '{concat.name}'")
    axis = concat.inputs[1]
    if readers.counts.get(axis) != 1:
        raise TransformError(
            "Expect axis tensor of ConcatV2 node to only be referenced once", where=f"node '{concat.name}'"
        )
    readers.add(axis, -1)
    return concat.replace(op="Identity", inputs=concat.inputs[:1]).with_attrs(N=None), [axis]
