"""Lowerings of batch normalization."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.image_layout import data_format
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.operands import attr_text
from pocketgraph.litert.program import Value


@lowers("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", takes=("float",))
def fused_batch_norm(emit: Emit, node: Node, source: Value) -> None:
    if node.attr("is_training", True):
        batch_statistics_norm(emit, node, source)
        return
    scale, offset, mean, variance = emit.inputs(1, 5)
    epsilon = float(node.attr("epsilon", 1e-4))
    emit.result(batch_norm(emit, node, source, mean, variance, offset, scale, epsilon))
    emit.result(mean, 1)
    emit.result(variance, 2)


def batch_statistics_norm(emit: Emit, node: Node, source: Value) -> None:
    """A normalization by the batch's own mean and variance, as graphs in training mode have it.

    The third and fourth outputs are what the gradient wants: the mean, and the variance before it is made unbiased.
    """
    if len(source.shape) != 4:
        raise emit.unsupported(f"{node.op} in training mode of rank {len(source.shape)}")
    channel = 1 if data_format(emit, node) == "NCHW" else 3
    axes = [axis for axis in range(4) if axis != channel]
    shape = [source.shape[channel] if axis == channel else 1 for axis in range(4)]
    operand = emit.const(axes, np.int32)
    scale, offset = (emit.reshape(value, shape) for value in emit.inputs(1, 3))
    mean = emit.add("MEAN", [source, operand], shape, keep_dims=True)
    centred = emit.add("SUB", [source, mean], source.shape, activation="")
    squared = emit.add("MUL", [centred, centred], source.shape, activation="")
    variance = emit.add("MEAN", [squared, operand], shape, keep_dims=True)
    lifted = emit.add("ADD", [variance, emit.const(node.attr("epsilon", 1e-4), np.float32)], shape, activation="")
    factor = emit.add("MUL", [emit.add("RSQRT", [lifted], shape), scale], shape, activation="")
    scaled = emit.add("MUL", [centred, factor], source.shape, activation="")
    emit.result(emit.add("ADD", [scaled, offset], source.shape, activation=""))
    count = source.size // source.shape[channel]
    unbiased = emit.add("MUL", [variance, emit.const(count / max(count - 1, 1), np.float32)], shape, activation="")
    vector = shape[channel : channel + 1]
    mean, variance, unbiased = (emit.reshape(value, vector) for value in (mean, variance, unbiased))
    part = float(node.attr("exponential_avg_factor", 1.0))
    for port, new in ((1, mean), (2, unbiased)):
        emit.result(new if part == 1 else _moved(emit, emit.input(port + 2), new, part), port)
    emit.result(mean, 3)
    emit.result(variance, 4)
    if node.op == "FusedBatchNormV3":
        emit.result(emit.const(0, np.float32), 5)


def _moved(emit: Emit, old: Value, new: Value, part: float) -> Value:
    """A running average that takes over this part of the new value."""
    if old.shape != new.shape:
        raise emit.unsupported(f"a running average of {list(old.shape)} of values of {list(new.shape)}")
    kept = emit.add("MUL", [old, emit.const(1 - np.float32(part), np.float32)], new.shape, activation="")
    taken = emit.add("MUL", [new, emit.const(part, np.float32)], new.shape, activation="")
    return emit.add("ADD", [kept, taken], new.shape, activation="")


@lowers("BatchNormWithGlobalNormalization", takes=("float",))
def old_batch_norm(emit: Emit, node: Node, source: Value) -> Value:
    mean, variance, offset, scale = emit.inputs(1, 5)
    used = scale if node.attr("scale_after_normalization", False) else None
    epsilon = float(node.attr("variance_epsilon", 1e-3))
    return batch_norm(emit, node, source, mean, variance, offset, used, epsilon)


def batch_norm(
    emit: Emit,
    node: Node,
    source: Value,
    mean: Value,
    variance: Value,
    offset: Value,
    scale: Value | None,
    epsilon: float,
) -> Value:
    """A normalization by known statistics as one multiplication and one addition."""
    rank = len(source.shape)
    across = (1, -1, *[1] * (rank - 2)) if data_format(emit, node) == "NCHW" else (-1,)
    if mean.constant and variance.constant and offset.constant and (scale is None or scale.constant):
        with np.errstate(all="ignore"):  # broken statistics give NaN or infinity, as they do node by node
            factor = 1 / np.sqrt(variance.constant.numpy().astype(np.float64) + epsilon)
            if scale is not None and scale.constant is not None:
                factor *= scale.constant.numpy()
            shift = offset.constant.numpy() - mean.constant.numpy() * factor
            multiplier = emit.const(factor.astype(np.float32).reshape(across))
            addend = emit.const(shift.astype(np.float32).reshape(across))
    else:
        size = variance.shape
        lifted = emit.add("ADD", [variance, emit.const(epsilon, np.float32)], size, activation="")
        multiplier = emit.add("RSQRT", [lifted], size)
        if scale is not None:
            multiplier = emit.add("MUL", [multiplier, scale], size, activation="")
        moved = emit.add("MUL", [mean, multiplier], size, activation="")
        addend = emit.add("SUB", [offset, moved], size, activation="")
        target = tuple(size[0] if d == -1 else d for d in across)
        multiplier, addend = emit.reshape(multiplier, target), emit.reshape(addend, target)
    scaled = emit.add("MUL", [source, multiplier], source.shape, activation="")
    return emit.add("ADD", [scaled, addend], source.shape, activation="")


@lowers("BiasAdd", "BiasAddV1")
def bias_add(emit: Emit, node: Node) -> Value:
    source, bias = emit.require(emit.input(0), "float", "int32"), emit.input(1)
    if attr_text(node, "data_format", "NHWC") == "NCHW" and len(source.shape) > 2:
        bias = emit.reshape(bias, (bias.shape[0], *[1] * (len(source.shape) - 2)))
    return emit.add("ADD", [source, bias], source.shape, activation="")
