"""Lowerings of convolutions whose weights are computed, as in training graphs, and of their gradients by the weights.

LiteRT's convolutions are fast with constant weights only; with others they take five to ten times as long as a product
of matrices (measured with LiteRT 2.3). So what lies under each window is laid out as a row of a matrix, and multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.kernels.windows import Window, windows
from pocketgraph.litert.cost_model import FEW_ROW_ELEMENTS
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.image_layout import data_format, image, spatial
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.math.reductions import reduced
from pocketgraph.litert.lowerings.pieces import cut, sum_of
from pocketgraph.litert.lowerings.sliding import at_their_places, elements_of_windows
from pocketgraph.litert.operands import attr_list, attr_text
from pocketgraph.litert.program import ComputedConvolution, Value

MANY_ROWS, LEAST_IN_BLOCK, MOST_IN_BLOCK = 8192, 256, 768  # rows of a product of turned matrices
LAID_OUT_AT_ONCE, MOST_GROUPS = 1 << 20, 32  # elements of windows that stay in a cache; groups of images at most
MOST_LAID_OUT = 1 << 25  # elements of all windows, 128 MB; larger ones are left to LiteRT's own operators


def convolve_by_computed(
    emit: Emit, node: Node, source: Value, kernel: Value, padding: str, layout: str
) -> Value | None:
    """A convolution of an NHWC image with computed weights (HWIO); None where LiteRT's own operator is to do it."""
    height, width, depth, _ = kernel.shape
    if kernel.constant is not None or depth != source.shape[3]:
        return None
    strides, dilations = _steps(emit, node, layout)
    spans = windows(source.shape[1:3], (height, width), strides, padding, dilations)
    if min(span.output for span in spans) < 1:
        return None
    return _marked(emit, _convolved(emit, source, kernel, spans), source, kernel, spans, "plain")


