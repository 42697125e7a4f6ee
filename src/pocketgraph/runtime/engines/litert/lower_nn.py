"""Lowerings of convolutions, pooling, normalization, matrix products and softmax."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.runtime.engines.litert.constant import Array
from pocketgraph.runtime.engines.litert.emitter import Emit, attr_list, attr_text, lowers
from pocketgraph.runtime.engines.litert.program import Value

TO_NHWC = (0, 2, 3, 1)
TO_NCHW = (0, 3, 1, 2)
LOWEST = float(np.finfo(np.float32).min)


def data_format(emit: Emit, node: Node) -> str:
    """``NHWC`` or ``NCHW``; anything else is refused."""
    found = attr_text(node, "data_format", "NHWC") or "NHWC"
    if found not in ("NHWC", "NCHW"):
        raise emit.unsupported(f"the data format {found} has no LiteRT operator")
    return found


def image(emit: Emit, index: int, layout: str) -> Value:
    """A float image operand as NHWC."""
    value = emit.require(emit.input(index), "float")
    if len(value.shape) != 4:
        raise emit.unsupported(f"an image of rank {len(value.shape)}")
    return value if layout == "NHWC" else emit.transpose(value, TO_NHWC)


def yield_image(emit: Emit, value: Value, layout: str) -> None:
    """Ends a lowering whose result is ``value`` in NHWC."""
    emit.result(value if layout == "NHWC" else emit.transpose(value, TO_NCHW))


def spatial(emit: Emit, values: tuple[int, ...], layout: str, what: str) -> tuple[int, int]:
    """The height and width entries of a four-element attribute whose other entries must be 1."""
    if len(values) != 4:
        raise emit.unsupported(f"{what} {list(values)} must have 4 entries")
    batch, height, width, channels = values if layout == "NHWC" else tuple(values[axis] for axis in TO_NHWC)
    if batch != 1 or channels != 1:
        raise emit.unsupported(f"{what} {list(values)} over batch or channels")
    return height, width


def window_shape(
    size: Sequence[int], window: Sequence[int], strides: Sequence[int], dilations: Sequence[int], padding: str
) -> tuple[int, int]:
    """Height and width after sliding a window."""
    result = []
    for length, extent, stride, dilation in zip(size, window, strides, dilations, strict=True):
        reach = (extent - 1) * dilation + 1
        result.append(-(-length // stride) if padding == "SAME" else (length - reach) // stride + 1)
    return result[0], result[1]


def pad_image(emit: Emit, value: Value, node: Node, layout: str) -> tuple[Value, str]:
    """Resolves the padding attribute: (the image, explicitly padded if need be, and ``SAME`` or ``VALID``)."""
    padding = attr_text(node, "padding")
    if padding in ("SAME", "VALID"):
        return value, padding
    explicit = attr_list(node, "explicit_paddings")
    if padding != "EXPLICIT" or len(explicit) != 8:
        raise emit.unsupported(f"the padding {padding or 'of unknown kind'}")
    pairs = np.array(explicit, np.int32).reshape(4, 2)
    if layout == "NCHW":
        pairs = pairs[list(TO_NHWC)]
    return pad(emit, value, pairs), "VALID"


def pad(emit: Emit, value: Value, pairs: Array, fill: float | None = None) -> Value:
    """``value`` with constant borders, zero by default."""
    if not pairs.any():
        return value
    shape = [size + int(before) + int(after) for size, (before, after) in zip(value.shape, pairs, strict=True)]
    amounts = emit.const(pairs, np.int32)
    if fill is None or fill == 0:
        return emit.add("PAD", [value, amounts], shape)
    return emit.add("PADV2", [value, amounts, emit.const(fill, value.dtype.numpy)], shape)


def convolve(emit: Emit, node: Node, source: Value, kernel: Value, padding: str, layout: str) -> Value:
    """A 2-D convolution of an NHWC image with a filter (HWIO), by the node's attributes."""
    height, width, depth, count = kernel.shape
    strides = spatial(emit, attr_list(node, "strides"), layout, "strides")
    dilations = spatial(emit, attr_list(node, "dilations", (1, 1, 1, 1)), layout, "dilations")
    channels = source.shape[3]
    if depth == 0 or channels % depth or count % (channels // depth):
        raise emit.unsupported(f"{channels} channels do not split into groups of {depth}")
    size = window_shape(source.shape[1:3], (height, width), strides, dilations, padding)
    weights = emit.transpose(kernel, (3, 0, 1, 2))
    return emit.add(
        "CONV_2D",
        [source, weights, None],
        (source.shape[0], *size, count),
        padding=padding,
        stride_h=strides[0],
        stride_w=strides[1],
        dilation_h=dilations[0],
        dilation_w=dilations[1],
        activation="",
    )


@lowers("Conv2D")
def conv2d(emit: Emit, node: Node) -> None:
    layout = data_format(emit, node)
    source, padding = pad_image(emit, image(emit, 0, layout), node, layout)
    kernel = emit.require(emit.input(1), "float")
    yield_image(emit, convolve(emit, node, source, kernel, padding, layout), layout)


@lowers("FusedPadConv2D")
def fused_pad_conv2d(emit: Emit, node: Node) -> None:
    """Mirror padding and a convolution in one, as optimize_for_inference and fuse_pad_and_conv make them."""
    source = emit.require(emit.input(0), "float")
    pairs = np.asarray(emit.static(1, "the paddings"), np.int32)
    kernel = emit.require(emit.input(2), "float")
    padded = mirror_pad(emit, source, pairs, attr_text(node, "mode"))
    emit.result(convolve(emit, node, padded, kernel, attr_text(node, "padding"), "NHWC"))


def mirror_pad(emit: Emit, value: Value, pairs: Array, mode: str) -> Value:
    """``value`` with its own content mirrored at the borders."""
    if not pairs.any():
        return value
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise emit.unsupported(f"the mirror mode {mode}")
    shape = [size + int(before) + int(after) for size, (before, after) in zip(value.shape, pairs, strict=True)]
    return emit.add("MIRROR_PAD", [value, emit.const(pairs, np.int32)], shape, mode=mode)


@lowers("DepthwiseConv2dNative", "DepthwiseConv2d")
def depthwise_conv2d(emit: Emit, node: Node) -> None:
    layout = data_format(emit, node)
    source, padding = pad_image(emit, image(emit, 0, layout), node, layout)
    kernel = emit.require(emit.input(1), "float")
    height, width, channels, multiplier = kernel.shape
    if channels != source.shape[3]:
        raise emit.unsupported(f"a filter for {channels} channels meets {source.shape[3]}")
    strides = spatial(emit, attr_list(node, "strides"), layout, "strides")
    dilations = spatial(emit, attr_list(node, "dilations", (1, 1, 1, 1)), layout, "dilations")
    size = window_shape(source.shape[1:3], (height, width), strides, dilations, padding)
    weights = emit.reshape(kernel, (1, height, width, channels * multiplier))
    result = emit.add(
        "DEPTHWISE_CONV_2D",
        [source, weights, None],
        (source.shape[0], *size, channels * multiplier),
        padding=padding,
        stride_h=strides[0],
        stride_w=strides[1],
        multiplier=multiplier,
        dilation_h=dilations[0],
        dilation_w=dilations[1],
        activation="",
    )
    yield_image(emit, result, layout)


@lowers("Conv2DBackpropInput")
def transposed_conv2d(emit: Emit, node: Node) -> None:
    layout = data_format(emit, node)
    size = [int(d) for d in emit.static(0, "the output size")]
    if len(size) == 2:
        size = list(emit.output()[1])
    if layout == "NCHW":
        size = [size[axis] for axis in TO_NHWC]
    kernel = emit.require(emit.input(1), "float")
    source = image(emit, 2, layout)
    strides = spatial(emit, attr_list(node, "strides"), layout, "strides")
    dilations = spatial(emit, attr_list(node, "dilations", (1, 1, 1, 1)), layout, "dilations")
    padding = attr_text(node, "padding")
    if dilations != (1, 1) or padding not in ("SAME", "VALID"):
        raise emit.unsupported(f"a transposed convolution with dilation or {padding} padding")
    if window_shape((size[1], size[2]), kernel.shape[:2], strides, (1, 1), padding) != source.shape[1:3]:
        raise emit.unsupported(f"an output of {size} does not come from {list(source.shape)}")
    result = emit.add(
        "TRANSPOSE_CONV",
        [emit.const(size, np.int32), emit.transpose(kernel, (2, 0, 1, 3)), source],
        size,
        dtype=source.dtype,
        padding=padding,
        stride_h=strides[0],
        stride_w=strides[1],
        activation="",
    )
    yield_image(emit, result, layout)


@lowers("MaxPool", "AvgPool")
def pool(emit: Emit, node: Node) -> None:
    layout = data_format(emit, node)
    source = image(emit, 0, layout)
    window = spatial(emit, attr_list(node, "ksize"), layout, "ksize")
    strides = spatial(emit, attr_list(node, "strides"), layout, "strides")
    padding = attr_text(node, "padding")
    if padding == "EXPLICIT" and node.op == "MaxPool":
        pairs = np.array(attr_list(node, "explicit_paddings"), np.int32).reshape(4, 2)
        source = pad(emit, source, pairs if layout == "NHWC" else pairs[list(TO_NHWC)], LOWEST)
        padding = "VALID"
    if padding not in ("SAME", "VALID"):
        raise emit.unsupported(f"{node.op} with {padding} padding")
    size = window_shape(source.shape[1:3], window, strides, (1, 1), padding)
    result = emit.add(
        "MAX_POOL_2D" if node.op == "MaxPool" else "AVERAGE_POOL_2D",
        [source],
        (source.shape[0], *size, source.shape[3]),
        padding=padding,
        stride_h=strides[0],
        stride_w=strides[1],
        filter_h=window[0],
        filter_w=window[1],
        activation="",
    )
    yield_image(emit, result, layout)


@lowers("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), "float")
    if node.attr("is_training", True):
        batch_statistics_norm(emit, node, source)
        return
    scale, offset, mean, variance = emit.inputs(1, 5)
    epsilon = float(node.attr("epsilon", 1e-4))
    emit.result(batch_norm(emit, node, source, mean, variance, offset, scale, epsilon))
    emit.result(mean, 1)
    emit.result(variance, 2)


def batch_statistics_norm(emit: Emit, node: Node, source: Value) -> None:
    """A normalization by the batch's own mean and variance, as graphs frozen in training mode have it."""
    if len(source.shape) != 4 or node.attr("exponential_avg_factor", 1.0) != 1.0:
        raise emit.unsupported(f"{node.op} in training mode with running averages or of rank {len(source.shape)}")
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
    emit.result(emit.reshape(mean, shape[channel : channel + 1]), 1)
    emit.result(emit.reshape(unbiased, shape[channel : channel + 1]), 2)


@lowers("BatchNormWithGlobalNormalization")
def old_batch_norm(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), "float")
    mean, variance, offset, scale = emit.inputs(1, 5)
    used = scale if node.attr("scale_after_normalization", False) else None
    epsilon = float(node.attr("variance_epsilon", 1e-3))
    emit.result(batch_norm(emit, node, source, mean, variance, offset, used, epsilon))


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
def bias_add(emit: Emit, node: Node) -> None:
    source, bias = emit.require(emit.input(0), "float", "int32"), emit.input(1)
    if attr_text(node, "data_format", "NHWC") == "NCHW" and len(source.shape) > 2:
        bias = emit.reshape(bias, (bias.shape[0], *[1] * (len(source.shape) - 2)))
    emit.result(emit.add("ADD", [source, bias], source.shape, activation=""))


@lowers("LRN")
def local_response_normalization(emit: Emit, node: Node) -> None:
    source = image(emit, 0, "NHWC")
    result = emit.add(
        "LOCAL_RESPONSE_NORMALIZATION",
        [source],
        source.shape,
        radius=int(node.attr("depth_radius", 5)),
        bias=float(node.attr("bias", 1.0)),
        alpha=float(node.attr("alpha", 1.0)),
        beta=float(node.attr("beta", 0.5)),
    )
    emit.result(result)


@lowers("Softmax", "LogSoftmax")
def softmax(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), "float")
    if not source.shape:
        raise emit.unsupported(f"{node.op} of a scalar")
    classes = source.shape[-1]
    inner = source if 1 < len(source.shape) <= 4 else emit.reshape(source, (source.size // classes, classes))
    if node.op == "Softmax":
        result = emit.add("SOFTMAX", [inner], inner.shape, beta=1.0)
    else:
        result = emit.add("LOG_SOFTMAX", [inner], inner.shape)
    emit.result(emit.reshape(result, source.shape))


@lowers("MatMul")
def matmul(emit: Emit, node: Node) -> None:
    left, right = (emit.require(value, "float") for value in emit.inputs(0, 2))
    if len(left.shape) != 2 or len(right.shape) != 2:
        raise emit.unsupported("MatMul of other than matrices")
    if node.attr("transpose_a", False):
        left = emit.transpose(left, (1, 0))
    turned = bool(node.attr("transpose_b", False))
    if right.constant is None:
        columns = right.shape[0] if turned else right.shape[1]
        shape = (left.shape[0], columns)
        emit.result(emit.add("BATCH_MATMUL", [left, right], shape, adj_x=False, adj_y=turned))
        return
    weights = right if turned else emit.transpose(right, (1, 0))
    shape = (left.shape[0], weights.shape[0])
    emit.result(emit.add("FULLY_CONNECTED", [left, weights, None], shape, activation="", keep_num_dims=False))


@lowers("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul(emit: Emit, node: Node) -> None:
    left, right = (emit.require(value, "float") for value in emit.inputs(0, 2))
    if not 2 <= len(left.shape) <= 5 or not 2 <= len(right.shape) <= 5:
        raise emit.unsupported(f"a batched product of rank {len(left.shape)} and {len(right.shape)}")
    result = emit.add(
        "BATCH_MATMUL",
        [left, right],
        emit.output()[1],
        adj_x=bool(node.attr("adj_x", False)),
        adj_y=bool(node.attr("adj_y", False)),
    )
    emit.result(result)
