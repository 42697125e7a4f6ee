"""Convolutions, matrix products, biases and the losses that networks end in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.exporting.onnx.broadcasting import add, elementwise, mul, sub, unary
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.element_types import plain_type
from pocketgraph.exporting.onnx.layout import channels_first, is_first
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.reductions import reduce
from pocketgraph.graph import Node, Shape
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.operands import KNOWN, attr_list, attr_text

MOVES_CODES = ("Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "MaxPool", "Identity")
"""Not a trait: operators of ONNX, which ONNX Runtime also runs on codes."""

FILTER = "the shape of its filter"


def is_channels_first(node: Node) -> bool:
    """Whether a node's own data format has the channels second."""
    return attr_text(node, "data_format", "NHWC").startswith("NC")


def spatial(node: Node, name: str, rank: int) -> list[int]:
    """An attribute of one number an axis, of the spatial axes only."""
    numbers = attr_list(node, name, (1,) * rank)
    return list(numbers[2:] if is_channels_first(node) else numbers[1:-1])


def image(emit: OnnxEmit, node: Node, index: int = 0) -> OnnxValue:
    """An input as a channels-first image."""
    value = emit.input(index)
    return value if is_channels_first(node) else channels_first(emit, value)


def yield_image(emit: OnnxEmit, node: Node, made: OnnxValue) -> None:
    """A channels-first image as the node's result."""
    if is_channels_first(node):
        emit.result(made)
        return
    shape = emit.output()[1]
    if shape.dims is not None and made.shape.dims is None:
        made.shape = Shape([shape[0], shape[-1], *list(shape)[1:-1]])
    emit.result(emit.from_first(made, shape))


