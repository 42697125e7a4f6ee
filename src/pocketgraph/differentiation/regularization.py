"""Regularization: what a loss adds for weights that are large, or far from where they began."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from pocketgraph.differentiation.backpropagation import checked_ref
from pocketgraph.differentiation.node_builder import GraphBuilder
from pocketgraph.differentiation.variable_nodes import value_of
from pocketgraph.errors import GraphError, did_you_mean
from pocketgraph.formats import graph_of
from pocketgraph.formats.files import PathLike
from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.op_traits import VARIABLES


def add_regularization(
    graph: Graph | PathLike,
    loss: str,
    *,
    l1: float = 0.0,
    l2: float = 0.0,
    variables: str | Iterable[str] | None = None,
    towards: str = "zero",
) -> Graph:
    """Adds ``l2`` times half the sum of the squares of weights to a loss, and ``l1`` times the sum of their magnitudes.

    Args:
        graph: a graph with variables.
        l1: the factor of the magnitudes.
        l2: the factor of half the squares, as tf.contrib.layers.l2_regularizer has it.
        variables: names or patterns; by default every variable of floating numbers with two axes or more, and so no
            offset or bias.
        towards: ``zero``, or ``start``: weights are held where they began, so that what was learned before is not
            forgotten.

    Returns:
        The graph; its one output is the new loss, a scalar.

    Raises:
        UsageError: this is neither.
        GraphError: a name leads nowhere, a factor is negative or both are 0, or a variable has no first value in the
            graph.
    """
    graph = graph_of(graph, "add_regularization")
    checked_ref(graph, loss)
    if l1 < 0 or l2 < 0 or not (l1 or l2):
        raise GraphError(f"l1 and l2 are 0 or more and not both 0, here {l1:g} and {l2:g}")
    if towards not in ("zero", "start"):
        raise GraphError(f"weights are held towards 'zero' or 'start', not '{towards}'")
    chosen = _chosen(graph, variables)
    builder = GraphBuilder(graph)
    if builder.static_shape(loss).rank not in (0, None):
        raise GraphError(f"the loss '{loss}' has the shape {builder.static_shape(loss)}, and one number is wanted")
    with builder.scope("regularization"):
        dtype = builder.dtype(loss).base
        terms = []
        for node in chosen:
            value = value_of(builder, node)
            if towards == "start":
                value = builder.add("Sub", value, _first_value(graph, node))
            if l2:
                half = builder.add("L2Loss", value)
                terms.append(builder.add("Mul", builder.const(l2, node.dtype("dtype").base), half))
            if l1:
                axes = builder.const(range(node.shape().rank or 0))  # type: ignore[union-attr]
                total = builder.add("Sum", builder.add("Abs", value), axes)
                terms.append(builder.add("Mul", builder.const(l1, node.dtype("dtype").base), total))
        cast = [term if builder.dtype(term) is dtype else builder.add("Cast", term, DstT=dtype) for term in terms]
        result = builder.add("AddN", [loss, *cast])
    return builder.finished([result]).replace(outputs=[result])


def _chosen(graph: Graph, variables: str | Iterable[str] | None) -> list[Node]:
    """The variables that are held."""
    known = {node.name: node for node in graph if node.op in VARIABLES and node.dtype("dtype").is_floating}
    if variables is None:
        found = [node for node in known.values() if (shape := node.shape()) is not None and (shape.rank or 0) > 1]
        if not found:
            raise GraphError("the graph has no variables with two axes or more", hint="name them, or see trainable")
        return found
    named: dict[str, Node] = {}
    for name in [variables] if isinstance(variables, str) else variables:
        fitting = {key: node for key, node in known.items() if key == name or fnmatchcase(key, name)}
        if not fitting:
            raise GraphError(f"the graph has no variable '{name}'", hint=did_you_mean(name, known) or "see trainable")
        named |= fitting
    return list(named.values())


def _first_value(graph: Graph, node: Node) -> str:
    """The tensor that ``NAME/Assign`` gives the variable first."""
    assign = graph.nodes.get(f"{node.name}/Assign")
    is_known = assign is not None and len(assign.data_inputs) == 2 and node_name(assign.data_inputs[0]) == node.name
    if assign is None or not is_known or graph.constant(assign.data_inputs[1]) is None:
        raise GraphError("the graph does not say the variable's first value", where=f"node '{node.name}'")
    return assign.data_inputs[1]
