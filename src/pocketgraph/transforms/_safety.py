"""Checks a graph after each rule: nothing leads nowhere, nothing goes in a circle, what is fed and fetched is there."""

from __future__ import annotations

from collections.abc import Mapping

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph, node_name, parse_ref
from pocketgraph.graph.order import topological

SHOWN = 3  # names that an error lists


def check_references(graph: Graph, rule: str) -> None:
    """Raises TransformError when a reference leads nowhere."""
    missing = graph.dangling()
    if missing:
        shown = ", ".join(f"'{source}' (read by '{node}')" for node, source in missing[:SHOWN])
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        raise TransformError(f"the graph has inputs that refer to nonexistent nodes: {shown}{more}", where=rule)


def check_damage(before: Graph, after: Graph, rule: str) -> None:
    """Checks that a rule did not break a graph that was whole; what was broken before is not the rule's doing.

    Raises:
        TransformError: an input or output of the graph is gone, a node has a data input behind a control input, or
            nodes have come to form a cycle that is no loop. The message names the rule and the node.
    """
    if after is before:
        return
    for what, old, new in (("output", before.outputs, after.outputs), ("input", before.inputs, after.inputs)):
        for ref in new if len(new) == len(old) else old:
            name = node_name(ref)
            if name in before and name not in after:
                raise TransformError(f"the graph's {what} '{name}' is gone", where=rule)
    if any(after.nodes.get(name) is not node for name, node in before.nodes.items()) or len(after) != len(before):
        _check_order_of_inputs(before, after, rule)
        _check_cycles(before, after, rule)


def _check_order_of_inputs(before: Graph, after: Graph, rule: str) -> None:
    for node in after:
        inputs = node.inputs
        if len(inputs) < 2 or before.nodes.get(node.name) is node:
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
    circle = _circle({name: [parse_ref(ref).name for ref in node.inputs] for name, node in stuck.items()})
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
