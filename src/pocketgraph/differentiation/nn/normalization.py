"""Gradients of normalizations, and of LSTM blocks."""

from __future__ import annotations

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.node_gradient import NodeGradient

TO_LAST, TO_SECOND = (0, 2, 3, 1), (0, 3, 1, 2)
"""The orders in which channels come last, and second again."""


@gradient("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(op: NodeGradient) -> tuple[str, str, str]:
    """While it is trained, of the batch's own mean and variance; else of the given ones, which are constants then."""
    image, scale, _, mean, variance = op.inputs
    version = op.node.op.removeprefix("FusedBatchNorm")
    is_training, layout = bool(op.attr("is_training")), op.attr("data_format")
    grad = op.grad
    reserved = [op.output(3), op.output(4)] if is_training else [mean, variance]
    if version == "V3":
        reserved.append(op.output(5))
    moved = not is_training and layout == "NCHW"
    if moved:
        image, grad = (op.add("Transpose", ref, op.const(TO_LAST)) for ref in (image, grad))
        layout = "NHWC"
    found = op.add(
        f"FusedBatchNormGrad{version}", grad, image, scale, *reserved,
        epsilon=op.attr("epsilon"), data_format=layout.encode(), is_training=is_training,
    )  # fmt: skip
    by_image = op.add("Transpose", found, op.const(TO_SECOND)) if moved else found
    return by_image, f"{found}:1", f"{found}:2"


@gradient("BatchNormWithGlobalNormalization")
def batch_norm(op: NodeGradient) -> list[str | None]:
    image, mean, variance, _, gamma = op.inputs
    found = op.add(
        "BatchNormWithGlobalNormalizationGrad", image, mean, variance, gamma, op.grad,
        **op.attrs("variance_epsilon", "scale_after_normalization"),
    )  # fmt: skip
    return [found, *(f"{found}:{port}" for port in range(1, 5))]


@gradient("LRN")
def local_response_normalization(op: NodeGradient) -> str:
    layer = op.attrs("depth_radius", "bias", "alpha", "beta")
    return op.add("LRNGrad", op.grad, op.inputs[0], op.output(), **layer)


@gradient("BlockLSTM", "BlockLSTMV2")
def block_lstm(op: NodeGradient) -> list[str | None]:
    outputs = [op.output(port) for port in range(7)]
    backwards = op.node.op.replace("LSTM", "LSTMGrad")
    found = op.add(backwards, *op.inputs, *outputs, op.grad_of(1), op.grad_of(6), **op.attrs("use_peephole"))
    return [None, found, *(f"{found}:{port}" for port in range(1, 8))]
