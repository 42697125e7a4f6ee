"""What a loss written by hand computes of an answer before labels come in, such as its logarithm or its square."""

from pocketgraph.graph.graph import Graph
from pocketgraph.graph.node import Node, node_name

_BEGINS = frozenset({"Log", "Log1p", "Square", "Pow"})
"""Not a trait: what losses take of an answer, and answers seldom end in."""
_GOES_ON = _BEGINS | {"Maximum", "Minimum", "ClipByValue", "Add", "AddV2", "Neg", "Abs"}
"""Not a trait: what stands before that: clipped, an epsilon added."""


def answer_before_loss(graph: Graph, node: Node) -> Node:
    """The node whose result a loss takes the logarithm or square of; the node itself where it is neither.

    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse('''
    ...     y = Placeholder(dtype=float)
    ...     one = Const(float 1.0)
    ...     rest = Sub(one, y, T=float)
    ...     log = Log(rest, T=float)
    ... ''')
    >>> answer_before_loss(graph, graph["log"]).name
    'y'
    """
    if node.op not in _BEGINS:
        return node
    for _ in range(8):
        varying = [ref for ref in node.data_inputs if (source := graph.find_producer(ref)) and source.op != "Const"]
        is_rest = node.op == "Sub" and varying == list(node.data_inputs[1:])
        before = graph.nodes.get(node_name(varying[0])) if len(varying) == 1 else None
        if before is None or not (node.op in _GOES_ON or is_rest):
            break
        node = before
    return node
