"""What the tests of fold_constants share: folding a graph in the text form, and how the result is compared."""

from __future__ import annotations

from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.transforms import transform

SUM = """
    x = Placeholder(dtype=float, shape=[2])
    a = Const(float [1, 2])
    b = Const(float [3, 4])
    c = Add(a, b, T=float)
    y = Add(x, c, T=float)
"""
"""A graph with a constant sum, c, from x to y."""


def fold(text: str, inputs: str, outputs: str, parameters: str = "") -> Graph:
    return transform(parse(text), f"fold_constants{parameters}", inputs, outputs)


def wiring(graph: Graph) -> str:
    """Names, ops and inputs, one node a line."""
    return "".join(f"{node.name} = {node.op}({', '.join(node.inputs)})\n" for node in graph)


def lines(text: str) -> str:
    return "".join(line.strip() + "\n" for line in text.strip().splitlines())
