"""Layers of Keras without windows and without time: dense ones, norms, activations, shapes, sums of several tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from pocketgraph.formats.keras.activation_functions import activated, scaled
from pocketgraph.formats.keras.layer_writer import (
    Dims,
    KerasTensor,
    LayerWriter,
    Rule,
    broadcast,
    elements,
    joined,
    pair,
    with_rest,
)  # fmt: skip
from pocketgraph.formats.keras.window_layers import with_bias
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32


def dense(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    """The last axis times a matrix, and a bias."""
    (value,) = inputs
    kernel = writer.weight("kernel")
    dims: Dims = (*value.dims[:-1], kernel.dims[-1])
    if len(dims) == 2:
        return with_bias(writer, writer.add("MatMul", value, kernel, dims=dims))
    rows = writer.reshaped(value, (None, kernel.dims[0]))
    return writer.reshaped(with_bias(writer, writer.add("MatMul", rows, kernel, dims=(None, dims[-1]))), dims, value)


def batch_norm(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    """The moments of training, a factor and an offset for each channel."""
    (value,) = inputs
    axis = writer.config.get("axis", -1)
    (axis,) = axis if isinstance(axis, list) else (axis,)
    axis = axis % len(value.dims)
    epsilon = float(writer.config.get("epsilon", 1e-3))
    mean, variance = (writer.array(f"moving_{name}") for name in ("mean", "variance"))
    gamma = writer.array("gamma") if writer.config.get("scale", True) else np.ones_like(mean)
    beta = writer.array("beta") if writer.config.get("center", True) else np.zeros_like(mean)
    factor = gamma / np.sqrt(variance + epsilon)
    shape = [1] * len(value.dims)
    shape[axis] = -1
    last = axis == len(value.dims) - 1
    factor, offset = (one if last else one.reshape(shape) for one in (factor, beta - mean * factor))
    return scaled(writer, value, factor, offset)


def normalization(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    """The moments of the data, which are weights, or written down, for each position of some axes."""
    value, axis, told = inputs[0], writer.config.get("axis", -1), writer.config.get("mean")
    axes = {one % len(value.dims) for one in ([] if axis is None else pair(axis, 1))}
    shape = [int(size or 1) if at in axes else 1 for at, size in enumerate(value.dims)]
    moments = (writer.array(name) if told is None else np.asarray(writer.config[name]) for name in ("mean", "variance"))
    mean, variance = (np.broadcast_to(one.reshape(shape) if one.size > 1 else one, shape) for one in moments)
    deviation = np.sqrt(np.maximum(variance, 1e-14))
    if writer.config.get("invert", False):
        return scaled(writer, value, deviation, mean)
    return scaled(writer, value, 1 / deviation, -mean / deviation)


def layer_norm(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    """The moments of the example, over one or more axes."""
    (value,) = inputs
    axes = [axis % len(value.dims) for axis in pair(writer.config.get("axis", -1), 1)]
    if axes != list(range(len(value.dims) - len(axes), len(value.dims))):
        raise writer.refuse(f"has axis={axes}, which is not read: not the last ones")
    return _with_offset(writer, _standardized(writer, value, axes))


def group_norm(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    """The moments of the example, over space and a group of channels."""
    (value,) = inputs
    rank, count = len(value.dims), int(value.dims[-1] or 0)
    writer.expect(axis=-1)
    groups = int(writer.config.get("groups", 32))
    groups = count if groups == -1 else groups
    grouped = writer.reshaped(value, (*value.dims[:-1], groups, count // groups))
    whole = _standardized(writer, grouped, [*range(1, rank - 1), rank])
    return _with_offset(writer, writer.reshaped(whole, value.dims, value))


def _standardized(writer: LayerWriter, value: KerasTensor, axes: list[int]) -> KerasTensor:
    """A tensor less its mean along axes, by its deviation there."""
    dims = tuple(1 if axis in axes else size for axis, size in enumerate(value.dims))
    along = writer.const(axes, "axes")
    centred = writer.add("Sub", value, writer.add("Mean", value, along, dims=dims, keep_dims=True))
    variance = writer.add("Mean", writer.add("Square", centred), along, dims=dims, name="variance", keep_dims=True)
    epsilon = writer.const(float(writer.config.get("epsilon", 1e-3)), "epsilon", FLOAT)
    return writer.add("Mul", centred, writer.add("Rsqrt", writer.add("AddV2", variance, epsilon)), dims=value.dims)


def _with_offset(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """Times the factor of each channel, and its offset, where the layer has them."""
    if writer.config.get("scale", True):
        value = writer.add("Mul", value, writer.weight("gamma"))
    return writer.add("AddV2", value, writer.weight("beta")) if writer.config.get("center", True) else value


def activation(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    return activated(writer, inputs[0], writer.config.get("activation"))


def relu(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    """ReLU, with a largest value or a slope below zero."""
    writer.expect(threshold=0)
    largest = writer.config.get("max_value")
    slope = float(np.ravel(writer.config.get("negative_slope") or 0)[0])
    if slope:
        value = writer.add("LeakyRelu", inputs[0], alpha=slope)
    else:
        value = writer.add("Relu6" if largest == 6 else "Relu", inputs[0])
    if largest is None or (largest == 6 and not slope):
        return value
    return writer.add("Minimum", value, writer.const(largest, "max_value", FLOAT))


def leaky_relu(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    slope = writer.config.get("alpha", writer.config.get("negative_slope", 0.3))
    return writer.add("LeakyRelu", inputs[0], alpha=float(np.ravel(slope)[0]))


def prelu(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    """A slope below zero for each element, or for those that share an axis."""
    (value,) = inputs
    above, below = writer.add("Relu", value), writer.add("Relu", writer.add("Neg", value), name="below")
    return writer.add("Sub", above, writer.add("Mul", below, writer.weight("alpha")))


def elu(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    writer.expect(alpha=1)
    return writer.add("Elu", inputs[0])


def thresholded_relu(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    limit = writer.const(float(writer.config.get("theta", 1)), "theta", FLOAT)
    above = writer.add("Cast", writer.add("Greater", inputs[0], limit), SrcT=BOOL, DstT=FLOAT)
    return writer.add("Mul", inputs[0], above)


def softmax(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    axis = writer.config.get("axis", -1)
    if axis not in (-1, [-1], len(inputs[0].dims) - 1):
        raise writer.refuse(f"has axis={axis}, which is not read: not the last one")
    return writer.add("Softmax", inputs[0])


def identity(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    """What does something in training alone."""
    return inputs[0]


def flatten(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    writer.expect(data_format="channels_last")
    (value,) = inputs
    return writer.reshaped(value, (value.dims[0], elements(value.dims[1:])))


def reshape(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    """Another shape for each example, of which one size may be what remains."""
    (value,) = inputs
    return writer.reshaped(value, (value.dims[0], *with_rest(writer.config["target_shape"], value.dims[1:])))


def permute(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    order = [0, *writer.config["dims"]]
    dims = tuple(inputs[0].dims[axis] for axis in order)
    return writer.add("Transpose", inputs[0], writer.const(order, "order"), dims=dims)


def repeat_vector(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    """A vector of each example, several times in a row."""
    (value,) = inputs
    count = int(writer.config["n"])
    column = writer.add("ExpandDims", value, writer.const(1, "axis"), dims=(value.dims[0], 1, *value.dims[1:]))
    return writer.add(
        "Tile", column, writer.const([1, count, 1], "multiples"), dims=(value.dims[0], count, value.dims[1])
    )


def embedding(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    """The row of a table for each number."""
    (value,) = inputs
    table = writer.weight("embeddings")
    if value.dtype is FLOAT:
        value = writer.add("Cast", value, SrcT=FLOAT, DstT=INT32)
    rows = writer.add("GatherV2", table, value, writer.const(0, "axis"), dims=(*value.dims, table.dims[-1]))
    if not writer.config.get("mask_zero", False):
        return rows
    return rows._replace(mask=writer.add("NotEqual", value, writer.const(0, "padding", value.dtype), name="mask"))


def masking(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    """Steps whose elements all have one value do not count, and are zero."""
    (value,) = inputs
    differs = writer.add(
        "NotEqual", value, writer.const(float(writer.config.get("mask_value", 0)), "mask_value", FLOAT)
    )
    last = writer.const(-1, "axis")
    mask = writer.add("Any", differs, last, dims=value.dims[:-1], name="mask")
    kept = writer.add("Any", differs, last, dims=(*value.dims[:-1], 1), name="kept", keep_dims=True)
    return writer.add("Mul", value, writer.add("Cast", kept, SrcT=BOOL, DstT=FLOAT))._replace(mask=mask)


def rescaling(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    scale, offset = (np.asarray(writer.config.get(name, usual)) for name, usual in (("scale", 1), ("offset", 0)))
    return scaled(writer, inputs[0], scale, offset)


MERGES = {
    "Add": "AddV2",
    "Average": "AddV2",
    "Subtract": "Sub",
    "Multiply": "Mul",
    "Maximum": "Maximum",
    "Minimum": "Minimum",
}


def merge(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    """Two or more tensors, element by element."""
    op = MERGES[writer.kind]
    if len(inputs) < 2:
        raise writer.refuse("takes a single tensor, which is not read")

    def both(one: KerasTensor, other: KerasTensor) -> KerasTensor:
        return writer.add(op, one, other, dims=broadcast(one.dims, other.dims))

    made = reduce(both, inputs)
    return scaled(writer, made, 1 / len(inputs)) if writer.kind == "Average" else made


def concatenate(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    return joined(writer, inputs, int(writer.config.get("axis", -1)))


RULES: dict[str, Rule] = {
    "Dense": dense, "BatchNormalization": batch_norm, "LayerNormalization": layer_norm,
    "GroupNormalization": group_norm, "Normalization": normalization, "Activation": activation,
    "ReLU": relu, "LeakyReLU": leaky_relu, "PReLU": prelu, "ELU": elu, "ThresholdedReLU": thresholded_relu,
    "Softmax": softmax, "Flatten": flatten, "Reshape": reshape, "Permute": permute, "RepeatVector": repeat_vector,
    "Embedding": embedding, "Masking": masking, "Rescaling": rescaling, "Concatenate": concatenate,
    **dict.fromkeys(MERGES, merge),
    **dict.fromkeys(
        ("Dropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "AlphaDropout", "GaussianDropout",
         "GaussianNoise", "ActivityRegularization", "RandomFlip", "RandomRotation", "RandomZoom", "RandomContrast",
         "RandomTranslation", "RandomBrightness"), identity,
    ),
}  # fmt: skip
