"""Losses: how far predictions are from labels, averaged over all."""

from __future__ import annotations

from pocketgraph.differentiation.backpropagation import checked_ref
from pocketgraph.differentiation.node_builder import GraphBuilder
from pocketgraph.errors import GraphError
from pocketgraph.formats import graph_of
from pocketgraph.formats.files import PathLike
from pocketgraph.graph import Graph, Shape
from pocketgraph.graph.dtype import INT64

LOSSES = ("softmax_cross_entropy", "sigmoid_cross_entropy", "mean_squared_error", "triplet")
FAR = 3e38
"""A distance above all others."""


def add_loss(
    graph: Graph | PathLike,
    predictions: str,
    loss: str = "softmax_cross_entropy",
    *,
    labels: str = "labels",
    margin: float = 1.0,
) -> Graph:
    """Adds a loss and the placeholder that labels are fed to.

    Args:
        graph: a graph.
        predictions: a tensor of floating numbers. For cross entropies, logits: what goes into a softmax or a sigmoid.
        loss: ``softmax_cross_entropy`` (logits ``[batch, classes]``; labels are class numbers, int64, ``[batch]``),
            ``sigmoid_cross_entropy`` (labels from 0 to 1, of the shape and type of the predictions),
            ``mean_squared_error`` (likewise) or ``triplet`` (embeddings ``[batch, sizes]``; labels are class numbers,
            int64, ``[batch]``): for each pair of one class, by how much ``margin`` plus its squared distance is more
            than that to the nearest one of another class that is farther away, or else the farthest.
        labels: the name of the placeholder.
        margin: for ``triplet``.

    Returns:
        The graph. Its one output is the loss, a scalar, which is the mean over the batch, over all elements, or over
        all pairs of one class (0 where there is none). The triplets are those of FaceNet (Schroff and others, 2015) as
        tf.contrib.losses.metric_learning.triplet_semihard_loss chooses them.

    Raises:
        UsageError: this is neither.
        GraphError: the loss or the tensor is not known, is of no floating type or of a rank that does not fit, or the
            name of the labels is taken.
    """
    graph = graph_of(graph, "add_loss")
    checked_ref(graph, predictions)
    if labels in graph:
        raise GraphError(f"the graph has a node '{labels}' already", hint="give another name for the labels")
    builder = GraphBuilder(graph)
    shape, dtype = builder.static_shape(predictions), builder.dtype(predictions).base
    if not dtype.is_floating:
        raise GraphError(f"'{predictions}' is {dtype.name}, and a loss is of floating numbers")
    if loss not in LOSSES:
        raise GraphError(f"there is no loss '{loss}'", hint=f"there are {', '.join(LOSSES)}")
    if loss in ("softmax_cross_entropy", "triplet"):
        if shape.rank not in (2, None):
            takes = "embeddings [batch,sizes]" if loss == "triplet" else "logits of the shape [batch,classes]"
            raise GraphError(f"{loss} takes {takes}, not {shape}")
        fed = Shape([None if shape.rank is None else shape[0]])
        given = builder.add("Placeholder", name=labels, dtype=INT64, shape=fed)
        with builder.scope("loss"):
            if loss == "triplet":
                result = _triplet(builder, predictions, given, margin)
            else:
                each = builder.add("SparseSoftmaxCrossEntropyWithLogits", predictions, given)
                result = builder.add("Mean", each, builder.const([0]))
        return builder.finished([result]).replace(outputs=[result])
    given = builder.add("Placeholder", name=labels, dtype=dtype, shape=shape)
    with builder.scope("loss"):
        if loss == "mean_squared_error":
            each = builder.add("SquaredDifference", predictions, given)
        else:
            # max(x, 0) - x z + log(1 + exp(-|x|)), which overflows for no x
            part = builder.add("Sub", builder.add("Relu", predictions), builder.add("Mul", predictions, given))
            small = builder.add("Exp", builder.add("Neg", builder.add("Abs", predictions)))
            each = builder.add("Add", part, builder.add("Log1p", small))
        every = builder.add("Range", builder.const(0), builder.add("Rank", each), builder.const(1))
        result = builder.add("Mean", each, every)
    return builder.finished([result]).replace(outputs=[result])


def _triplet(builder: GraphBuilder, embeddings: str, labels: str, margin: float) -> str:
    """The mean over all pairs of one class; see ``add_loss``."""
    add, const, dtype = builder.add, builder.const, builder.dtype(embeddings).base
    squares = add("Sum", add("Square", embeddings), const([1]), keep_dims=True)
    products = add("MatMul", embeddings, embeddings, transpose_b=True)
    sums = add("Add", squares, add("Transpose", squares, const([1, 0])))
    twice = add("Mul", products, const(2, dtype))
    distances = add("Maximum", add("Sub", sums, twice), const(0, dtype))
    column, row = add("ExpandDims", labels, const(1)), add("ExpandDims", labels, const(0))
    same = add("Equal", column, row)
    other = add("LogicalNot", same)
    # [anchor, positive, negative]: the nearest one of another class that is farther away than the positive
    farther = add("Greater", add("ExpandDims", distances, const(1)), add("ExpandDims", distances, const(2)))
    behind = add("LogicalAnd", farther, add("ExpandDims", other, const(1)))
    far = add("SelectV2", behind, add("ExpandDims", distances, const(1)), const(FAR, dtype))
    nearest = add("Min", far, const([2]))
    farthest = add("Max", add("Mul", distances, add("Cast", other, DstT=dtype)), const([1]), keep_dims=True)
    negative = add("SelectV2", add("Any", behind, const([2])), nearest, farthest)
    number = add("Range", const(0), add("Size", labels), const(1))
    apart = add("NotEqual", add("ExpandDims", number, const(1)), add("ExpandDims", number, const(0)))
    pairs = add("Cast", add("LogicalAnd", same, apart), DstT=dtype)
    more = add("Maximum", add("Sub", add("Add", distances, const(margin, dtype)), negative), const(0, dtype))
    total = add("Sum", add("Mul", more, pairs), const([0, 1]))
    return add("RealDiv", total, add("Maximum", add("Sum", pairs, const([0, 1])), const(1, dtype)))
