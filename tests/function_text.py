"""Functions of a graph's library in text, for tests: the text form of graphs has none."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pocketgraph import formats
from pocketgraph.formats import wire
from pocketgraph.graph import DType, Graph
from pocketgraph.graph.text_format import parse


def with_functions(graph: Graph, lines: Iterable[str]) -> Graph:
    """The graph with functions in its library.

    Args:
        lines: for each function a first line ``name(x: float, y: int32) -> node:output:0, x`` and then its nodes, with
            inputs such as ``node:output:0``.
    """
    definitions: list[tuple[str, list[str]]] = []
    for line in lines:
        if "->" in line:
            definitions.append((line, []))
        else:
            definitions[-1][1].append(line)
    if not definitions:
        return graph
    functions = [wire.bytes_field(1, _definition(head, body)) for head, body in definitions]
    library = wire.bytes_field(2, b"".join(functions))
    return graph.replace(functions=formats.from_bytes(library).functions)


def _definition(head: str, body: list[str]) -> bytes:
    """A FunctionDef; its results are float."""
    found = re.fullmatch(r"(\w+)\((.*)\) -> (.*)", head)
    assert found, head
    pairs = [part.split(": ") for part in found[2].split(", ") if part]
    results = [part for part in found[3].split(", ") if part]
    signature = wire.bytes_field(1, found[1])
    for name, dtype in pairs:
        signature += wire.bytes_field(2, wire.bytes_field(1, name) + wire.number_field(3, DType.named(dtype).number))
    for place in range(len(results)):
        signature += wire.bytes_field(3, wire.bytes_field(1, f"result{place}") + wire.number_field(3, 1))
    nodes = formats.to_bytes(Graph(parse("\n".join(body))))
    payloads = [nodes[a:b] for _, number, _, a, b in wire.fields(nodes, 0, len(nodes)) if number == 1]
    definition = wire.bytes_field(1, signature) + b"".join(wire.bytes_field(3, node) for node in payloads)
    for place, result in enumerate(results):
        definition += wire.bytes_field(4, wire.bytes_field(1, f"result{place}") + wire.bytes_field(2, result))
    return definition
