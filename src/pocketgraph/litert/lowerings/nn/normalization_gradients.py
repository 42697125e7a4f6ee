"""Lowerings of the gradients of batch normalization and of biases."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.image_layout import data_format, image, yield_image
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.math.elementwise import binary
from pocketgraph.litert.lowerings.math.reductions import reduced, summed
from pocketgraph.litert.operands import attr_text
from pocketgraph.litert.program import Value


@lowers("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def of_fused_batch_norm(emit: Emit, node: Node) -> None:
    """The gradients by the image, the scale and the offset.

    With d the gradient that comes in, c the image less its mean, r = 1 / sqrt(variance + epsilon), s the scale, and
    means over the batch: s r d by known statistics, s r (d - mean(d) - r^2 c mean(d c)) by the batch's own.
    """
    layout = data_format(emit, node)
    gradient, source = image(emit, 0, layout), image(emit, 1, layout)
    if gradient.shape != source.shape:
        raise emit.unsupported(f"a gradient of {list(gradient.shape)} for {list(source.shape)}")
    shape = (1, 1, 1, source.shape[3])
    scale, mean, variance = (emit.reshape(value, shape) for value in emit.inputs(2, 5))
    epsilon = emit.const(node.attr("epsilon", 1e-4), np.float32)
    inverse = emit.add("RSQRT", [binary(emit, "ADD", variance, epsilon)], shape)
    gain = binary(emit, "MUL", scale, inverse)
    centred = binary(emit, "SUB", source, mean)
    by_offset = _over_pixels(emit, gradient)
    together = _over_pixels(emit, binary(emit, "MUL", gradient, centred))
    result = binary(emit, "MUL", gradient, gain)
    if node.attr("is_training", True):
        count = emit.const(-source.shape[3] / source.size, np.float32)
        squared = binary(emit, "MUL", inverse, inverse)
        slope = binary(emit, "MUL", binary(emit, "MUL", gain, squared), binary(emit, "MUL", together, count))
        level = binary(emit, "MUL", gain, binary(emit, "MUL", by_offset, count))
        result = binary(emit, "ADD", binary(emit, "ADD", result, binary(emit, "MUL", centred, slope)), level)
    yield_image(emit, result, layout)
    emit.result(emit.reshape(binary(emit, "MUL", together, inverse), shape[3:]), 1)
    emit.result(emit.reshape(by_offset, shape[3:]), 2)


def _over_pixels(emit: Emit, value: Value) -> Value:
    """The sums over all pixels of NHWC images, channel by channel: first along rows, so that few are added at once."""
    return reduced(emit, "SUM", reduced(emit, "SUM", value, [2], keep=True), [0, 1], keep=True)


@lowers("BiasAddGrad", takes=("float",))
def of_a_bias(emit: Emit, node: Node, gradient: Value) -> Value:
    rank = len(gradient.shape)
    if rank < 2:
        raise emit.unsupported(f"the gradient of biases by rank {rank}")
    kept = 1 if attr_text(node, "data_format", "NHWC").startswith("NC") and rank > 2 else rank - 1
    return summed(emit, gradient, [axis for axis in range(rank) if axis != kept], keep=False)
