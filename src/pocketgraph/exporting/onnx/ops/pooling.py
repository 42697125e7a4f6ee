"""Pooling in two and three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.nn import image, is_channels_first, padding_of, spatial, yield_image
from pocketgraph.graph import Node
from pocketgraph.graph.dtype import INT64
from pocketgraph.litert.operands import KNOWN, attr_list


@converts("MaxPool", "MaxPool3D", "AvgPool", "AvgPool3D", "MaxPoolV2")
def pooling(emit: OnnxEmit, node: Node) -> None:
    source = image(emit, node)
    rank = emit.rank(source)
    if node.op == "MaxPoolV2":
        node = node.with_attrs(
            ksize=tuple(emit.static(1, "the window").tolist()), strides=tuple(emit.static(2, "the strides").tolist())
        )
    window, strides = _window(emit, node, rank), spatial(node, "strides", rank)
    attrs: dict[str, Any] = padding_of(node, list(source.shape)[2:], window, strides, [1] * len(window))
    code = "MaxPool" if node.op.startswith("Max") else "AveragePool"
    made = emit.op(code, [source], None, kernel_shape=window, strides=strides, **attrs)
    yield_image(emit, node, made)


def _window(emit: OnnxEmit, node: Node, rank: int) -> list[int]:
    sizes = attr_list(node, "ksize", (1,) * rank)
    outer = [sizes[0], sizes[1 if is_channels_first(node) else -1]]
    if outer != [1, 1]:
        raise emit.unsupported("it pools over the batch or the channels")
    return spatial(node, "ksize", rank)


@converts("MaxPoolWithArgmax")
def pooling_with_places(emit: OnnxEmit, node: Node) -> None:
    """ONNX counts places channels first, image by image and channel by channel; TensorFlow channels last."""
    source = image(emit, node)
    window, strides = _window(emit, node, 4), spatial(node, "strides", 4)
    attrs: dict[str, Any] = padding_of(node, list(source.shape)[2:], window, strides, [1, 1])
    made, places = emit.ops("MaxPool", [source], 2, None, [None, INT64], kernel_shape=window, strides=strides, **attrs)
    yield_image(emit, node, made)
    batch, channels, height, width = source.shape
    with_batch = bool(node.attr("include_batch_in_index", False))
    if channels is None or height is None or width is None or (with_batch and batch is None):
        raise emit.unsupported(f"the shape of its input must be {KNOWN}")
    area = emit.const(np.int64(height * width))
    within = emit.op("Mod", [places, area], made.shape)
    depth = emit.const(np.arange(channels, dtype=np.int64).reshape(channels, 1, 1))
    found = emit.op("Add", [emit.op("Mul", [within, emit.const(np.int64(channels))]), depth])
    if with_batch:
        offset = np.arange(batch or 1, dtype=np.int64).reshape(-1, 1, 1, 1) * (height * width * channels)
        found = emit.op("Add", [found, emit.const(offset)])
    shape = emit.output(1)[1]
    found.shape = made.shape
    emit.result(emit.cast(emit.from_first(found, shape), emit.output(1)[0]), 1)


@converts("LRN")
def local_response(emit: OnnxEmit, node: Node) -> None:
    source = image(emit, node)
    size = 2 * int(node.attr("depth_radius", 5)) + 1
    if float(node.attr("alpha", 1.0)) <= 0:
        raise emit.unsupported("ONNX Runtime takes no alpha below or equal to 0")
    made = emit.op(
        "LRN", [source], source.shape, size=size, alpha=float(node.attr("alpha", 1.0)) * size,
        beta=float(node.attr("beta", 0.5)), bias=float(node.attr("bias", 1.0)),
    )  # fmt: skip
    yield_image(emit, node, made)


@converts("ExtractImagePatches")
def patches(emit: OnnxEmit, node: Node, value: OnnxValue) -> None:
    """A convolution whose filters copy one element each."""
    depth = emit.known_size(value, 3, "the number of channels")
    height, width = attr_list(node, "ksizes")[1:3]
    rates = list(attr_list(node, "rates", (1, 1, 1, 1))[1:3])
    strides = list(attr_list(node, "strides", (1, 1, 1, 1))[1:3])
    count = height * width * depth
    filters = np.zeros((count, depth, height, width), np.float32)
    row, column, channel = np.meshgrid(np.arange(height), np.arange(width), np.arange(depth), indexing="ij")
    filters[np.arange(count), channel.reshape(-1), row.reshape(-1), column.reshape(-1)] = 1
    source = image(emit, node)
    attrs = padding_of(node, list(source.shape)[2:], [height, width], strides, rates)
    weights = emit.cast(emit.const(filters), value.dtype)
    made = emit.op(
        "Conv", [source, weights], None, kernel_shape=[height, width], strides=strides, dilations=rates, **attrs
    )  # fmt: skip
    yield_image(emit, node, made)
