"""Puts the bodies of functions in the places where they are called, with the original's names, spelling and order.

Freezing and planning inline by passes/inlining.py, which knows branches, loops and effects besides.
"""

from __future__ import annotations

from pocketgraph.errors import TransformError, did_you_mean
from pocketgraph.formats.function_def import body
from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.attr import Func
from pocketgraph.graph.edit import rename_inputs
from pocketgraph.graph.function_body import copied
from pocketgraph.passes.inlining import MOST_NODES
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.tool import transform

DEEPEST = 64  # calls inside of calls


@transform
def inline_partitionedcall(graph: Graph, *, compat: Compat = Compat.FIXED) -> Graph:
    """Replaces each ``PartitionedCall`` by the nodes of the function that it calls.

    Given:   x = Placeholder(dtype=float)
             call = PartitionedCall(x, f=func(scaled), Tin=[float], Tout=[float])
             z = Relu(call, T=float)
             ; FUNCTION scaled(x: float) -> product:z:0
             ; FUNCTION two = Const(float 2.0)
             ; FUNCTION product = Mul(x, two:output:0, T=float)
    Result:  x = Placeholder(dtype=float)
             call/two = Const(float 2.0)
             call/product = Mul(x, call/two:0, T=float)
             z = Relu(call/product:0, T=float)

    The nodes are called ``call/node``; the library keeps its functions.

    Differs from the original: calls inside of called functions are replaced as well (there, the rule has to run again
    for them); a call that is an output of the graph leaves an Identity of its name (there, the output is lost);
    control inputs, attributes that a call gives and ops with several outputs are followed (there, they lead to nodes
    that do not exist, or to the wrong output), with ``Compat.ORIGINAL``, too.

    Raises:
        TransformError: a function is missing or calls itself, or a call gives another number of values than it takes.
        FormatError: a function is damaged.
    """
    outputs = frozenset() if compat.original else frozenset(node_name(ref) for ref in graph.outputs)
    for _ in range(1 if compat.original else DEEPEST):
        if not any(node.op == "PartitionedCall" for node in graph):
            return graph
        graph = _inlined_once(graph, outputs)
    if compat.original or not any(node.op == "PartitionedCall" for node in graph):
        return graph
    raise TransformError(f"functions call each other more than {DEEPEST} times deep, or themselves")


def _inlined_once(graph: Graph, outputs: frozenset[str]) -> Graph:
    nodes: list[Node] = []
    renames: dict[str, str] = {}
    waits: dict[str, list[str]] = {}
    for node in graph:
        if node.op != "PartitionedCall":
            nodes.append(node)
            continue
        new, results, ends = _copy(graph, node)
        nodes += new
        if len(nodes) > MOST_NODES:
            raise TransformError(f"the graph would have more than {MOST_NODES:,} nodes")
        renames.update({f"{node.name}:{port}": ref for port, ref in enumerate(results)})
        waits[f"^{node.name}"] = ends
        if node.name in outputs:
            nodes.append(_kept_name(node, results))
            renames.pop(f"{node.name}:0", None)
            del waits[f"^{node.name}"]
    ready = [_waiting(node, waits) for node in nodes] if any(waits) else nodes
    return rename_inputs(graph.replace(ready), renames)


def _copy(graph: Graph, node: Node) -> tuple[list[Node], list[str], list[str]]:
    """The copied nodes, the tensors that they give, and the control inputs that wait for them."""
    func = node.attrs.get("f")
    where = f"node '{node.name}'"
    if func is None:
        raise TransformError(f"Node {node.name} has no attribute: f", where=where)
    if not isinstance(func, Func):
        raise TransformError("Cannot figure out function name", where=where)
    if func.name not in graph.functions:
        raise TransformError(
            f"function {func.name} Not found", where=where, hint=did_you_mean(func.name, graph.functions)
        )
    flat = body(graph.functions[func.name], func.attrs, graph.functions)
    if len(flat.arguments) != len(node.data_inputs):
        raise TransformError(
            f"Called function {func.name} has invalid input signature: it takes {len(flat.arguments)} values, "
            f"not {len(node.data_inputs)}",
            where=where,
        )
    made = copied(flat, node.name, node.data_inputs, node.control_inputs)
    names = {item.name for item in made.nodes}

    def spelled(ref: str) -> str:
        return canonical(ref) if node_name(ref) in names else ref

    nodes = [item.replace(inputs=[spelled(ref) for ref in item.inputs]) for item in made.nodes]
    ends = dict.fromkeys([*(f"^{node_name(ref)}" for ref in made.results), *(f"^{name}" for name in made.effects)])
    return nodes, [spelled(ref) for ref in made.results], list(ends) or list(node.control_inputs)


def _kept_name(node: Node, results: list[str]) -> Node:
    types = node.attrs.get("Tout")
    if len(results) == 1 and isinstance(types, tuple) and types:
        return Node(node.name, "Identity", results, {"T": types[0]})
    return Node(node.name, "IdentityN", results, {"T": types if types is not None else ()})


def _waiting(node: Node, waits: dict[str, list[str]]) -> Node:
    if not any(ref in waits for ref in node.inputs):
        return node
    after = dict.fromkeys(new for ref in node.control_inputs for new in waits.get(ref, [ref]))
    return node.replace(inputs=[*node.data_inputs, *after])