def padding_of(
    node: Node, sizes: Sequence[int | None], window: Sequence[int], strides: Sequence[int],
    dilations: Sequence[int],
) -> dict[str, Any]:  # fmt: skip
    """TensorFlow's padding as ONNX's attributes: amounts where they are known, else by ONNX's own rule.

    Args:
        sizes: the spatial sizes of the image.
    """
    kind = attr_text(node, "padding", "VALID")
    if kind == "EXPLICIT":
        pairs = np.array(attr_list(node, "explicit_paddings")).reshape(-1, 2)
        pairs = pairs[2:] if is_channels_first(node) else pairs[1:-1]
        return {"pads": pairs.T.reshape(-1).tolist()}
    if kind == "VALID":
        return {}
    before, after = [], []
    for size, extent, stride, dilation in zip(sizes, window, strides, dilations, strict=True):
        reach = (extent - 1) * dilation + 1
        if size is None:
            if stride != 1:
                return {"auto_pad": "SAME_UPPER"}
            missing = reach - 1
        else:
            missing = max((-(-size // stride) - 1) * stride + reach - size, 0)
        before.append(missing // 2)
        after.append(missing - missing // 2)
    return {"pads": [*before, *after]} if any(before) or any(after) else {}


def convolve(
    emit: OnnxEmit, node: Node, source: OnnxValue, weights: OnnxValue, window: Sequence[int], group: int
) -> OnnxValue:
    """A convolution of a channels-first image with weights in ONNX's order (out, in, …)."""
    rank = len(window) + 2
    strides, dilations = spatial(node, "strides", rank), spatial(node, "dilations", rank)
    sizes = list(source.shape)[2:] if source.shape.dims is not None else [None] * len(window)
    attrs = padding_of(node, sizes, window, strides, dilations)
    if any(step != 1 for step in dilations):
        attrs["dilations"] = dilations
    if group != 1:
        attrs["group"] = group
    return emit.op("Conv", [source, weights], None, kernel_shape=list(window), strides=strides, **attrs)


@converts("Conv2D", "Conv3D")
def convolution(emit: OnnxEmit, node: Node) -> None:
    source, weights = image(emit, node), emit.input(1)
    *window, depth, _ = emit.known_sizes(weights, FILTER)
    rank = len(window) + 2
    channels = source.shape[1] if source.shape.dims is not None else None
    group = 1 if channels is None else max(1, channels // depth)
    order = [rank - 1, rank - 2, *range(rank - 2)]
    yield_image(emit, node, convolve(emit, node, source, emit.transpose(weights, order), window, group))


@converts("DepthwiseConv2dNative")
def depthwise(emit: OnnxEmit, node: Node) -> None:
    source, weights = image(emit, node), emit.input(1)
    height, width, channels, multiplier = emit.known_sizes(weights, FILTER)
    filters = emit.transpose(emit.reshape(weights, [height, width, 1, channels * multiplier]), [3, 2, 0, 1])
    yield_image(emit, node, convolve(emit, node, source, filters, [height, width], channels))


@converts("Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput")
def transposed_convolution(emit: OnnxEmit, node: Node) -> None:
    weights = emit.input(1)
    source = image(emit, node, 2)
    *window, depth, count = emit.known_sizes(weights, FILTER)
    rank = len(window) + 2
    group = 1
    if node.op.startswith("Depthwise"):
        group = depth
        weights = emit.transpose(emit.reshape(weights, [*window, 1, depth * count]), [3, 2, 0, 1])
    else:
        weights = emit.transpose(weights, [rank - 1, rank - 2, *range(rank - 2)])
    strides, dilations = spatial(node, "strides", rank), spatial(node, "dilations", rank)
    numbers = emit.numbers(0)
    _, shape = emit.output()
    sizes: list[int | None]
    if numbers is not None and len(numbers) == rank:
        sizes = numbers[2:] if is_channels_first(node) else numbers[1:-1]
    elif shape.dims is not None:
        sizes = list(shape)[2:] if is_channels_first(node) else list(shape)[1:-1]
    else:
        sizes = [None] * len(window)
    given: list[int | None] = list(source.shape)[2:] if source.shape.dims is not None else [None] * len(window)
    reaches = [(size - 1) * dilation + 1 for size, dilation in zip(window, dilations, strict=True)]
    is_explicit = attr_text(node, "padding") == "EXPLICIT"
    for place, (stride, reach) in enumerate(zip(strides, reaches, strict=True)):
        if given[place] is None and not is_explicit:  # a stride more for each pixel: padding as for a single one
            given[place], sizes[place] = 1, stride if attr_text(node, "padding") == "SAME" else max(stride, reach)
    if None in sizes and not is_explicit:
        raise emit.unsupported(f"the size that it is to make must be {KNOWN}")
    pads = padding_of(node, sizes, window, strides, dilations).get("pads", [0] * 2 * len(window))
    extra = []
    for place, (size, before) in enumerate(zip(sizes, given, strict=True)):
        if size is None or before is None:
            extra.append(0)
            continue
        made = (before - 1) * strides[place] + reaches[place] - pads[place] - pads[place + len(window)]
        extra.append(size - made)
    if any(amount < 0 for amount in extra):
        raise emit.unsupported("the size that it is to make does not fit its strides")
    attrs: dict[str, Any] = {"kernel_shape": window, "strides": strides, "group": group, "dilations": dilations}
    attrs |= {"pads": pads, "output_padding": extra}
    yield_image(emit, node, emit.op("ConvTranspose", [source, weights], None, **attrs))


@converts("BiasAdd", "BiasAddV1")
def bias_add(emit: OnnxEmit, node: Node, value: OnnxValue, bias: OnnxValue) -> OnnxValue:
    if is_channels_first(node):
        rank = emit.rank(value)
        bias = emit.unsqueeze(bias, list(range(1, rank - 1)))
        return elementwise(emit, "Add", [value, bias])
    return add(emit, value, bias)


@converts("MatMul")
def matrix_product(emit: OnnxEmit, node: Node, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    first, second = bool(node.attr("transpose_a", False)), bool(node.attr("transpose_b", False))
    return product(emit, a, b, first, second)


def product(emit: OnnxEmit, a: OnnxValue, b: OnnxValue, first: bool, second: bool) -> OnnxValue:
    """A matrix product, of batches too; each operand may be taken with its last two axes exchanged."""
    _, shape = emit.output()
    a, b = (_exchanged(emit, value) if turns else value for value, turns in ((a, first), (b, second)))
    if b in emit.coded and b.rank == 2 and a.rank is not None and a.rank >= 2 and not _is_rounded(a):
        # as a batch of one: ONNX Runtime would round what is multiplied with a matrix of stored codes to eight bits
        batched = emit.op("MatMul", [a, emit.reshape(b, [1, *b.shape])])
        return emit.squeeze(batched, [0]) if a.rank == 2 else batched
    return emit.op("MatMul", [a, b], shape)


def _is_rounded(value: OnnxValue) -> bool:
    """Whether a value has just been rounded to codes: ONNX Runtime multiplies those as they are."""
    for operation in reversed(value.home.operations if value.home else []):
        if value not in operation.outputs:
            continue
        if operation.code not in MOVES_CODES or operation.inputs[0] is None:
            return operation.code == "DequantizeLinear"
        value = operation.inputs[0]
    return False


def _exchanged(emit: OnnxEmit, value: OnnxValue) -> OnnxValue:
    rank = emit.rank(value)
    return emit.transpose(value, [*range(rank - 2), rank - 1, rank - 2])


@converts("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_product(emit: OnnxEmit, node: Node) -> OnnxValue:
    kind = plain_type(emit.output()[0])
    a, b = (emit.cast(value, kind) for value in emit.inputs())  # BatchMatMulV3 may give another type than it takes
    return product(emit, a, b, bool(node.attr("adj_x", False)), bool(node.attr("adj_y", False)))


@converts("Einsum", "XlaEinsum")
def einsum(emit: OnnxEmit, node: Node) -> OnnxValue:
    _, shape = emit.output()
    equation = attr_text(node, "equation")
    labels = equation.partition("->")[2].replace("...", "").replace(" ", "")
    if len(set(labels)) < len(labels):
        raise emit.unsupported(f"'{equation}' writes a diagonal")
    return emit.op("Einsum", _with_equal_ellipses(emit, equation.partition("->")[0]), shape, equation=equation)


def _with_equal_ellipses(emit: OnnxEmit, terms: str) -> list[OnnxValue]:
    """The operands of an Einsum, with axes of 1 where an ellipsis stands for fewer axes than another."""
    values, labels = emit.inputs(), [term.strip() for term in terms.split(",")]
    if terms.count("...") < 2:
        return values
    begins = [term.find("...") for term in labels]
    covered = [
        emit.rank(value) - len(term) + 3 if begin >= 0 else 0
        for value, term, begin in zip(values, labels, begins, strict=True)
    ]
    return [
        value if begin < 0 else emit.unsqueeze(value, range(begin, begin + max(covered) - axes))
        for value, begin, axes in zip(values, begins, covered, strict=True)
    ]


@converts("Softmax", "LogSoftmax")
def softmax(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    if is_first(value) and value.first is not None:
        return emit.from_first(emit.op(node.op, [value.first], value.first.shape, axis=1), value.shape)
    else:
        return emit.op(node.op, [value], value.shape, axis=-1)


@converts("SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits")
def cross_entropy(emit: OnnxEmit, node: Node, logits: OnnxValue, labels: OnnxValue) -> tuple[OnnxValue, ...]:
    if node.op.startswith("Sparse"):
        values = emit.concat([emit.reshape(emit.like(number, logits), [1]) for number in (0, 1)])
        if emit.rank(logits) != 2:
            raise emit.unsupported("its logits are no matrix")
        depth = emit.dim(logits, 1)
        float_values = values if logits.dtype.name == "float" else emit.cast(values, FLOAT)
        labels = emit.cast(
            emit.op("OneHot", [emit.as_int64(labels), depth, float_values], logits.shape, FLOAT), logits.dtype
        )
    logs = emit.op("LogSoftmax", [logits], logits.shape, axis=-1)
    loss = unary(emit, "Neg", reduce(emit, "ReduceSum", mul(emit, labels, logs), [emit.rank(logits) - 1], False))
    return loss, sub(emit, emit.op("Softmax", [logits], logits.shape, axis=-1), labels)


@converts("BiasAddGrad")
def bias_gradient(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    rank = emit.rank(value)
    axes = [axis for axis in range(rank) if axis != (1 if is_channels_first(node) else rank - 1)]
    return reduce(emit, "ReduceSum", value, axes, False)
