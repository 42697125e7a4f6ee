"""What a loss written by hand computes of an answer before labels come in, such as its logarithm or its square."""

from collections.abc import Collection

from pocketgraph.graph.graph import Graph
from pocketgraph.graph.node import Node, node_name
from pocketgraph.graph.op_traits import VARIABLES, ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.graph.tensor import Tensor

_BEGINS = frozenset({"Log", "Log1p", "Square", "Pow"})
"""Not a trait: what losses take of an answer, and answers seldom end in."""
_GOES_ON = _BEGINS | {"Maximum", "Minimum", "ClipByValue", "Add", "AddV2", "Neg", "Abs"}
"""Not a trait: what stands before that: clipped, an epsilon added."""

_COMBINES = frozenset({"Add", "AddV2", "AddN", "Sub", "Mul", "RealDiv", "Neg", "Identity"})
"""Not a trait: what sums up the terms of a loss."""
MOST_TERMS = 32  # nodes that are looked at in front of a loss

_DIFFERENCES = ops_with("difference") | {"SquaredDifference"}


def answer_before_loss(graph: Graph, node: Node, labels: Collection[str] = ()) -> Node:
    """The node whose result a loss takes the logarithm or square of; the node itself where it is neither, or where a
    label is compared with what it gives.

    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse('''
    ...     y = Placeholder(dtype=float)
    ...     one = Const(float 1.0)
    ...     rest = Sub(one, y, T=float)
    ...     log = Log(rest, T=float)
    ... ''')
    >>> answer_before_loss(graph, graph["log"]).name
    'y'

    Args:
        node: the last one before labels come in.
        labels: the names of nodes that give labels, and nothing of the model.
    """
    if node.op not in _BEGINS or _is_compared(graph, node, labels):
        return node
    for _ in range(8):
        varying = [ref for ref in node.data_inputs if (source := graph.find_producer(ref)) and source.op != "Const"]
        is_rest = node.op == "Sub" and varying == list(node.data_inputs[1:])
        before = graph.nodes.get(node_name(varying[0])) if len(varying) == 1 else None
        if before is None or not (node.op in _GOES_ON or is_rest):
            break
        node = before
    return node


def averaged_answers(graph: Graph, node: Node) -> list[Node]:
    """The answers that a loss without labels averages over the examples, themselves or how far they are from what is
    fed; none where a node is no such loss.

    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse('''
    ...     y = Placeholder(dtype=float)
    ...     square = Square(y, T=float)
    ...     axes = Const(int32[2] [0, 1])
    ...     mean = Mean(square, axes, T=float, Tidx=int32)
    ...     share = Const(float 0.1)
    ...     loss = Mul(mean, share, T=float)
    ... ''')
    >>> [answer.name for answer in averaged_answers(graph, graph["loss"])]
    ['y']

    Args:
        node: an end of it.
    """
    waiting, found = [node], list[Node]()
    for _ in range(MOST_TERMS):
        if not waiting:
            return found
        term = waiting.pop(0)
        sources = [source for ref in term.data_inputs if (source := graph.find_producer(ref)) is not None]
        if term.op in _COMBINES:
            waiting += [source for source in sources if source.op != "Const"]
        elif term.op in ("Mean", "Sum") and len(sources) == 2 and _is_over_examples(sources[1]):
            answer = _answer(graph, answer_before_loss(graph, sources[0]))
            if answer is None:
                return []  # answers are compared with each other
            found.append(answer)
        elif term.op != "L2Loss":
            return []
    return []


def _answer(graph: Graph, node: Node) -> Node | None:
    """The answer in how far one is from what is fed, such as a picture that an autoencoder gives; None where there are
    two, the node itself where it is no difference."""
    if node.op == "Abs":
        node = graph.find_producer(node.data_inputs[0]) or node
    if node.op not in _DIFFERENCES:
        return node
    sides = [side for ref in node.data_inputs if (side := _computed(graph, ref)) is not None]
    return sides[0] if len(sides) == 1 else None


def _computed(graph: Graph, ref: str) -> Node | None:
    """What gives a tensor that variables went into; None of one that is only fed."""
    before = reachable(graph, [ref], data_only=True, missing_ok=True)
    return graph.find_producer(ref) if any(graph[name].op in VARIABLES for name in before) else None


def _is_over_examples(axes: Node) -> bool:
    """Whether axes are several, the first one among them, or all there are."""
    value = axes.attrs.get("value")
    if axes.op == "Range" or not isinstance(value, Tensor):
        return axes.op == "Range"
    return value.size > 1 and 0 in value.numpy()


def _is_compared(graph: Graph, node: Node, labels: Collection[str]) -> bool:
    """Whether a label is taken from what a node gives, and not its own logarithm or square, which were the loss's."""
    users = (user for user in graph.consumers.get(node.name, ()) if user.op in _DIFFERENCES)
    others = {node_name(ref) for user in users for ref in user.data_inputs} & {*labels}
    return any(graph[name].op != node.op for name in others)
