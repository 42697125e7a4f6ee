"""Keeps one of several nodes that compute the same."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from pocketgraph.errors import TransformError, did_you_mean
from pocketgraph.graph import Graph, Node, canonical, node_name, opdefs, parse_ref
from pocketgraph.transforms._compat import Compat
from pocketgraph.transforms._node_hash import node_hash
from pocketgraph.transforms._node_keys import static_keys
from pocketgraph.transforms.tool import transform


@transform
def merge_duplicate_nodes(graph: Graph, *, compat: Compat = Compat.FIXED) -> Graph:
    """Merges nodes of the same op, inputs, device and attributes, until there are none left.

    Given:   a = Const(int32 3)
             b = Const(int32 3)
             y = Add(a, b, T=int32)
    Result:  a = Const(int32 3)
             y = Add(a, a, T=int32)

    Stateful ops, such as random ones, stay apart, and so do inputs and outputs of the graph. Constants are the same
    when their encoded values are.

    Differs from the original: the nodes keep their order (there, they come out shuffled); names of inputs and outputs
    may have a port; calls of the library's functions stay apart (there, they are an error).

    Raises:
        TransformError: an op is unknown.
    """
    merger = _Merger(graph, compat)
    changed: Iterable[str] = graph.nodes
    while changed:
        changed = merger.redirect(merger.duplicates(changed))
    if compat.original:  # the order decides on the names that rules keep which are run afterwards
        return graph.replace(
            sorted(merger.nodes.values(), key=lambda node: node_hash(node, with_name=node.name in merger.protected))
        )
    return graph if len(merger.nodes) == len(graph) else graph.replace(merger.nodes.values())


class _Merger:
    """Works in rounds, as the original does, but looks only at the nodes whose inputs the last round changed.

    Attributes:
        nodes: those that are left, by name, in the graph's order.
        kept: the one node that has each key.
        keys: each node's key in ``kept``.
        before: the nodes that the last round changed, as they were before; None in the first round.
    """

    def __init__(self, graph: Graph, compat: Compat) -> None:
        self.nodes = dict(graph.nodes)
        self.kept: dict[Hashable, str] = {}
        self.keys: dict[str, Hashable] = {}
        self.before: dict[str, Node] | None = None
        self.place = {name: place for place, name in enumerate(graph.nodes)}
        fetched = (*graph.inputs, *graph.outputs)
        self.protected = set(fetched) if compat.original else {node_name(ref) for ref in fetched}
        self.apart = _ops_that_stay_apart(graph, compat)
        self.static = static_keys(graph)
        self.consumers = {name: {node.name for node in users} for name, users in graph.consumers.items()}

    def duplicates(self, changed: Iterable[str]) -> dict[str, str]:
        """Drops duplicates of and among the ``changed`` nodes; gives the name that each is replaced by."""
        candidates = [name for name in changed if self.nodes[name].op not in self.apart]
        for name in candidates:
            key = self.keys.get(name)
            if self.kept.get(key) == name:
                del self.kept[key]
        groups: dict[Hashable, list[str]] = {}
        for name in candidates:
            inputs = tuple(canonical(ref) for ref in self.nodes[name].inputs)
            key = (self.static[name], inputs, name if name in self.protected else "")
            self.keys[name] = key
            groups.setdefault(key, [self.kept[key]] if key in self.kept else []).append(name)
        renames: dict[str, str] = {}
        for key, names in groups.items():
            first = names[0] if len(names) == 1 else min(names, key=self.rank)
            self.kept[key] = first
            renames.update((name, first) for name in names if name != first)
        for name in renames:
            del self.nodes[name]
        return renames

    def rank(self, name: str) -> int:
        """Where a node stands among others: the first round goes by the graph, and the next by the hashes of the last
        (the nodes as they were then), which is how the original comes to the names that it keeps."""
        if self.before is None:
            return self.place[name]
        return node_hash(self.before.get(name) or self.nodes[name], with_name=name in self.protected)

    def redirect(self, renames: dict[str, str]) -> list[str]:
        """Makes the consumers of dropped nodes read what replaced them; gives the consumers, in the graph's order."""
        touched = {user for name in renames for user in self.consumers.get(name, ()) if user in self.nodes}
        for name, kept in renames.items():
            self.consumers.setdefault(kept, set()).update(self.consumers.pop(name, ()))
        self.before = {name: self.nodes[name] for name in touched}
        for name, node in self.before.items():
            self.nodes[name] = node.replace(inputs=[_renamed(ref, renames) for ref in node.inputs])
        return sorted(touched, key=self.place.__getitem__)


def _renamed(ref: str, renames: dict[str, str]) -> str:
    name = parse_ref(ref).name
    return ref.replace(name, renames[name], 1) if name in renames else ref


def _ops_that_stay_apart(graph: Graph, compat: Compat) -> set[str]:
    """Ops with a state of their own, and functions, which may call such ops."""
    apart: set[str] = set() if compat.original else set(graph.functions)
    for node in graph:
        if node.op in apart:
            continue
        found = opdefs.find(node.op)
        if found is None:
            hint = did_you_mean(node.op, opdefs.names())
            raise TransformError(f"Op type not registered '{node.op}'", where=f"node '{node.name}'", hint=hint)
        if found.stateful:
            apart.add(node.op)
    return apart
