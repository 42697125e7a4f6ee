"""Reads a TensorFlow 1 variable where its value is used, for those who wait for an assignment to it.

``tf.identity(v)`` under a control dependency on an assignment is an Identity of ``v/read``, and that one waits for
nothing. In TensorFlow ``v/read`` hands on the variable's own memory, which the assignment writes into, so whoever
computes after the assignment sees the new value: moving averages of trained variables and counters count on it. Here
a read value does not change any more; such a reader is given a read of its own, which waits for what the reader waits
for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping

from pocketgraph.graph import Graph, Node, opdefs
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.runtime.engines.frames import ROOT, frames_of, has_loops
from pocketgraph.runtime.engines.needed import Item, item_of

VARIABLES = ops_with("reference_variable")
PASSING = ops_with("reference")
"""Ops that take a reference and write nothing."""


def defer_reads(graph: Graph, items: dict[str, Item], fed: Collection[Endpoint]) -> tuple[Graph, dict[str, Item]]:
    """The graph and its needed nodes, with such reads added; the same ones if there are none."""
    variables = {name for name, item in items.items() if item.node.op in VARIABLES}
    written = _written(items, variables) if variables else {}
    if not written:
        return graph, items
    reads = {
        name: item.data[0].node
        for name, item in items.items()
        if item.node.op == "Identity" and len(item.data) == 1 and item.data[0].node in written
        if Endpoint(name, 0) not in fed
    }
    if not reads:
        return graph, items
    bits = {variable: 1 << number for number, variable in enumerate(written)}
    behind = _behind(items, written, bits)
    frames = frames_of(items, fed) if has_loops(items) else {}
    changed: dict[str, Item] = {}
    added: dict[str, Item] = {}
    for name, item in items.items():
        for endpoint in dict.fromkeys(item.data):
            variable = reads.get(endpoint.node)
            if variable is None or endpoint.port or behind.get(endpoint.node, 0) & bits[variable]:
                continue
            others = [e.node for e in item.data if e.node != endpoint.node and e not in fed] + list(item.control)
            late = [other for other in dict.fromkeys(others) if behind.get(other, 0) & bits[variable]]
            if not late or any(frames.get(each, ROOT).depth for each in (name, *late)):
                continue
            read = items[endpoint.node].node
            own = f"{read.name}/after/{name}"
            node = Node(own, "Identity", (*read.inputs, *(f"^{other}" for other in late)), read.attrs)
            added[own] = item_of(node)
            base = changed.get(name, item).node
            texts = [own if Endpoint(*_place(text)) == endpoint else text for text in base.inputs]
            changed[name] = item_of(base.replace(inputs=tuple(texts)))
    if not changed:
        return graph, items
    nodes = [changed[node.name].node if node.name in changed else node for node in graph]
    nodes += [item.node for item in added.values()]
    return graph.replace(nodes), {**items, **changed, **added}


def _place(text: str) -> tuple[str, int]:
    """(node, port) of an input; a control input is of no port."""
    if text.startswith("^"):
        return text, -1
    name, _, port = text.partition(":")
    return name, int(port or 0)


def _written(items: Mapping[str, Item], variables: Collection[str]) -> dict[str, list[str]]:
    """The nodes that write to each variable that is written to; found by the references that their ops take."""
    found: dict[str, list[str]] = {}
    takes: dict[str, bool] = {}
    for name, item in items.items():
        op = item.node.op
        if not any(endpoint.node in variables for endpoint in item.data):
            continue
        if op not in takes:
            definition = opdefs.find(op)
            takes[op] = op not in PASSING and definition is not None and any(arg.is_ref for arg in definition.inputs)
        if takes[op]:
            for endpoint in item.data:
                if endpoint.node in variables:
                    found.setdefault(endpoint.node, []).append(name)
    return found


def _behind(items: Mapping[str, Item], written: Mapping[str, list[str]], bits: Mapping[str, int]) -> dict[str, int]:
    """For each node, a bit for every variable that is written before the node runs, by it or by what it waits for."""
    behind: dict[str, int] = {}
    for variable, writers in written.items():
        for writer in writers:
            behind[writer] = behind.get(writer, 0) | bits[variable]
    readers: dict[str, list[str]] = {}
    for name, item in items.items():
        for endpoint in item.data:
            readers.setdefault(endpoint.node, []).append(name)
        for waited in item.control:
            readers.setdefault(waited, []).append(name)
    waiting = deque(behind)
    while waiting:
        name = waiting.popleft()
        for reader in readers.get(name, ()):
            before = behind.get(reader, 0)
            if behind[name] & ~before:
                behind[reader] = before | behind[name]
                waiting.append(reader)
    return behind
