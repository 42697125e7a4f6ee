"""The gradients of a graph, as a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pocketgraph.differentiation.backpropagation import GradientTarget, backpropagate, carries, checked_ref
from pocketgraph.differentiation.node_builder import GraphBuilder
from pocketgraph.errors import GraphError
from pocketgraph.formats import graph_of
from pocketgraph.formats.files import PathLike
from pocketgraph.graph import Graph
from pocketgraph.passes.inlining import inlined


def gradients(
    graph: Graph | PathLike,
    ys: str | Sequence[str],
    xs: str | Sequence[str],
    grad_ys: str | Sequence[str | None] | None = None,
    *,
    stop_gradients: Sequence[str] = (),
    unconnected: str = "error",
    scope: str = "gradients",
) -> Graph:
    """Adds the nodes that compute the gradients of the sum of ``ys`` with respect to each of ``xs``.

    The nodes are TensorFlow's own (Conv2DBackpropInput, FusedBatchNormGradV3, …), in the scope ``gradients/``, so that
    the graph runs here and in TensorFlow 1.15 and 2.

    >>> from pocketgraph.graph.text_format import parse
    >>> from pocketgraph.runtime import Session
    >>> graph = parse('''
    ...     x = Placeholder(dtype=float, shape=[2])
    ...     y = Square(x, T=float)
    ... ''')
    >>> slope = gradients(graph, "y", "x")
    >>> slope.outputs
    ('gradients/y_grad/Mul_1',)
    >>> with Session(slope) as session:
    ...     session.run(slope.outputs, {"x": [3.0, -1.0]})
    [array([ 6., -2.], dtype=float32)]

    Args:
        graph: the graph, or its path as ``load`` takes one; variables may be in it, conditionals, loops, and functions,
            which are inlined.
        ys: the tensors that are differentiated, of a floating type.
        xs: the tensors by which, of a floating type, anywhere in the graph; a variable by its node's name.
        grad_ys: for each y the tensor of the graph that holds the gradient it begins with, of its shape; None means
            ones.
        stop_gradients: tensors that count as constants; an x among them has its gradient, and nothing flows on.
        unconnected: what becomes of an x that no y depends on: ``error``, or ``zero`` for zeros in its shape.
        scope: the scope of the new nodes; it gets a number where it is taken.

    Returns:
        The graph with the new nodes behind its own. Its ``outputs`` name the gradients, one for each x, of its shape
        and type; the gradient by a lookup's table is a whole tensor, not rows and indices.

    Raises:
        UsageError: this is neither.
        GraphError: a name leads nowhere, a tensor is not of a floating type, no y depends on an x, or ops on the way
            have no gradient; all of them are named.
    """
    graph = graph_of(graph, "gradients")
    y_refs = [ys] if isinstance(ys, str) else list(ys)
    x_refs = [xs] if isinstance(xs, str) else list(xs)
    begin = [grad_ys] if isinstance(grad_ys, str) else list(grad_ys or [None] * len(y_refs))
    if not y_refs or not x_refs:
        raise GraphError("gradients needs a y and an x at least")
    if len(begin) != len(y_refs):
        raise GraphError(f"gradients was given {len(y_refs)} ys and {len(begin)} grad_ys", hint="give one for each y")
    if unconnected not in ("error", "zero"):
        raise GraphError(f"unconnected is 'error' or 'zero', not '{unconnected}'")
    graph = without_calls(graph, [*y_refs, *x_refs, *filter(None, begin), *stop_gradients])
    builder = GraphBuilder(graph)
    for ref in [*y_refs, *x_refs, *filter(None, begin), *stop_gradients]:
        checked_ref(graph, ref)
        dtype = builder.inferred.dtype(ref)
        if not carries(dtype):
            name = "of no known type" if dtype is None else dtype.base.name
            raise GraphError(f"'{ref}' is {name}, and gradients are of floating numbers only")
    targets = [GradientTarget(y, start or "") for y, start in zip(y_refs, begin, strict=True)]
    with builder.scope(scope):
        found = backpropagate(builder, targets, x_refs, tuple(stop_gradients))
        apart = [x for x, gradient in zip(x_refs, found, strict=True) if gradient is None]
        if apart and unconnected == "error":
            raise GraphError(
                f"{', '.join(y_refs)} does not depend on {', '.join(apart)}", hint="unconnected='zero' gives zeros"
            )
        results = [
            builder.zeros_like(x, name="zeros_like") if gradient is None else gradient
            for x, gradient in zip(x_refs, found, strict=True)
        ]
    return builder.finished(results).replace(outputs=results)


def without_calls(graph: Graph, names: Iterable[str]) -> Graph:
    """The graph without calls, conditionals and loops in the form of TensorFlow 1; itself where it has no functions.

    Args:
        names: tensors that keep their names, besides the inputs and outputs of the graph.

    Raises:
        FreezeError, FormatError, GraphError: a function is missing, damaged or calls itself.
    """
    if not graph.functions:
        return graph
    wanted = [name for name in (*names, *graph.inputs, *graph.outputs) if name.partition(":")[0] in graph]
    return inlined(graph, wanted, "lower")
