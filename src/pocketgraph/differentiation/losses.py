"""Losses: how far predictions are from labels, averaged over all."""

from __future__ import annotations

from pocketgraph.differentiation.backpropagation import checked_ref
from pocketgraph.differentiation.builder import GraphBuilder
from pocketgraph.errors import GraphError
from pocketgraph.graph import Graph, Shape
from pocketgraph.graph.dtype import INT64


def add_loss(graph: Graph, predictions: str, loss: str = "softmax_cross_entropy", *, labels: str = "labels") -> Graph:
    """Adds a loss and the placeholder that labels are fed to.

    Args:
        graph: a graph.
        predictions: a tensor of floating numbers. For cross entropies, logits: what goes into a softmax or a sigmoid.
        loss: ``softmax_cross_entropy`` (logits ``[batch, classes]``; labels are class numbers, int64, ``[batch]``),
            ``sigmoid_cross_entropy`` (labels from 0 to 1, of the shape and type of the predictions) or
            ``mean_squared_error`` (likewise).
        labels: the name of the placeholder.

    Returns:
        The graph; its one output is the loss, a scalar: the mean over the batch, or over all elements.

    Raises:
        GraphError: the loss or the tensor is not known, is of no floating type or of a rank that does not fit, or the
            name of the labels is taken.
    """
    checked_ref(graph, predictions)
    if labels in graph:
        raise GraphError(f"the graph has a node '{labels}' already", hint="give another name for the labels")
    builder = GraphBuilder(graph)
    shape, dtype = builder.static_shape(predictions), builder.dtype(predictions).base
    if not dtype.is_floating:
        raise GraphError(f"'{predictions}' is {dtype.name}, and a loss is of floating numbers")
    if loss == "softmax_cross_entropy":
        if shape.rank not in (2, None):
            raise GraphError(f"softmax_cross_entropy takes logits of the shape [batch,classes], not {shape}")
        fed = Shape([None if shape.rank is None else shape[0]])
        given = builder.add("Placeholder", name=labels, dtype=INT64, shape=fed)
        with builder.scope("loss"):
            each = builder.add("SparseSoftmaxCrossEntropyWithLogits", predictions, given)
            result = builder.add("Mean", each, builder.const([0]))
        return builder.finished([result]).replace(outputs=[result])
    given = builder.add("Placeholder", name=labels, dtype=dtype, shape=shape)
    with builder.scope("loss"):
        if loss == "mean_squared_error":
            each = builder.add("SquaredDifference", predictions, given)
        elif loss == "sigmoid_cross_entropy":
            # max(x, 0) - x z + log(1 + exp(-|x|)), which overflows for no x
            part = builder.add("Sub", builder.add("Relu", predictions), builder.add("Mul", predictions, given))
            small = builder.add("Exp", builder.add("Neg", builder.add("Abs", predictions)))
            each = builder.add("Add", part, builder.add("Log1p", small))
        else:
            known = "softmax_cross_entropy, sigmoid_cross_entropy and mean_squared_error"
            raise GraphError(f"there is no loss '{loss}'", hint=f"there are {known}")
        every = builder.add("Range", builder.const(0), builder.add("Rank", each), builder.const(1))
        result = builder.add("Mean", each, every)
    return builder.finished([result]).replace(outputs=[result])
