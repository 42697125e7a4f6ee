"""Takes branches out whose predicate is known before the run, such as those of a fixed ``is_training`` switch."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pocketgraph.graph import Graph, Node
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import BINARY_SWITCHES, MERGE, NEXT_ITERATION
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.runtime.engines.needed import Item, consumers, item_of, runs_after
from pocketgraph.runtime.engines.reference_arguments import is_reference_output
from pocketgraph.runtime.planning.rewriting.effects import UNORDERED, is_pure


def known_predicates(items: Mapping[str, Item], inferred: Inferred) -> dict[str, bool]:
    """The Switches whose predicate is known, with its value."""
    found = {}
    for name, item in items.items():
        if item.node.op in BINARY_SWITCHES and len(item.data) == 2:
            value = inferred.value(str(item.data[1]))
            if value is not None and value.size == 1:
                found[name] = bool(value)
    return found


def without_static_branches(
    graph: Graph,
    items: Mapping[str, Item],
    fed: Collection[Endpoint],
    predicates: Mapping[str, bool],
    fetched: Collection[Endpoint] = (),
) -> Graph:
    """The graph with each such Switch passed by and each Merge that has one live input left replaced by an Identity.

    What passes a Switch by waits in its place where effects are behind its predicate, or it waited itself.
    Nodes on a branch that is never taken keep their names but nobody needs them any more.
    """
    dead = _dead(items, fed, predicates)
    index_taken = {e.node for item in items.values() for e in item.data if e.port == 1}
    index_taken |= {e.node for e in fetched if e.port == 1}
    changed: dict[str, Node] = {}
    for name, item in items.items():
        if item.node.op in MERGE and name not in dead:
            live = [e for e in item.data if e in fed or not _is_dead(e, dead, predicates)]
            if len(live) == 1 and name not in index_taken:
                waits = tuple(f"^{c}" for c in item.control if c not in dead)
                changed[name] = Node(
                    name, "Identity", (str(live[0]), *waits), {k: v for k, v in item.node.attrs.items() if k == "T"}
                )
    behind = _behind_effects(items, fed)
    nodes = []
    for node in graph:
        fresh = changed.get(node.name, node)
        if node.name in items:
            item = item_of(fresh)
            passed: list[str] = []
            data = [_past_switches(e, items, fed, predicates, passed) for e in item.data]
            if passed:
                lost = [source for name in passed for source in runs_after(items[name], fed) if source in behind]
                every = dict.fromkeys((*item.control, *(source for source in lost if source not in dead)))
                fresh = fresh.replace(inputs=[*map(str, data), *(f"^{each}" for each in every)])
        nodes.append(fresh)
    return graph.replace(nodes)


def _past_switches(
    endpoint: Endpoint,
    items: Mapping[str, Item],
    fed: Collection[Endpoint],
    predicates: Mapping[str, bool],
    passed: list[str],
) -> Endpoint:
    """What a Switch of the way hands on, and the one before it; their names are added to ``passed``."""
    for _ in range(len(predicates)):
        if endpoint in fed or endpoint.node not in predicates:
            break
        if endpoint.port != int(predicates[endpoint.node]):
            break
        passed.append(endpoint.node)
        endpoint = items[endpoint.node].data[0]
    return endpoint


def _is_dead(endpoint: Endpoint, dead: Collection[str], predicates: Mapping[str, bool]) -> bool:
    if endpoint.node in dead:
        return True
    return endpoint.node in predicates and endpoint.port != int(predicates[endpoint.node])


def _dead(items: Mapping[str, Item], fed: Collection[Endpoint], predicates: Mapping[str, bool]) -> set[str]:
    """The nodes that never run."""
    readers = consumers(items, fed)
    dead: set[str] = set()
    waiting = [consumer for switch in predicates for consumer in readers.get(switch, ())]
    while waiting:
        name = waiting.pop()
        if name in dead or items[name].node.op == "ControlTrigger":
            continue
        item = items[name]
        data = [e for e in item.data if e in fed or not _is_dead(e, dead, predicates)]
        if item.node.op in MERGE:  # a loop that is not entered does not come round either
            is_dead = all(e not in fed and items[e.node].node.op in NEXT_ITERATION for e in data)
        else:
            is_dead = len(data) < len(item.data) or any(c in dead for c in item.control)
        if is_dead:
            dead.add(name)
            waiting.extend(readers.get(name, ()))
    return dead


def _behind_effects(items: Mapping[str, Item], fed: Collection[Endpoint]) -> set[str]:
    """The nodes that have an effect, or read what effects change, and those that come after such a node."""
    waiting = [name for name, item in items.items() if _has_effect(item, items, fed)]
    readers = consumers(items, fed) if waiting else {}
    return set(closure(waiting, lambda name: readers.get(name, ())))


def _has_effect(item: Item, items: Mapping[str, Item], fed: Collection[Endpoint]) -> bool:
    if item.node.op in UNORDERED:
        return False
    return not is_pure(item.node.op) or any(
        endpoint not in fed and is_reference_output(items[endpoint.node].node.op, endpoint.port)
        for endpoint in item.data
    )
