"""Walks a graph backwards from ys to xs, once a node, and adds what carries the gradients.

The chain rule in reverse, as TensorFlow's tf.gradients applies it:
https://www.tensorflow.org/api_docs/python/tf/compat/v1/gradients
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from pocketgraph.differentiation.backward import Backward
from pocketgraph.differentiation.builder import GraphBuilder
from pocketgraph.differentiation.registry import GRADIENTS, no_gradient
from pocketgraph.errors import GraphError, did_you_mean
from pocketgraph.graph import DType, Graph, Node, canonical, node_name, opdefs, parse_ref
from pocketgraph.graph.dtype import RESOURCE
from pocketgraph.kernels.shapes.infer import in_order, output_dtypes

SHOWN = 20
"""Nodes that an error lists by name."""


class Target(NamedTuple):
    """A tensor that is differentiated.

    Attributes:
        ref: its name.
        gradient: the gradient that it begins with; "" for ones.
    """

    ref: str
    gradient: str = ""


def carries(dtype: DType | None) -> bool:
    """Whether gradients flow through tensors of this type; handles of variables stand for their values."""
    return dtype is not None and (dtype.is_floating or dtype is RESOURCE)


def checked_ref(graph: Graph, ref: str) -> str:
    """The canonical name of a tensor of the graph.

    Raises:
        GraphError: there is no such tensor.
    """
    name, port, control = parse_ref(ref)
    node = graph.nodes.get(name)
    if node is None or control:
        raise GraphError(f"the graph has no tensor '{ref}'", hint=did_you_mean(name, graph.nodes))
    dtypes = output_dtypes(node)
    if dtypes is not None and port >= len(dtypes):
        raise GraphError(f"{node.op} has {len(dtypes)} outputs, so that there is no '{ref}'", where=f"node '{name}'")
    return canonical(ref)


def backpropagate(
    builder: GraphBuilder, ys: Sequence[Target], xs: Iterable[str], stop: Collection[str] = ()
) -> list[str | None]:
    """Adds the nodes that compute the gradients of the sum of all ys.

    Args:
        builder: where nodes are added, in its present scope.
        ys: what is differentiated.
        xs: by which tensors, by canonical name.
        stop: tensors that count as constants, by canonical name: nothing flows on behind them.

    Returns:
        The gradient by each x, None where no y depends on it.

    Raises:
        GraphError: ops on the way have no gradient; all of them are named.
    """
    graph = builder.graph
    wanted = [canonical(x) for x in xs]
    order = in_order(graph, [y.ref for y in ys])
    constant = frozenset(map(canonical, stop))
    way = _on_the_way(builder, order, [y.ref for y in ys], wanted, constant)
    arriving: dict[str, list[str]] = {}
    for number, y in enumerate(ys):
        first = y.gradient or _ones(builder, y.ref, number)
        arriving.setdefault(canonical(y.ref), []).append(first)
    problems: list[str] = [
        f"'{node.name}' ({node.op})" for node in order if node.name in way and node.op not in GRADIENTS
    ]  # fmt: skip
    if problems:
        raise _no_gradient(problems)
    for node in reversed(order):
        if node.name in way:
            try:
                _step(builder, node, arriving, constant)
            except GraphError as error:
                problems.append(f"'{node.name}' ({node.op}: {error.what})")
    if problems:
        raise _no_gradient(problems)
    return [_summed(builder, arriving, x) for x in wanted]


def _ones(builder: GraphBuilder, ref: str, number: int) -> str:
    """The gradient of y by itself."""
    static = builder.static_shape(ref)
    dtype = builder.dtype(ref).base
    if static.is_known:
        shape = builder.const(static.known, name="Shape")
    else:
        shape = builder.add("Shape", ref)
    return builder.add("Fill", shape, builder.const(1, dtype, name=f"grad_ys_{number}"))


def _by_data(graph: Graph, ys: Iterable[str]) -> set[str]:
    """The nodes that ys need by data: what only runs before them, such as an assertion, is not among them."""
    found: set[str] = set()
    stack = [node_name(y) for y in ys]
    while stack:
        name = stack.pop()
        if name in graph and name not in found:
            found.add(name)
            stack += [node_name(ref) for ref in graph[name].data_inputs]
    return found


def _on_the_way(
    builder: GraphBuilder, order: Sequence[Node], ys: Iterable[str], xs: Sequence[str], stop: Collection[str]
) -> set[str]:
    """The nodes whose inputs get gradients: those between an x and a y that something flows through."""
    carrying = {x for x in xs if carries(builder.inferred.dtype(x))}
    way = set()
    needed = _by_data(builder.graph, ys)
    for node in order:
        if node.name not in needed:
            continue
        through = any(canonical(ref) in carrying and canonical(ref) not in stop for ref in node.data_inputs)
        if not through or GRADIENTS.find(node.op) is no_gradient:
            continue
        way.add(node.name)
        for port, dtype in enumerate(output_dtypes(node) or ()):
            if carries(dtype):
                carrying.add(f"{node.name}:{port}")
    return way


def _step(builder: GraphBuilder, node: Node, arriving: dict[str, list[str]], stop: Collection[str]) -> None:
    """Adds the gradient of one node, where a gradient arrives at its outputs."""
    count = len(opdefs.output_dtypes(node))
    refs = [f"{node.name}:{port}" for port in range(count)]
    if not any(arriving.get(ref) for ref in refs):
        return
    with builder.scope(f"{node.name}_grad", node.device):
        grads = [_summed(builder, arriving, ref) for ref in refs]
        function = GRADIENTS.find(node.op)
        assert function is not None
        given = function(Backward(builder, node, grads))
    found = [given] if given is None or isinstance(given, str) else list(given)
    for ref, gradient in zip(node.data_inputs, found, strict=False):
        if gradient is not None and carries(builder.inferred.dtype(ref)) and canonical(ref) not in stop:
            arriving.setdefault(canonical(ref), []).append(gradient)


def _summed(builder: GraphBuilder, arriving: dict[str, list[str]], ref: str) -> str | None:
    """The sum of the gradients that arrived at a tensor."""
    found = arriving.get(ref)
    if not found:
        return None
    if len(found) > 1:
        found[:] = [builder.add("AddN", found)]
    return found[0]


def _no_gradient(problems: Sequence[str]) -> GraphError:
    rest = f" and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
    return GraphError(
        f"{len(problems)} {'node has' if len(problems) == 1 else 'nodes have'} no gradient: "
        f"{', '.join(problems[:SHOWN])}{rest}",
        hint="put a StopGradient before them, or name tensors behind them as xs",
    )
