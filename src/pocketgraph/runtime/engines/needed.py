"""The part of a graph that a run needs: everything its fetches and targets reach without passing a feed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from pocketgraph.errors import RunError, did_you_mean
from pocketgraph.graph import Graph, Node, parse_ref
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.groups import by_key, closure


class Item(NamedTuple):
    """A needed node with its inputs taken apart.

    Attributes:
        data: the tensors it consumes.
        control: the nodes it waits for.
    """

    node: Node
    data: tuple[Endpoint, ...]
    control: tuple[str, ...]


PASSES = ("Identity", "Switch")
"""Ops that pass a variable on within its loop."""
_new_tuple = tuple.__new__


def item_of(node: Node) -> Item:
    """A node with its inputs taken apart."""
    data, control = [], []
    for text in node.inputs:
        if ":" not in text and text[:1] != "^":
            data.append(_new_tuple(Endpoint, (text, 0)))  # as Endpoint(…), in half of its time
            continue
        ref = parse_ref(text)
        if ref.control:
            control.append(ref.name)
        else:
            data.append(_new_tuple(Endpoint, ref[:2]))
    return _new_tuple(Item, (node, tuple(data), tuple(control)))


def needed(
    graph: Graph,
    feeds: Collection[Endpoint],
    fetches: Iterable[Endpoint],
    targets: Iterable[str],
    known: Mapping[str, Item] | None = None,
) -> dict[str, Item]:
    """The nodes that have to run, by name, in graph order.

    A fed placeholder does not run, not even for those who wait for it; any other fed node runs when a tensor of it
    that is not fed is needed, or when somebody waits for it. ``known`` are items of the same feeds in an earlier form
    of the graph; those of nodes that are still the same are taken over.

    Raises:
        RunError: an input refers to no node.
    """
    fed_placeholders = {e.node for e in feeds if graph.nodes[e.node].op.startswith("Placeholder")}
    fed = {e.node for e in feeds}
    nodes, earlier = graph.nodes, known or {}
    found: dict[str, Item] = {}
    waiting = [e.node for e in fetches if e not in feeds] + [t for t in targets if t not in fed_placeholders]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        node = nodes[name]
        item = earlier.get(name)
        if item is None or item.node is not node:
            item = item_of(node)
        sources = [e[0] for e in item.data if e[0] not in found and (e[0] not in fed or e not in feeds)]
        if item.control:
            if not fed_placeholders.isdisjoint(item.control):
                item = item._replace(control=tuple([c for c in item.control if c not in fed_placeholders]))
            sources += [c for c in item.control if c not in found]
        found[name] = item
        for source in sources:
            if source not in nodes:
                raise RunError(
                    f"the input '{source}' is no node of the graph",
                    where=f"node '{name}'",
                    hint=did_you_mean(source, graph.nodes),
                )
            waiting.append(source)
    return {name: found[name] for name in nodes if name in found}


def with_producers(items: Mapping[str, Item], names: Iterable[str]) -> set[str]:
    """Those of these nodes that are among the items, and all that compute what they take; waits do not count."""
    return set(closure(names, lambda name: (endpoint.node for endpoint in items[name].data), items.__contains__))


def runs_after(item: Item, fed: Collection[Endpoint]) -> dict[str, None]:
    """The nodes whose results a node takes in the run, and those that it waits for, each once."""
    return dict.fromkeys((*(endpoint.node for endpoint in item.data if endpoint not in fed), *item.control))


def consumers(items: Mapping[str, Item], fed: Collection[Endpoint]) -> dict[str, list[str]]:
    """For each node those that run after it, by name; one that none waits for has no entry."""
    return by_key((source, name) for name, item in items.items() for source in runs_after(item, fed))


def behind(
    items: Mapping[str, Item], endpoint: Endpoint, passes: Collection[str] = PASSES, fed: Collection[Endpoint] = ()
) -> Endpoint:
    """Where a tensor comes from, past ops that hand on their first input, by default within a loop; what is fed comes
    from nowhere else."""
    for _ in range(len(items)):
        item = items.get(endpoint.node)
        if item is None or item.node.op not in passes or not item.data or endpoint in fed:
            break
        endpoint = item.data[0]
    return endpoint


def check_counts(items: Mapping[str, Item]) -> None:
    """Raises RunError where a node has more or fewer inputs than its op takes; TensorFlow imports no such graph."""
    from pocketgraph.graph import opdefs  # not for a stored plan

    right: set[tuple[str, int]] = set()  # ops whose inputs are as many in every node
    for name, item in items.items():
        counted = item.node.op, len(item.data)
        if counted in right:
            continue
        if said := opdefs.wrong_count(item.node, len(item.data)):
            raise RunError(said, where=f"node '{name}'")
        definition = opdefs.find(item.node.op)
        if definition is None or not any(arg.number_attr or arg.type_list_attr for arg in definition.inputs):
            right.add(counted)
