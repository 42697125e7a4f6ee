"""Gradients of cross entropies."""

from __future__ import annotations

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.node_gradient import NodeGradient


@gradient("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy(op: NodeGradient) -> tuple[str, str]:
    logits = op.inputs[0]
    each = op.add("ExpandDims", op.grad, op.const(-1))
    by_logits = _and_of_the_slope(op, op.mul(each, op.output(1)), logits)
    return by_logits, op.mul(each, op.add("Neg", op.add("LogSoftmax", logits)))


@gradient("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy(op: NodeGradient) -> str:
    each = op.add("ExpandDims", op.grad, op.const(-1))
    return _and_of_the_slope(op, op.mul(each, op.output(1)), op.inputs[0])


def _and_of_the_slope(op: NodeGradient, by_logits: str, logits: str) -> str:
    """With what comes through the second output, the softmax less the labels, where somebody uses it."""
    slope = op.grads[1]
    if slope is None:
        return by_logits
    softmax = op.add("Softmax", logits)
    weighted = op.add("Sum", op.mul(slope, softmax), op.const([-1]), keep_dims=True)
    return op.add("Add", by_logits, op.mul(op.add("Sub", slope, weighted), softmax))


@gradient("CTCLoss")
def ctc_loss(op: NodeGradient) -> str:
    each = op.add("ExpandDims", op.add("ExpandDims", op.grad, op.const(0)), op.const(2))
    return op.mul(each, op.output(1))