def transposed_by_computed(
    emit: Emit, node: Node, gradient: Value, kernel: Value, size: Sequence[int], layout: str
) -> Value | None:
    """The gradient by the image, of NHWC ``size``, of a convolution with computed weights (HWIO); None as above."""
    height, width, depth, count = kernel.shape
    spans = spans_of_convolution(emit, node, layout, size[1:3], (height, width))
    expected = (gradient.shape[0], spans[0].output, spans[1].output, count)
    if kernel.constant is not None or depth != size[3] or gradient.shape != expected:
        return None
    if all(span.stride == 1 and max(span.before, span.after) < span.reach for span in spans):
        # a convolution with the weights turned round
        turned = emit.add("REVERSE_V2", [kernel, emit.const([0, 1], np.int32)], kernel.shape)
        back = [
            Window(span.taps, 1, span.dilation, span.reach - 1 - span.before, 0, length)
            for span, length in zip(spans, size[1:3], strict=True)
        ]
        made = _convolved(emit, gradient, emit.transpose(turned, (0, 1, 3, 2)), back)
        return _marked(emit, made, gradient, kernel, back, "turned")
    if gradient.size // count * height * width * depth > MOST_LAID_OUT:
        return None
    flat = emit.reshape(gradient, (gradient.size // count, count))
    shares = _product(emit, flat, emit.reshape(kernel, (height * width * depth, count)), turned=True)
    below, beside = expected[1:3]
    lines = []
    for row in range(height):
        parts = []
        for column in range(width):
            place = (row * width + column) * depth
            part = cut(emit, shares, [0, place], [shares.shape[0], depth])
            parts.append(emit.reshape(part, (expected[0] * below, beside, depth)))
        line = at_their_places(emit, parts, spans[1], size[2])
        lines.append(emit.reshape(line, (expected[0], below, size[2] * depth)))
    return emit.reshape(at_their_places(emit, lines, spans[0], size[1]), tuple(size))


@lowers("Conv2DBackpropFilter")
def by_the_filter(emit: Emit, node: Node) -> Value:
    """What lies under the windows, turned, times the gradient."""
    layout = data_format(emit, node)
    size = [int(length) for length in np.asarray(emit.static(1, "the shape of the filter")).reshape(-1)]
    source, gradient = image(emit, 0, layout), image(emit, 2, layout)
    if len(size) != 4 or size[2] != source.shape[3] or size[3] != gradient.shape[3]:
        raise emit.unsupported(f"a filter of {size} for {source.shape[3]} channels")
    spans = spans_of_convolution(emit, node, layout, source.shape[1:3], size[:2])
    if gradient.shape[:3] != (source.shape[0], spans[0].output, spans[1].output):
        raise emit.unsupported(f"a gradient of {list(gradient.shape)} for {list(source.shape)}")
    lines = laid_out(emit, source, spans)
    if lines is None:
        raise emit.unsupported(f"windows of {size[:2]} over {list(source.shape)}, which take too much memory")
    flat = emit.reshape(gradient, (lines[0].shape[0], size[3]))
    made = emit.reshape(emit.concatenated([_sum_over_rows(emit, line, flat) for line in lines], 0), size)
    _marked(emit, made, source, gradient, spans, "by weights")
    return made


def _marked(
    emit: Emit, made: Value | None, source: Value, other: Value, spans: Sequence[Window], kind: str
) -> Value | None:
    """``made``, with a note at the operation that ends it of what was computed (see ComputedConvolution)."""
    last = emit.operations[-1] if emit.operations else None
    is_dense = all(span.stride == span.dilation == 1 for span in spans)
    if made is not None and last is not None and last.outputs == [made] and is_dense:
        rows, columns = spans
        window, before = (rows.taps, columns.taps), (rows.before, columns.before)
        last.convolution = ComputedConvolution(source, other, window, before, kind)
    return made


def _convolved(emit: Emit, source: Value, kernel: Value, spans: Sequence[Window]) -> Value | None:
    """The convolution, of a few images at a time; None where laying these out takes too much memory."""
    rows, columns = spans
    images, each = source.shape[0], rows.output * columns.output * rows.taps * columns.taps * source.shape[3]
    groups = max(1, min(images, MOST_GROUPS, -(-images * each // LAID_OUT_AT_ONCE)))
    count = -(-images // groups)
    parts: list[Value] = []
    for first in range(0, images, count):
        taken = min(count, images - first)
        some = cut(emit, source, [first, 0, 0, 0], [taken, *source.shape[1:]])
        part = _sum_of_products(emit, some, kernel, spans)
        if part is None:
            return None
        parts.append(part)
    return emit.concatenated(parts, 0)


def _sum_of_products(emit: Emit, source: Value, kernel: Value, spans: Sequence[Window]) -> Value | None:
    height, width, depth, count = kernel.shape
    lines = laid_out(emit, source, spans)
    if lines is None:
        return None
    weights = emit.reshape(kernel, (height * width * depth, count))
    length = weights.shape[0] // len(lines)
    products = (
        _product(emit, line, cut(emit, weights, [number * length, 0], [length, count]))
        for number, line in enumerate(lines)
    )
    return emit.reshape(
        reduce(partial(sum_of, emit), products), (source.shape[0], spans[0].output, spans[1].output, count)
    )


def laid_out(emit: Emit, source: Value, spans: Sequence[Window]) -> list[Value] | None:
    """Matrices with a row for each window over NHWC images: one for each of its rows, in it the columns and channels.

    All its elements in one matrix where those of a row are few; None where that takes too much memory.
    """
    batch, height, width, depth = source.shape
    rows, columns = spans
    count, inner = batch * rows.output * columns.output, columns.taps * depth
    if count * inner * rows.taps > MOST_LAID_OUT:
        return None
    flat = emit.reshape(source, (batch * height, width, depth))
    flat = emit.concatenated(elements_of_windows(emit, flat, columns), 2)
    flat = emit.reshape(flat, (batch, height, columns.output * inner))
    lines = elements_of_windows(emit, flat, rows)
    if inner >= FEW_ROW_ELEMENTS:
        return [emit.reshape(line, (count, inner)) for line in lines]
    joined = emit.concatenated([emit.reshape(line, (count, 1, inner)) for line in lines], 2)
    return [emit.reshape(joined, (count, inner * rows.taps))]


def _sum_over_rows(emit: Emit, left: Value, right: Value) -> Value:
    """The product of ``left`` turned (columns, rows) and ``right`` (rows, columns), of many rows and few columns.

    XNNPACK multiplies along whole rows of its left side, which fit no cache when they are long. So many rows are taken
    in blocks, whose products are added up.
    """
    rows, columns, count = *left.shape, right.shape[1]
    block = next((size for size in range(MOST_IN_BLOCK, LEAST_IN_BLOCK - 1, -1) if rows % size == 0), 0)
    if rows < MANY_ROWS or not block:
        return emit.add("BATCH_MATMUL", [left, right], (columns, count), adj_x=True, adj_y=False)
    blocks = rows // block
    turned = emit.transpose(emit.reshape(left, (blocks, block, columns)), (0, 2, 1))
    apart = emit.reshape(right, (blocks, block, count))
    products = emit.add("BATCH_MATMUL", [turned, apart], (blocks, columns, count), adj_x=False, adj_y=False)
    return reduced(emit, "SUM", products, [0], keep=False)


def _product(emit: Emit, left: Value, right: Value, *, turned: bool = False) -> Value:
    shape = (left.shape[0], right.shape[0] if turned else right.shape[1])
    return emit.add("BATCH_MATMUL", [left, right], shape, adj_x=False, adj_y=turned)


def _steps(emit: Emit, node: Node, layout: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(strides, dilations) of a convolution."""
    strides = spatial(emit, attr_list(node, "strides"), layout, "strides")
    return strides, spatial(emit, attr_list(node, "dilations", (1, 1, 1, 1)), layout, "dilations")


def spans_of_convolution(
    emit: Emit, node: Node, layout: str, size: Sequence[int], window: Sequence[int]
) -> tuple[Window, ...]:
    """The windows of a convolution, by its attributes, over so many rows and columns."""
    strides, dilations = _steps(emit, node, layout)
    explicit = attr_list(node, "explicit_paddings")
    padding = attr_text(node, "padding")
    return windows(size, window, strides, padding, dilations, explicit, layout)
