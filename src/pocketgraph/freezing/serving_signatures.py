"""Which signatures of a model take numbers, which the records in which TensorFlow Serving gets examples, and which are
there for training only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pocketgraph.errors import option
from pocketgraph.formats.meta_graph import main_signature
from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.attr import Func
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.op_traits import PASSES, VARIABLES, ops_with
from pocketgraph.graph.order import reachable

EXAMPLE_PARSERS = ops_with("example_parser")
CHECKPOINTS = ops_with("checkpoint")
_STEPS = ("Apply", "SparseApply", "ResourceApply", "ResourceSparseApply", "AssignSub", "AssignSubVariableOp")
"""Not a trait: how the names of ops begin by which optimizers move variables."""


def left_signatures(graph: Graph) -> str:
    """That there are other signatures than the main one, which is taken; "" where there are none.

    One of the same inputs, outputs, ops and variables is none: Keras writes the main one under a second key, too.
    """

    def use(key: str) -> tuple[object, ...]:
        one = graph.signatures[key]
        shapes = {graph.producer(tensor).shape() for tensor in _inputs(graph, key)}
        needed = reachable(graph, list(one.outputs.values()), missing_ok=True)
        nodes = [graph[name] for name in needed]
        weights = {node.name for node in nodes if node.op in VARIABLES}
        return sorted(one.inputs), sorted(one.outputs), shapes, weights, _ops(graph, nodes, set())

    main = main_signature(graph)
    others = [key for key in sorted(graph.public_signatures) if main is not None and use(key) != use(main)]
    if not others:
        return ""
    of_numbers = [key for key in others if takes_numbers(graph, key)]
    if main is not None and of_numbers and not takes_numbers(graph, main):
        how = f"{option('signature')}={of_numbers[0]} takes numbers, no texts"
    else:
        how = f"{option('signature')}=NAME takes one"
    return f"the signature '{main}' is taken; others are {', '.join(others)} ({how})"


def inferring_signatures(graph: Graph) -> list[str]:
    """The keys of the signatures that neither train nor save or restore variables, as others do; none where no other
    does.

    A graph that devices train has signatures such as ``train``, ``infer``, ``save`` and ``restore``; one of adversarial
    training ``generate``, ``discriminate`` and ``train``.
    """
    keys = sorted(graph.public_signatures)
    left = [key for key in keys if not _is_for_training(graph, key)]
    return left if len(left) < len(keys) else []


def takes_records(graph: Graph, signature: str) -> bool:
    """Whether a signature takes serialized examples of the type tf.Example."""
    return any(_is_text(graph, tensor) and _is_parsed(graph, tensor) for tensor in _inputs(graph, signature))


def takes_numbers(graph: Graph, signature: str) -> bool:
    """Whether a signature takes something, and nothing of it is a text."""
    if signature.startswith("__"):
        return False
    found = _inputs(graph, signature)
    return bool(found) and not any(_is_text(graph, tensor) for tensor in found)


def _is_for_training(graph: Graph, signature: str) -> bool:
    """Whether what a signature computes moves variables by an optimizer's step, or saves or restores them."""
    needed = reachable(graph, list(graph.signatures[signature].outputs.values()), missing_ok=True)
    ops = _ops(graph, (graph[name] for name in needed), set())
    return any(op in CHECKPOINTS or op.startswith(_STEPS) for op in ops)


def _ops(graph: Graph, nodes: Iterable[Node], seen: set[str]) -> Counter[str]:
    """How often each op is computed by nodes, and by the functions that they call, each of which counts once."""
    found: Counter[str] = Counter()
    for node in nodes:
        called = [value.name for value in node.attrs.values() if isinstance(value, Func)]
        found[node.op] += 1
        for name in called:
            if name in graph.functions and name not in seen:
                seen.add(name)
                found += _ops(graph, graph.functions[name].nodes, seen)
    return found


def _inputs(graph: Graph, signature: str) -> list[str]:
    return [tensor for tensor in graph.signatures[signature].inputs.values() if node_name(tensor) in graph]


def _is_text(graph: Graph, tensor: str) -> bool:
    return graph.producer(tensor).attr("dtype", None) is STRING


def _is_parsed(graph: Graph, tensor: str) -> bool:
    """Whether what reads a tensor, or the function that it is given to, takes records apart."""
    for node in graph.consumers.get(node_name(tensor), ()):
        if node.op in EXAMPLE_PARSERS:
            return True
        if node.op in PASSES and _is_parsed(graph, node.name):
            return True
        if any(_parses(graph, value.name, set()) for value in node.attrs.values() if isinstance(value, Func)):
            return True
    return False


def _parses(graph: Graph, function: str, seen: set[str]) -> bool:
    """Whether a function, or one that it calls, takes records apart."""
    body = graph.functions.get(function)
    if body is None or function in seen:
        return False
    seen.add(function)
    return any(node.op in EXAMPLE_PARSERS or _calls_parser(graph, node, seen) for node in body.nodes)


def _calls_parser(graph: Graph, node: Node, seen: set[str]) -> bool:
    return any(_parses(graph, value.name, seen) for value in node.attrs.values() if isinstance(value, Func))
