"""Layers of Keras without windows and without time: dense ones, norms, activations, shapes, sums of several tensors."""

from __future__ import annotations

import re
from functools import reduce

import numpy as np

from pocketgraph.formats.keras import composed_operations as composed
from pocketgraph.formats.keras.activation_functions import HIDDEN, activated, elu, scaled, softmax_along
from pocketgraph.formats.keras.axis_operations import unit_length
from pocketgraph.formats.keras.composed_operations import Operations
from pocketgraph.formats.keras.layer_writer import (
    Dims,
    KerasTensor,
    LayerWriter,
    Rule,
    as_float,
    broadcast,
    contraction,
    elements,
    expanded,
    joined,
    of_one_type,
    pair,
    transposed,
    with_rest,
)  # fmt: skip
from pocketgraph.formats.keras.operation_call import OperationCall
from pocketgraph.formats.keras.operations import OPERATIONS
from pocketgraph.formats.keras.window_layers import with_bias
from pocketgraph.graph.dtype import BOOL, DOUBLE, FLOAT


def dense(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """The last axis times a matrix, and a bias."""
    value, kernel = as_float(writer, value), writer.weight("kernel")
    dims: Dims = (*value.dims[:-1], kernel.dims[-1])
    if len(dims) == 2:
        return with_bias(writer, writer.add("MatMul", value, kernel, dims=dims))
    rows = writer.reshaped(value, (None, kernel.dims[0]))
    return writer.reshaped(with_bias(writer, writer.add("MatMul", rows, kernel, dims=(None, dims[-1]))), dims, value)


def maxout_dense(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """The largest of several dense layers' results, as Keras 1 has it."""
    made = contraction(writer, "bi,fio->bfo", as_float(writer, value), writer.weight("kernel"))
    if writer.config.get("use_bias", True):
        made = writer.add("AddV2", made, writer.weight("bias"))
    return writer.add("Max", made, writer.const(1, "axis"), dims=(made.dims[0], made.dims[2]))


def highway(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """A dense layer's result and its input, mixed by a gate, as Keras 1 has it."""
    value = as_float(writer, value)
    made, gate = (writer.add("MatMul", value, writer.weight(f"{name}kernel")) for name in ("", "carry_"))
    if writer.config.get("use_bias", True):
        made, gate = (
            writer.add("AddV2", one, writer.weight(f"{name}bias")) for one, name in ((made, ""), (gate, "carry_"))
        )
    made, gate = activated(writer, made, writer.config.get("activation")), writer.add("Sigmoid", gate)
    rest = writer.add("Sub", writer.const(np.float32(1), "one", FLOAT), gate, dims=gate.dims)
    return writer.add("AddV2", writer.add("Mul", made, gate), writer.add("Mul", rest, value))


def batch_norm(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """The moments of training, as TensorFlow's Keras writes them; with Keras 1's mode=1 those of the example."""
    value, ops, epsilon = as_float(writer, value), Operations(writer, OPERATIONS), _epsilon(writer)
    made: KerasTensor
    if writer.config.get("mode") == 1:
        centred = ops.Subtract(value, ops.Mean(value, -1, True))
        root = ops.Sqrt(ops.Add(ops.Mean(ops.Square(centred), -1, True), epsilon))
        normed = ops.Divide(centred, ops.Add(root, epsilon))
        made = composed.with_offset(ops, normed, writer.weight("gamma"), writer.weight("beta"), -1)
        return made
    (axis,) = (one % len(value.dims) for one in pair(writer.config.get("axis", -1), 1))
    mean, variance = (writer.weight(f"moving_{name}") for name in ("mean", "variance"))
    gamma, beta = (_factor(writer, name) for name in ("gamma", "beta"))
    beta = beta or writer.const(np.zeros(mean.dims), "beta", FLOAT)
    if len(value.dims) == 4 and axis == 3 and value.dtype is FLOAT:
        gamma = gamma or writer.const(np.ones(mean.dims), "gamma", FLOAT)
        given = value, gamma, beta, mean, variance
        return writer.add("FusedBatchNormV3", *given, epsilon=epsilon, is_training=False)
    made = composed.batch_norm(ops, value, mean, variance, beta, gamma, axis, epsilon)
    return made


def normalization(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """The moments of the data, which are weights, or written down, for each position of some axes."""
    value, axis, told = as_float(writer, value), writer.config.get("axis", -1), writer.config.get("mean")
    axes = {one % len(value.dims) for one in ([] if axis is None else pair(axis, 1))}
    shape = [int(size or 1) if at in axes else 1 for at, size in enumerate(value.dims)]
    moments = (writer.array(name) if told is None else np.asarray(writer.config[name]) for name in ("mean", "variance"))
    mean, variance = (np.broadcast_to(one.reshape(shape) if one.size > 1 else one, shape) for one in moments)
    deviation = np.sqrt(np.maximum(variance, 1e-14))
    if writer.config.get("invert", False):
        return scaled(writer, value, deviation, mean)
    return scaled(writer, value, 1 / deviation, -mean / deviation)


def layer_norm(writer: LayerWriter, given: KerasTensor) -> KerasTensor:
    """The moments of the example, over one or more axes."""
    value, axis, keeps_mean = as_float(writer, given), writer.config.get("axis", -1), writer.config.get("rms_scaling")
    gamma = writer.weight("gamma") if keeps_mean else _factor(writer, "gamma")  # whatever ``scale`` says
    beta = None if keeps_mean else _factor(writer, "beta")
    made: KerasTensor = composed.layer_norm(
        Operations(writer, OPERATIONS), value, gamma, beta, axis, _epsilon(writer), bool(keeps_mean)
    )
    if given.dtype.is_integer and writer.model.is_keras_3:  # Keras 3 cuts off the fractions then
        made = as_float(writer, writer.add("Cast", made, DstT=given.dtype))
    return made


def group_norm(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """The moments of the example, over space and a group of channels."""
    axis = int(writer.config.get("axis", -1)) % len(value.dims)
    count, groups = int(value.dims[axis] or 0), int(writer.config.get("groups", 32))
    groups = count if groups == -1 else groups
    before, after = value.dims[:axis], value.dims[axis + 1 :]
    if None in after:
        raise writer.refuse(f"has axis={axis}, behind which sizes are open, which is not read")
    grouped = writer.reshaped(value, (*before, groups, count // groups, *after))
    axes, ops = [at for at in range(1, len(value.dims) + 1) if at != axis], Operations(writer, OPERATIONS)
    whole = composed.layer_norm(ops, grouped, axis=axes, epsilon=_epsilon(writer))
    gamma, beta = (_factor(writer, name) for name in ("gamma", "beta"))
    made: KerasTensor = composed.with_offset(ops, writer.reshaped(whole, value.dims, value), gamma, beta, axis)
    return made


def rms_norm(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """By the root of the mean square, over one or more axes."""
    ops, axis = Operations(writer, OPERATIONS), writer.config.get("axis", -1)
    scale = composed.along(ops, writer.weight("scale"), value, axis)
    made: KerasTensor = composed.rms_norm(ops, value, scale, axis, _epsilon(writer))
    return made


def _epsilon(writer: LayerWriter) -> float:
    told = writer.config.get("epsilon")
    return 1e-3 if told is None else float(told)


def _factor(writer: LayerWriter, name: str) -> KerasTensor | None:
    """The factor of each channel, or its offset, where the layer has one."""
    return writer.weight(name) if writer.config.get("scale" if name == "gamma" else "center", True) else None


def layer_scale(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """A factor for each channel, as in ConvNeXt."""
    return writer.add("Mul", value, writer.weight("gamma", "variable"))


def unit_norm(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """The length of vectors along axes becomes one."""
    return unit_length(OperationCall(writer, [value], writer.config))


def activation(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    return activated(writer, value, writer.config.get("activation"))


def relu(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """ReLU, with a largest value or a slope below zero."""
    largest = writer.config.get("max_value")
    slope, limit = (float(np.ravel(writer.config.get(name) or 0)[0]) for name in ("negative_slope", "threshold"))
    if limit:
        below = scaled(writer, value, slope, -slope * limit)
        is_above = writer.add("Greater", value, writer.const(limit, "threshold", FLOAT))
        value = writer.add("SelectV2", is_above, value, below, dims=value.dims)
    elif slope:
        value = writer.add("LeakyRelu", value, alpha=slope)
    else:
        value = writer.add("Relu6" if largest == 6 else "Relu", value)
    if largest is None or (largest == 6 and not slope and not limit):
        return value
    return writer.add("Minimum", value, writer.const(largest, "max_value", FLOAT))


def leaky_relu(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    slope = writer.config.get("alpha", writer.config.get("negative_slope", 0.3))
    return writer.add("LeakyRelu", value, alpha=float(np.float32(np.ravel(slope)[0])))


def prelu(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """A slope below zero for each element, or for those that share an axis."""
    above, below = writer.add("Relu", value), writer.add("Relu", writer.add("Neg", value), name="below")
    return writer.add("Sub", above, writer.add("Mul", below, writer.weight("alpha")))


def parametric_softplus(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """Softplus with a factor before and one behind it for each element, as Keras 1 has it."""
    steep = writer.add("Mul", value, writer.weight("betas"))
    return writer.add("Mul", writer.add("Softplus", steep), writer.weight("alpha"))


def s_relu(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """A slope to the left of a threshold, one to the right of another, and none between, as Keras 1 has it."""
    left, width = writer.weight("t_left"), writer.const(np.abs(writer.array("t_right")), "width", FLOAT)
    right = writer.const(writer.array("t_left") + np.abs(writer.array("t_right")), "right", FLOAT)
    above = writer.add("Sub", value, left)
    below = writer.add("Mul", writer.add("Relu", writer.add("Neg", above)), writer.weight("a_left"))
    centre = writer.add("Sub", writer.add("Minimum", writer.add("Relu", above), width), below)
    beyond = writer.add("Mul", writer.add("Relu", writer.add("Sub", value, right)), writer.weight("a_right"))
    return writer.add("AddV2", writer.add("AddV2", centre, left), beyond)


def exponential_linear(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    return elu(writer, value, float(np.ravel(writer.config.get("alpha", 1))[0]))


def thresholded_relu(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    limit = writer.const(float(writer.config.get("theta", 1)), "theta", FLOAT)
    above = writer.add("Cast", writer.add("Greater", value, limit), DstT=writer.float_type)
    return writer.add("Mul", value, above)


def softmax(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """Of what counts alone, where a mask says that; since Keras 3.10 where nothing does, zeros."""
    axis, counts = writer.config.get("axis", -1), value.mask if writer.has_own_mask else None
    if counts is None:
        return softmax_along(writer, value, axis)
    if counts.dtype is not BOOL:
        raise writer.refuse("has a mask of numbers, which is not read")
    shown = writer.add("SelectV2", counts, value, writer.const(HIDDEN, "hidden", FLOAT), dims=value.dims)
    made = softmax_along(writer, shown, axis)
    if not re.match(r"3\.\d\d", writer.model.version):
        return made
    return writer.add("SelectV2", counts, made, writer.const(0, "zero", FLOAT), dims=made.dims)


def identity(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """What does something in training alone."""
    return value


def flatten(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    writer.expect(data_format="channels_last")
    return writer.reshaped(value, (value.dims[0], elements(value.dims[1:])))


def reshape(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """Another shape for each example, of which one size may be what remains."""
    return writer.reshaped(value, (value.dims[0], *with_rest(writer.config["target_shape"], value.dims[1:])))


def permute(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    return transposed(writer, value, [0, *writer.config["dims"]])


def repeat_vector(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """A vector of each example, several times in a row."""
    count = int(writer.config["n"])
    column = expanded(writer, value, 1)
    return writer.add(
        "Tile", column, writer.const([1, count, 1], "multiples"), dims=(value.dims[0], count, value.dims[1])
    )


def masking(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """Steps whose elements all have one value do not count, and are zero."""
    differs = writer.add(
        "NotEqual", value, writer.const(float(writer.config.get("mask_value", 0)), "mask_value", FLOAT)
    )
    last = writer.const(-1, "axis")
    mask = writer.add("Any", differs, last, dims=value.dims[:-1], name="mask")
    kept = writer.add("Any", differs, last, dims=(*value.dims[:-1], 1), name="kept", keep_dims=True)
    return writer.add("Mul", value, writer.add("Cast", kept, DstT=writer.float_type))._replace(mask=mask)


def rescaling(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    scale, offset = (np.asarray(writer.config.get(name, usual)) for name, usual in (("scale", 1), ("offset", 0)))
    return scaled(writer, as_float(writer, value), scale, offset)


MERGES = {
    "Add": "AddV2",
    "Average": "AddV2",
    "Subtract": "Sub",
    "Multiply": "Mul",
    "Maximum": "Maximum",
    "Minimum": "Minimum",
}


def merge(writer: LayerWriter, *inputs: KerasTensor) -> KerasTensor:
    """Two or more tensors, element by element."""
    op = MERGES[writer.kind]
    if len(inputs) < 2:
        raise writer.refuse("takes a single tensor, which is not read")

    rank = max(len(one.dims) for one in inputs)

    def both(one: KerasTensor, other: KerasTensor) -> KerasTensor:
        one, other = ranked(one), ranked(other)
        return writer.add(op, one, other, dims=broadcast(one.dims, other.dims))

    def ranked(one: KerasTensor) -> KerasTensor:
        """With as many axes as the others, the new ones behind the batch's."""
        while len(one.dims) < rank:
            one = expanded(writer, one, 1)
        return one

    made = reduce(both, of_one_type(writer, inputs))
    if writer.kind != "Average":
        return made
    if made.dtype.is_integer:
        wide = FLOAT if made.dtype.numpy.itemsize < 4 else DOUBLE
        writer.float_type, made = wide, writer.add("Cast", made, DstT=wide)
    return scaled(writer, made, 1 / len(inputs))


def concatenate(writer: LayerWriter, *inputs: KerasTensor) -> KerasTensor:
    return joined(writer, inputs, int(writer.config.get("axis", -1)))


def dot(writer: LayerWriter, one: KerasTensor, other: KerasTensor) -> KerasTensor:
    """The products of two tensors along an axis of each, for each example."""
    inputs = [one, other]
    ranks = [len(value.dims) for value in inputs]
    axes = [axis % rank for axis, rank in zip(pair(writer.config["axes"]), ranks, strict=True)]
    if writer.config.get("normalize", False):
        inputs = [
            unit_length(OperationCall(writer, [value, axis], {})) for value, axis in zip(inputs, axes, strict=True)
        ]
    names = ["b" + text[: rank - 1] for text, rank in zip(("cdefg", "ijklm"), ranks, strict=True)]
    names[1] = names[1].replace(names[1][axes[1]], names[0][axes[0]])
    rest = "".join(name for name in names[0] + names[1] if name not in ("b", names[0][axes[0]]))
    made = contraction(writer, f"{names[0]},{names[1]}->b{rest}", *inputs)
    return made if rest else expanded(writer, made, 1)


def cosine(writer: LayerWriter, one: KerasTensor, other: KerasTensor) -> KerasTensor:
    """The products of two tensors by those of each with itself, as a Merge of Keras 1 has it, with one more axis."""
    if writer.config.get("mode") != "cos":
        raise writer.refuse("is of a kind that is not read")
    writer.config = {**writer.config, "axes": writer.config.get("axes", -1)}
    product, *squares = (dot(writer, *both) for both in ((one, other), (one, one), (other, other)))
    square = writer.add("Maximum", writer.add("Mul", *squares), writer.const(1e-14, "epsilon", FLOAT))
    return expanded(writer, writer.add("RealDiv", product, writer.add("Sqrt", square)), 1)


def einsum_dense(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """Einstein's sum of a tensor and a kernel, and a bias."""
    made = contraction(writer, writer.config["equation"], value, writer.weight("kernel"))
    if writer.config.get("bias_axes") is not None:
        made = writer.add("AddV2", made, writer.weight("bias"))
    return activated(writer, made, writer.config.get("activation"))


RULES: dict[str, Rule] = {
    "LayerScale": layer_scale, "UnitNormalization": unit_norm, "RMSNormalization": rms_norm, "Dot": dot,
    "EinsumDense": einsum_dense, "Dense": dense, "MaxoutDense": maxout_dense, "Highway": highway,
    "BatchNormalization": batch_norm, "LayerNormalization": layer_norm,
    "GroupNormalization": group_norm, "Normalization": normalization, "Activation": activation,
    "ParametricSoftplus": parametric_softplus, "SReLU": s_relu,
    "ReLU": relu, "LeakyReLU": leaky_relu, "PReLU": prelu, "ELU": exponential_linear,
    "ThresholdedReLU": thresholded_relu,
    "Softmax": softmax, "Flatten": flatten, "Reshape": reshape, "Permute": permute, "RepeatVector": repeat_vector,
    "Masking": masking, "Rescaling": rescaling, "Concatenate": concatenate,
    "Merge": cosine,
    **dict.fromkeys(MERGES, merge),
    **dict.fromkeys(
        ("Dropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "AlphaDropout", "GaussianDropout",
         "FixedDropout", "GaussianNoise", "ActivityRegularization", "StochasticDepth", "Identity",
         "RandomHeight", "RandomWidth"), identity,
    ),
}  # fmt: skip
