"""Batch normalization, fused or by its old ops."""

from __future__ import annotations

import numpy as np

from pocketgraph.exporting.onnx.broadcasting import add, mul, sub, unary
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.layout import channels_first
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.nn import image, is_channels_first, yield_image
from pocketgraph.exporting.onnx.ops.reductions import reduce
from pocketgraph.graph import Node


@converts("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(emit: OnnxEmit, node: Node) -> None:
    _, scale, offset, mean, variance = emit.inputs()
    epsilon = float(node.attr("epsilon", 1e-4))
    source = image(emit, node)
    if bool(node.attr("is_training", True)):
        _by_the_batch(emit, node, source, epsilon)
        return
    made = normalized(emit, source, scale, offset, mean, variance, epsilon)
    yield_image(emit, node, made)
    for port, value in enumerate((mean, variance, mean, variance), start=1):
        emit.result(value, port)


def normalized(
    emit: OnnxEmit,
    source: OnnxValue,
    scale: OnnxValue,
    offset: OnnxValue,
    mean: OnnxValue,
    variance: OnnxValue,
    epsilon: float,
) -> OnnxValue:
    """Batch normalization of a channels-first image with known statistics."""
    return emit.op("BatchNormalization", [source, scale, offset, mean, variance], source.shape, epsilon=epsilon)


def _by_the_batch(emit: OnnxEmit, node: Node, source: OnnxValue, epsilon: float) -> None:
    """With the statistics of the batch itself."""
    _, scale, offset, *running = emit.inputs()
    dtype, source = source.dtype, emit.cast(source, scale.dtype)  # halves have statistics of 32 bits
    axes = [axis for axis in range(emit.rank(source)) if axis != 1]
    mean = reduce(emit, "ReduceMean", source, axes, True)
    centred = sub(emit, source, mean)
    variance = reduce(emit, "ReduceMean", mul(emit, centred, centred), axes, True)
    spread = unary(emit, "Sqrt", add(emit, variance, emit.like(epsilon, variance)))
    factor, shift = (emit.unsqueeze(value, list(range(1, emit.rank(source) - 1))) for value in (scale, offset))
    factor = emit.op(
        "Div", [factor, spread], variance.shape
    )  # of small tensors, so that the large one is gone over once
    made = emit.op("Add", [emit.op("Mul", [centred, factor], source.shape), shift], source.shape)
    yield_image(emit, node, emit.cast(made, dtype))
    flat_mean, flat_variance = (emit.reshape(value, [-1]) for value in (mean, variance))
    if source.shape.is_known:
        count = int(np.prod([source.shape.known[axis] for axis in axes]))
        corrected = mul(emit, flat_variance, emit.like(count / max(count - 1, 1), flat_variance))
    else:
        sizes = emit.op("Gather", [emit.dims(source), emit.ints(axes)], [len(axes)], axis=0)
        members = emit.cast(emit.op("ReduceProd", [sizes], [], keepdims=0), variance.dtype)
        fewer = emit.op("Max", [sub(emit, members, emit.like(1, members)), emit.like(1, members)], [])
        corrected = mul(emit, flat_variance, emit.op("Div", [members, fewer], []))
    part = float(node.attr("exponential_avg_factor", 1.0))
    if part != 1:
        given = [_moved(emit, *pair, part) for pair in zip(running, (flat_mean, corrected), strict=True)]
    else:
        given = [flat_mean, corrected]
    for port, value in enumerate((*given, flat_mean, flat_variance), start=1):
        emit.result(value, port)


def _moved(emit: OnnxEmit, old: OnnxValue, new: OnnxValue, part: float) -> OnnxValue:
    """A running average that takes over this part of the new value."""
    kept = mul(emit, old, emit.like(1 - np.float32(part), old))
    return add(emit, kept, mul(emit, new, emit.like(part, new)))


@converts("BatchNormWithGlobalNormalization")
def old_batch_norm(emit: OnnxEmit, node: Node) -> None:
    value, mean, variance, offset, scale = emit.inputs()
    if not node.attr("scale_after_normalization", True):
        scale = emit.const(np.ones(scale.shape.known, scale.dtype.numpy))
    source = value if is_channels_first(node) else channels_first(emit, value)
    epsilon = float(node.attr("variance_epsilon", 1e-3))
    yield_image(emit, node, normalized(emit, source, scale, offset, mean, variance, epsilon))
