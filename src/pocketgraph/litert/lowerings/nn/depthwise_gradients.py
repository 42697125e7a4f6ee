"""Lowerings of the gradients of depthwise convolutions: by the image, a depthwise convolution again, and by the filter.

Source of the signatures: TensorFlow's documentation of DepthwiseConv2dNativeBackpropInput and …BackpropFilter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.kernels.windows import Window
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.image_layout import TO_NHWC, data_format, image, yield_image
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.math.elementwise import binary
from pocketgraph.litert.lowerings.math.reductions import reduced
from pocketgraph.litert.lowerings.nn.computed_weights import spans_of_convolution
from pocketgraph.litert.lowerings.pieces import pad
from pocketgraph.litert.lowerings.sliding import at_their_places, elements_of_windows
from pocketgraph.litert.program import Value, sliding


@lowers("DepthwiseConv2dNativeBackpropInput")
def by_the_image(emit: Emit, node: Node) -> None:
    """The gradient, with zeros for the places that strides skip, under the filter turned round."""
    layout = data_format(emit, node)
    size = [int(length) for length in np.asarray(emit.static(0, "the shape of the image")).reshape(-1)]
    kernel, gradient = emit.require(emit.input(1), "float"), image(emit, 2, layout)
    size = _nhwc(size, layout) if len(size) == 4 else [gradient.shape[0], *size, kernel.shape[2]]
    height, width, depth, multiplier = kernel.shape
    spans = spans_of_convolution(emit, node, layout, size[1:3], (height, width))
    _fits(emit, gradient, (size[0], spans[0].output, spans[1].output, depth * multiplier))
    wide = _spread(emit, gradient, spans)
    borders = [(0, 0)]
    for span, length, own in zip(spans, size[1:3], wide.shape[1:3], strict=True):
        before = span.reach - 1 - span.before
        borders.append((before, length + span.reach - 1 - own - before))
    if min(min(pair) for pair in borders) < 0:
        raise emit.unsupported(f"borders of {borders}")
    wide = pad(emit, wide, np.array([*borders, (0, 0)], np.int32))
    if kernel.constant is not None:
        weights = emit.const(kernel.constant.numpy()[::-1, ::-1], np.float32)
    else:
        weights = emit.add("REVERSE_V2", [kernel, emit.const([0, 1], np.int32)], kernel.shape)
    channels = depth * multiplier
    weights = emit.reshape(weights, (1, height, width, channels))
    how = sliding(dilations=[span.dilation for span in spans], multiplier=1)
    result = emit.add("DEPTHWISE_CONV_2D", [wide, weights, None], (*size[:3], channels), **how)
    if multiplier > 1:
        apart = emit.reshape(result, (size[0] * size[1] * size[2], depth, multiplier))
        result = emit.reshape(reduced(emit, "SUM", apart, [2], keep=False), size)
    yield_image(emit, result, layout)


@lowers("DepthwiseConv2dNativeBackpropFilter")
def by_the_filter(emit: Emit, node: Node) -> Value:
    """For each element of the filter, the sum over all windows of what lies under it times the gradient."""
    layout = data_format(emit, node)
    size = [int(length) for length in np.asarray(emit.static(1, "the shape of the filter")).reshape(-1)]
    source, gradient = image(emit, 0, layout), image(emit, 2, layout)
    batch, height, width, depth = source.shape
    if len(size) != 4 or size[2] != depth:
        raise emit.unsupported(f"a depthwise filter of {size} for {depth} channels")
    rows, columns = spans_of_convolution(emit, node, layout, (height, width), size[:2])
    channels = depth * size[3]
    _fits(emit, gradient, (batch, rows.output, columns.output, channels))
    pixels = (batch * rows.output, columns.output)
    flat = emit.reshape(gradient, (*pixels, depth, size[3]))
    sums: list[Value] = []
    lines = elements_of_windows(emit, emit.reshape(source, (batch, height, width * depth)), rows)
    for line in lines:
        along = emit.reshape(line, (batch * rows.output, width, depth))
        for element in elements_of_windows(emit, along, columns):
            product = binary(emit, "MUL", emit.reshape(element, (*pixels, depth, 1)), flat)
            product = emit.reshape(product, (*pixels, channels))
            sums.append(reduced(emit, "SUM", reduced(emit, "SUM", product, [1], keep=True), [0], keep=True))
    return emit.reshape(emit.concatenated(sums, 1), size)


def _nhwc(size: list[int], layout: str) -> list[int]:
    return [size[axis] for axis in TO_NHWC] if layout == "NCHW" else size


def _fits(emit: Emit, gradient: Value, shape: tuple[int, ...]) -> None:
    if gradient.shape != shape:
        raise emit.unsupported(f"a gradient of {list(gradient.shape)} where the convolution gives {list(shape)}")


def _spread(emit: Emit, value: Value, spans: Sequence[Window]) -> Value:
    """NHWC images with zeros between their pixels, so that those lie as far apart as the windows do."""
    for axis, span in ((1, spans[0]), (2, spans[1])):
        if span.stride == 1 or span.output == 1:
            continue
        shape = list(value.shape)
        outer, inner = int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1 :]))
        shape[axis] = (span.output - 1) * span.stride + 1
        steps = Window(1, span.stride, 1, 0, 0, span.output)
        apart = at_their_places(emit, [emit.reshape(value, (outer, span.output, inner))], steps, shape[axis])
        value = emit.reshape(apart, shape)
    return value
