"""Lowerings of convolutions, pooling, matrix products and softmax."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.constant import Array
from pocketgraph.litert.emitter import Emit, attr_list, attr_text
from pocketgraph.litert.hints import MAY_QUANTIZE, WHOLE_NUMBERS
from pocketgraph.litert.images import TO_NHWC, data_format, image, spatial, yield_image
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.computed_weights import (
    convolve_by_computed,
    transposed_by_computed,
)
from pocketgraph.litert.lowerings.pieces import pad
from pocketgraph.litert.program import Value

MOST_STRIPS = 16  # strips that a mirrored border is put together from
MOST_SLICED = 5  # axes that XNNPACK slices
LOWEST = float(np.finfo(np.float32).min)


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
    if pairs.min() < 0 or pairs[[0, 3]].any():
        raise emit.unsupported(f"the explicit paddings {list(explicit)}")
    return pad(emit, value, pairs), "VALID"


def convolve(emit: Emit, node: Node, source: Value, kernel: Value, padding: str, layout: str) -> Value:
    """A 2-D convolution of an NHWC image with a filter (HWIO), by the node's attributes."""
    height, width, depth, count = kernel.shape
    strides = spatial(emit, attr_list(node, "strides"), layout, "strides")
    dilations = spatial(emit, attr_list(node, "dilations", (1, 1, 1, 1)), layout, "dilations")
    channels = source.shape[3]
    if depth == 0 or channels % depth or count % (channels // depth):
        raise emit.unsupported(f"{channels} channels do not split into groups of {depth}")
    size = window_shape(source.shape[1:3], (height, width), strides, dilations, padding)
    hinted = WHOLE_NUMBERS in node.attrs or MAY_QUANTIZE in node.attrs
    if depth == 1 < channels and not hinted:  # each channel is a group
        return emit.add(
            "DEPTHWISE_CONV_2D",
            [source, emit.reshape(kernel, (1, height, width, count)), None],
            (source.shape[0], *size, count),
            padding=padding,
            stride_h=strides[0],
            stride_w=strides[1],
            multiplier=count // channels,
            dilation_h=dilations[0],
            dilation_w=dilations[1],
            activation="",
        )
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
    result = convolve_by_computed(emit, node, source, kernel, padding, layout)
    if result is None:
        result = convolve(emit, node, source, kernel, padding, layout)
    yield_image(emit, result, layout)


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
    is_thin = 0 < pairs.sum() <= MOST_STRIPS and value.dtype is FLOAT and len(value.shape) <= MOST_SLICED
    if is_thin and all(
        before < size and after < size for (before, after), size in zip(pairs, value.shape, strict=True)
    ):
        return _mirrored_in_strips(emit, value, pairs, edge=int(mode == "SYMMETRIC"))
    shape = [size + int(before) + int(after) for size, (before, after) in zip(value.shape, pairs, strict=True)]
    return emit.add("MIRROR_PAD", [value, emit.const(pairs, np.int32)], shape, mode=mode)


def _mirrored_in_strips(emit: Emit, value: Value, pairs: Array, edge: int) -> Value:
    """Thin borders put together from strips one element wide; LiteRT's MIRROR_PAD goes element by element."""
    for axis, (before, after) in enumerate(pairs.tolist()):
        if not before and not after:
            continue
        length = value.shape[axis]
        places = [*(step - edge for step in range(before, 0, -1)), None]
        places += [length - 1 - step + edge for step in range(1, after + 1)]
        strips = []
        for place in places:
            if place is None:
                strips.append(value)
                continue
            begin, size = [0] * len(value.shape), list(value.shape)
            begin[axis], size[axis] = place, 1
            strips.append(emit.add("SLICE", [value, emit.const(begin, np.int32), emit.const(size, np.int32)], size))
        shape = list(value.shape)
        shape[axis] += before + after
        value = emit.add("CONCATENATION", strips, shape, axis=axis, activation="")
    return value


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
    computed = transposed_by_computed(emit, node, source, kernel, size, layout)
    if computed is not None:
        yield_image(emit, computed, layout)
        return
    strides = spatial(emit, attr_list(node, "strides"), layout, "strides")
    dilations = spatial(emit, attr_list(node, "dilations", (1, 1, 1, 1)), layout, "dilations")
    padding = attr_text(node, "padding")
    explicit = attr_list(node, "explicit_paddings")
    if dilations != (1, 1) or padding not in ("SAME", "VALID", "EXPLICIT") or len(explicit) not in (0, 8):
        raise emit.unsupported(f"a transposed convolution with dilation or {padding} padding")
    begin, wanted = [0] * 4, list(size)
    if padding == "EXPLICIT":  # the borders are computed too, and cut off
        pairs = np.array(explicit or [0] * 8).reshape(4, 2)
        pairs = pairs[list(TO_NHWC)] if layout == "NCHW" else pairs
        begin = [int(before) for before, _ in pairs]
        size = [length + int(before) + int(after) for length, (before, after) in zip(wanted, pairs, strict=True)]
        padding = "VALID"
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
    if size != wanted:
        result = emit.add("SLICE", [result, emit.const(begin, np.int32), emit.const(wanted, np.int32)], wanted)
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


@lowers("BiasAdd", "BiasAddV1")
def bias_add(emit: Emit, node: Node) -> None:
    source, bias = emit.require(emit.input(0), "float", "int32"), emit.input(1)
    if attr_text(node, "data_format", "NHWC") == "NCHW" and len(source.shape) > 2:
        bias = emit.reshape(bias, (bias.shape[0], *[1] * (len(source.shape) - 2)))
    emit.result(emit.add("ADD", [source, bias], source.shape, activation=""))


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
    if left.shape[1] != right.shape[turned]:  # LiteRT would take 2 x 3 numbers for 3 x 2
        raise emit.unsupported(f"a product of {list(left.shape)} and {list(right.shape)}")
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
