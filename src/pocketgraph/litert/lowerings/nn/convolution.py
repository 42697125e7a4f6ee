"""Lowerings of convolutions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.image_layout import TO_NHWC, data_format, image, spatial, yield_image
from pocketgraph.litert.lowering import MAY_QUANTIZE, WHOLE_NUMBERS, lowers
from pocketgraph.litert.operands import attr_list, attr_text
from pocketgraph.litert.program import Value, sliding


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
    from pocketgraph.litert.lowerings.pieces import pad

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
    shape = (source.shape[0], *size, count)
    hinted = WHOLE_NUMBERS in node.attrs or MAY_QUANTIZE in node.attrs
    if depth == 1 < channels and not hinted:  # each channel is a group
        weights = emit.reshape(kernel, (1, height, width, count))
        how = sliding(padding, strides, dilations, multiplier=count // channels)
        return emit.add("DEPTHWISE_CONV_2D", [source, weights, None], shape, **how)
    how = sliding(padding, strides, dilations)
    return emit.add("CONV_2D", [source, emit.transpose(kernel, (3, 0, 1, 2)), None], shape, **how)


@lowers("Conv2D")
def conv2d(emit: Emit, node: Node) -> None:
    layout = data_format(emit, node)
    source, padding = pad_image(emit, image(emit, 0, layout), node, layout)
    kernel = emit.require(emit.input(1), "float")
    result = None
    if kernel.constant is None:
        from pocketgraph.litert.lowerings.nn.computed_weights import convolve_by_computed  # few graphs have such

        result = convolve_by_computed(emit, node, source, kernel, padding, layout)
    if result is None:
        result = convolve(emit, node, source, kernel, padding, layout)
    yield_image(emit, result, layout)


@lowers("FusedPadConv2D")
def fused_pad_conv2d(emit: Emit, node: Node) -> Value:
    """Mirror padding and a convolution in one, as optimize_for_inference and fuse_pad_and_conv make them."""
    from pocketgraph.litert.lowerings.pieces import mirror_pad

    source = emit.require(emit.input(0), "float")
    pairs = np.asarray(emit.static(1, "the paddings"), np.int32)
    kernel = emit.require(emit.input(2), "float")
    padded = mirror_pad(emit, source, pairs, attr_text(node, "mode"))
    return convolve(emit, node, padded, kernel, attr_text(node, "padding"), "NHWC")


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
    how = sliding(padding, strides, dilations, multiplier=multiplier)
    shape = (source.shape[0], *size, channels * multiplier)
    result = emit.add("DEPTHWISE_CONV_2D", [source, weights, None], shape, **how)
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
    if (source.shape[0], *kernel.shape[2:]) != (size[0], size[3], source.shape[3]):
        raise emit.unsupported(f"an output of {size} does not come from {list(source.shape)} and {list(kernel.shape)}")
    from pocketgraph.litert.lowerings.nn.computed_weights import transposed_by_computed

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


@lowers("FusedResizeAndPadConv2D")
def fused_resize_and_pad_conv2d(emit: Emit, node: Node) -> Value:
    """Resizing, mirror padding and a convolution in one, as optimize_for_inference makes them."""
    from pocketgraph.litert.lowerings.image.resizing import resized
    from pocketgraph.litert.lowerings.pieces import mirror_pad

    source = image(emit, 0, "NHWC")
    height, width = (int(d) for d in emit.static(1, "the new size"))
    pairs = np.asarray(emit.static(2, "the paddings"), np.int32)
    kernel = emit.require(emit.input(3), "float")
    align = bool(node.attr("resize_align_corners", False))
    larger = resized(emit, "RESIZE_BILINEAR", source, (height, width), align, half=False)
    padded = mirror_pad(emit, larger, pairs, attr_text(node, "mode"))
    return convolve(emit, node, padded, kernel, attr_text(node, "padding"), "NHWC")
