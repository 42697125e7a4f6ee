"""Lowerings of the gradients of pooling, which LiteRT has no operators for.

A window over rows and columns is taken as one over columns and then one over rows (see sliding.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.kernels.windows import Window, windows
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.image_layout import TO_NHWC, data_format, image, spatial, yield_image
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.nn.unpooling import shares, tournament
from pocketgraph.litert.lowerings.sliding import at_their_places, elements_of_windows
from pocketgraph.litert.operands import attr_list, attr_text


def spans_of(emit: Emit, node: Node, layout: str, size: Sequence[int]) -> tuple[Window, Window]:
    """The windows of a pool along the rows and the columns of an image with so many of them."""
    padding = attr_text(node, "padding")
    window = spatial(emit, attr_list(node, "ksize"), layout, "ksize")
    strides = spatial(emit, attr_list(node, "strides"), layout, "strides")
    explicit = attr_list(node, "explicit_paddings")
    rows, columns = windows(size, window, strides, padding, (), explicit, layout)
    if min(rows.output, columns.output) < 1:
        raise emit.unsupported("a window that is larger than the image")
    return rows, columns


@lowers("MaxPoolGrad")
def of_max_pool(emit: Emit, node: Node) -> None:
    """To the first largest pixel of each window, row by row, as TensorFlow's kernel on processors."""
    layout = data_format(emit, node)
    source, gradient = image(emit, 0, layout), image(emit, 2, layout)
    batch, height, width, depth = source.shape
    rows, columns = spans_of(emit, node, layout, (height, width))
    if gradient.shape != (batch, rows.output, columns.output, depth):
        raise emit.unsupported(f"a gradient of {list(gradient.shape)} for a pool of {list(source.shape)}")
    if emit.shape(emit.ref(1)) != emit.shape(emit.ref(2)):
        raise emit.unsupported("a result of the pool whose shape is not that of its gradient")
    beside, low = columns.output, float("-inf")
    flat = emit.reshape(source, (batch * height, width, depth))
    largest, in_columns = tournament(emit, elements_of_windows(emit, flat, columns, low))
    flat = emit.reshape(largest, (batch, height, beside * depth))
    _, in_rows = tournament(emit, elements_of_windows(emit, flat, rows, low))
    flat = emit.reshape(gradient, (batch, rows.output, beside * depth))
    flat = at_their_places(emit, shares(emit, flat, in_rows), rows, height)
    flat = emit.reshape(flat, (batch * height, beside, depth))
    flat = at_their_places(emit, shares(emit, flat, in_columns), columns, width)
    yield_image(emit, emit.reshape(flat, source.shape), layout)


@lowers("AvgPoolGrad")
def of_average_pool(emit: Emit, node: Node) -> None:
    """Each gradient spread evenly over the pixels of its window; borders get nothing and do not count."""
    layout = data_format(emit, node)
    size = [int(length) for length in np.asarray(emit.static(0, "the shape of the image")).reshape(-1)]
    gradient = image(emit, 1, layout)
    if len(size) != 4:
        raise emit.unsupported(f"an image of the shape {size}")
    batch, height, width, depth = [size[axis] for axis in TO_NHWC] if layout == "NCHW" else size
    rows, columns = spans_of(emit, node, layout, (height, width))
    if gradient.shape != (batch, rows.output, columns.output, depth):
        raise emit.unsupported(f"a gradient of {list(gradient.shape)} for a pool of {size}")
    share = 1 / np.outer(_counts(rows, height), _counts(columns, width))
    weights = emit.const(share.reshape(1, rows.output, columns.output, 1), np.float32)
    if share.min() == share.max():
        weights = emit.const(share.flat[0], np.float32)
    each = emit.add("MUL", [gradient, weights], gradient.shape, activation="")
    flat = emit.reshape(each, (batch, rows.output, columns.output * depth))
    flat = at_their_places(emit, [flat] * rows.taps, rows, height)
    flat = emit.reshape(flat, (batch * height, columns.output, depth))
    flat = at_their_places(emit, [flat] * columns.taps, columns, width)
    yield_image(emit, emit.reshape(flat, (batch, height, width, depth)), layout)


def _counts(span: Window, length: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How many pixels of a row each window has."""
    starts = np.arange(span.output) * span.stride - span.before
    return np.asarray(np.minimum(starts + span.taps, length) - np.maximum(starts, 0), np.float64)
