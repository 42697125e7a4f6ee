"""Edits a graph into a new one: replaces matched sub-graphs, redirects references, drops attributes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import NamedTuple

from pocketgraph.errors import GraphError
from pocketgraph.graph.graph import Graph
from pocketgraph.graph.node import Node, canonical, node_name, parse_ref
from pocketgraph.graph.pattern import Match, Pattern, find_matches

Rewrite = Callable[[Match, frozenset[str]], Iterable[Node]]
"""Gives the nodes that take a match's place. The second argument names the matched nodes that nodes outside the match
refer to, by data or control (``replace_matches`` tells of ``keep_ends``)."""


class Replaced(NamedTuple):
    """A new graph, and how many matches were really replaced to make it."""

    graph: Graph
    times: int


def replace_matches(
    graph: Graph,
    pattern: Pattern,
    rewrite: Rewrite,
    *,
    accept: Callable[[Match], bool] | None = None,
    may_lose_names: bool = False,
    keep_ends: bool = False,
) -> Replaced:
    """The graph with every match of a pattern replaced.

    The new nodes stand where the match's head stood; the other matched nodes vanish unless ``rewrite`` gives them
    again. Where a name that is used outside the match is missing from the new nodes, the match is left alone (its
    nodes move together, level by level from the head).

    Args:
        pattern, accept: what to look for; see ``find_matches``.
        rewrite: called once a match, in the graph's order. Nodes of one name are emitted once, the last one given.
        may_lose_names: do not check the names that are used outside; the caller redirects the references.
        keep_ends: count inputs and outputs of the graph among the names that are used outside.

    Raises:
        GraphError: a new node has the name of a node that stays.
    """
    matches = {match.node.name: match for match in find_matches(graph, pattern, accept)}
    if not matches:
        return Replaced(graph, 0)
    owner = {node.name: head for head, match in matches.items() for node in match.nodes}
    used = _used_outside(graph, owner)
    for name in map(node_name, (*graph.inputs, *graph.outputs)) if keep_ends else ():
        if name in owner:
            used.setdefault(owner[name], set()).add(name)
    result: list[Node] = []
    count = 0
    for node in graph:
        head = owner.get(node.name)
        if head is None:
            result.append(node)
        elif head == node.name:
            match = matches[head]
            outside = frozenset(used.get(head, ()))
            new = list({item.name: item for item in rewrite(match, outside)}.values())
            if not may_lose_names and not outside <= {item.name for item in new}:
                new = list(match.nodes)
            elif not (len(new) == len(match.nodes) and all(any(a is b for b in match.nodes) for a in new)):
                count += 1
            result += new
    return Replaced(graph.replace(result), count)


def _used_outside(graph: Graph, owner: Mapping[str, str]) -> dict[str, set[str]]:
    """For each match's head, the matched names that nodes outside the match refer to."""
    used: dict[str, set[str]] = {}
    for node in graph:
        mine = owner.get(node.name)
        for ref in node.inputs:
            source = node_name(ref)
            head = owner.get(source)
            if head is not None and head != mine:
                used.setdefault(head, set()).add(source)
    return used


def rename_inputs(graph: Graph, renames: Mapping[str, str], *, untouched: Collection[str] = ()) -> Graph:
    """The graph with references redirected; the names of nodes stay.

    Args:
        renames: from old to new. A key ``name:*`` fits every reference to that node, and ``^`` or ``:port`` are carried
            over to the new name. Any other key fits the references that mean the same tensor (``a`` is ``a:0``; ``^a``
            is itself), and the value is taken as it is. The result is looked up again, so chains are followed.
        untouched: names of nodes whose inputs stay as they are.

    Raises:
        GraphError: following the renames leads back to a node that was passed before.
    """
    if not renames:
        return graph
    everywhere: dict[str, str] = {}
    exact: dict[str, str] = {}
    for old, new in renames.items():
        if old.endswith(":*"):
            everywhere[old[:-2]] = new
        else:
            exact[canonical(old)] = new
    names = everywhere.keys() | {node_name(old) for old in exact}
    resolved: dict[str, str] = {}

    def step(ref: str) -> str | None:
        name, port, control = parse_ref(ref)
        if name not in names:
            return None
        if canonical(ref) in exact:
            return exact[canonical(ref)]
        if name not in everywhere:
            return None
        suffix = "" if control or not ref.endswith(f":{port}") else f":{port}"
        return ("^" if control else "") + everywhere[name] + suffix

    def resolve(ref: str) -> str:
        path: list[str] = []
        passed: set[str] = set()
        current = ref
        while current not in resolved:
            following = step(current)
            if following is None:
                resolved[current] = current
                break
            name = node_name(current)
            if name in passed:
                raise GraphError("the renaming of inputs goes in a circle", where=f"node '{name}'")
            passed.add(name)
            path.append(current)
            current = following
        for passed_by in path:
            resolved[passed_by] = resolved[current]
        return resolved[current]

    def change(node: Node) -> Node:
        if node.name in untouched or not any(node_name(ref) in names for ref in node.inputs):
            return node
        inputs = tuple(resolve(ref) for ref in node.inputs)
        return node if inputs == node.inputs else node.replace(inputs=inputs)

    return graph.map_nodes(change)


def free_name(name: str, taken: Container[str]) -> str:
    """The name; where it is taken, one of ``name_1``, ``name_2`` … that is not, and the one before it is.

    That is found by doubling and bisection: a file may have a name a hundred thousand times.
    """
    if name not in taken:
        return name
    low, high = 0, 1
    while f"{name}_{high}" in taken:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if f"{name}_{middle}" in taken else (low, middle)
    return f"{name}_{high}"


def claim_name(name: str, taken: set[str]) -> str:
    """A free name, which is taken from then on."""
    found = free_name(name, taken)
    taken.add(found)
    return found


def remove_attributes(graph: Graph, names: Collection[str]) -> Graph:
    """The graph without the attributes of these names."""

    def change(node: Node) -> Node:
        if not any(name in node.attrs for name in names):
            return node
        return node.replace(attrs={key: value for key, value in node.attrs.items() if key not in names})

    return graph.map_nodes(change)
