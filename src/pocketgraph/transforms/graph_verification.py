"""Checks a graph after each rule: nothing leads nowhere, nothing goes in a circle, what is fed and fetched is there."""

from __future__ import annotations

from collections.abc import Mapping

from pocketgraph.errors import GraphError, TransformError
from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.graph import is_rewired
from pocketgraph.graph.order import is_topological, iter_topological, topological
from pocketgraph.pages.quantities import listed

SHOWN = 3  # names that an error lists


def difference(before: Graph, after: Graph) -> tuple[list[Node], bool]:
    """What a rule changed, in one pass over the nodes at most.

    Returns:
        The nodes that are new, have other inputs than before or are a Merge no more, in the new graph's order; and
        whether names of before are gone.
    """
    if after is before:
        return [], False
    known = after.rewired_since(before)
    if known is not None:
        return known, False
    nodes = before.nodes
    rewired, kept = [], len(after)
    for name, node in after.nodes.items():
        old = nodes.get(name)
        if old is node:
            continue
        if old is None:
            kept -= 1
        if old is None or is_rewired(old, node):
            rewired.append(node)
    return rewired, kept < len(before)


def check(before: Graph, after: Graph, rule: str, *, references_only: bool = False, whole: bool = True) -> None:
    """Checks that a rule did not break a graph; what was broken before is not the rule's doing, but for references.

    Args:
        before, after: the graph that the rule was given and the one that it made.
        rule: its name.
        references_only: only that every reference leads to a node, as the original does.
        whole: all references of ``before`` are known to lead to nodes.

    Raises:
        TransformError: a reference leads nowhere, an input or output of the graph is gone, a node has a data input
            behind a control input, or nodes have come to form a cycle that is no loop. The message names the rule and
            the node.
    """
    rewired, lost = difference(before, after)
    in_order = bool(rewired or lost) and (is_topological(after) or (not references_only and _sorts(after)))
    if not in_order:
        check_references(after, rule, rewired if whole and not lost else None)
    if references_only or after is before:
        return
    _check_ends(before, after, rule)
    readers = [node for node in rewired if node.inputs]
    _check_order_of_inputs(before, readers, rule)
    if readers and not in_order:
        _check_cycles(before, after, rule)


def _sorts(graph: Graph) -> bool:
    """Whether the nodes can be put in an order, so that every reference leads somewhere and none in a circle."""
    try:
        return sum(1 for _ in iter_topological(graph, partial=True)) == len(graph)
    except GraphError:
        return False


def check_references(graph: Graph, rule: str, changed: list[Node] | None = None) -> None:
    """Raises TransformError when a reference leads nowhere.

    Args:
        rule: what made it.
        changed: the nodes that may refer to what is not there; by default all.
    """
    missing = graph.dangling(changed)
    if missing:
        shown = listed([f"'{source}' (read by '{node}')" for node, source in missing], SHOWN)
        raise TransformError(f"the graph has inputs that refer to nonexistent nodes: {shown}", where=rule)


def _check_ends(before: Graph, after: Graph, rule: str) -> None:
    for what, old, new in (("output", before.outputs, after.outputs), ("input", before.inputs, after.inputs)):
        for ref in new if len(new) == len(old) else old:
            name = node_name(ref)
            if name in before and name not in after:
                raise TransformError(f"the graph's {what} '{name}' is gone", where=rule)


def _check_order_of_inputs(before: Graph, changed: list[Node], rule: str) -> None:
    for node in changed:
        inputs = node.inputs
        if len(inputs) < 2:
            continue
        first_control = next((i for i, ref in enumerate(inputs) if ref.startswith("^")), len(inputs))
        late = next((ref for ref in inputs[first_control:] if not ref.startswith("^")), None)
        if late is not None and not _was_so(before, node.name):
            raise TransformError(
                f"the data input '{late}' comes behind a control input", where=f"{rule}: node '{node.name}'"
            )


def _was_so(before: Graph, name: str) -> bool:
    node = before.nodes.get(name)
    return node is not None and list(node.inputs) != [*node.data_inputs, *node.control_inputs]


def _check_cycles(before: Graph, after: Graph, rule: str) -> None:
    order = topological(after, partial=True)
    if len(order) == len(after) or before.dangling() or len(topological(before, partial=True)) < len(before):
        return
    done = {node.name for node in order}
    stuck = {node.name: node for node in after if node.name not in done}
    circle = _circle({name: [node_name(ref) for ref in node.inputs] for name, node in stuck.items()})
    shown = " -> ".join(f"'{name}'" for name in circle[:SHOWN]) + (" -> …" if len(circle) > SHOWN else "")
    raise TransformError(f"the nodes {shown} form a cycle", where=f"{rule}: node '{circle[0]}'")


def _circle(sources: Mapping[str, list[str]]) -> list[str]:
    """The names on one cycle, from producer to consumer; every name has a source that is among them."""
    path: dict[str, None] = {}
    name = next(iter(sources))
    while name not in path:
        path[name] = None
        name = next(source for source in sources[name] if source in sources)
    names = list(path)
    return names[names.index(name) :][::-1]
