"""Convolutions, layers and products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pocketgraph.exporting.c.operators.emitter_table import emits
from pocketgraph.exporting.c.operators.shapes import joined, stretched
from pocketgraph.exporting.c.unit import Unit, array_of, operand
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.program import Operation, Value

PANEL = 16  # PG_PANEL in kernels/conv_f32.h
ROWS = 12  # PG_MOST_ROWS
MOST_TAPS = 64  # PG_MOST_TAPS
FEW_CHANNELS = 8  # below, what a pixel sees is copied side by side, because a tap is too short a loop
CACHE = 384 * 1024  # bytes of weights that stay in a CPU's second cache beside what they meet
RANGES = {"": (-np.inf, np.inf), "RELU": (0, np.inf), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}


def activation(operation: Operation) -> tuple[float, float]:
    """The ends between which an operation's results are kept."""
    code = operation.options.get("activation", "")
    if code not in RANGES:
        raise Unsupported(f"the activation {code}")
    return RANGES[code]


def range_of(unit: Unit, operation: Operation) -> str:
    """The same as C text."""
    unit.use("conv_shape.h")
    return unit.table("pg_range", activation(operation)).removeprefix("&")


def leading(size: int, out: int, kernel: int, stride: int, dilation: int, padding: str) -> int:
    """How many elements are padded in front."""
    if padding == "VALID":
        return 0
    return max((out - 1) * stride + (kernel - 1) * dilation + 1 - size, 0) // 2


class FilterWindow:
    """The shape of what slides over a picture, as the fields of ``pg_conv``."""

    def __init__(self, operation: Operation, source: Value, kernel: tuple[int, int]) -> None:
        options, result = operation.options, operation.outputs[0]
        self.batch, self.in_h, self.in_w, self.in_c = source.shape
        self.out_h, self.out_w, self.out_c = result.shape[1:]
        self.kernel = kernel
        self.stride = options.get("stride_h", 1), options.get("stride_w", 1)
        self.dilation = options.get("dilation_h", 1) or 1, options.get("dilation_w", 1) or 1
        padding = options.get("padding", "VALID")
        self.pad = (
            leading(self.in_h, self.out_h, kernel[0], self.stride[0], self.dilation[0], padding),
            leading(self.in_w, self.out_w, kernel[1], self.stride[1], self.dilation[1], padding),
        )

    def fields(self, groups: int = 1, patch: bool = False, panels: int = 1) -> list[int]:
        return [
            self.batch, self.in_h, self.in_w, self.in_c, self.out_h, self.out_w, self.out_c, *self.kernel,
            *self.stride, *self.dilation, *self.pad, groups, int(patch), panels,
        ]  # fmt: skip


def bias_of(operation: Operation, index: int, count: int) -> Array:
    """The bias, zeros where there is none."""
    value = operation.inputs[index] if len(operation.inputs) > index else None
    return np.zeros(count, np.float32) if value is None else array_of(value).reshape(-1)


def in_panels(weights: Array, bias: Array, groups: int) -> tuple[Array, Array]:
    """Weights of [output channel, tap, input channel] as kernels/conv_f32.h wants them, and biases."""
    count, taps, depth = weights.shape
    wide = count // groups
    panels = -(-wide // PANEL)
    filled = np.zeros((groups, panels * PANEL, taps, depth), np.float32)
    filled[:, :wide] = weights.reshape(groups, wide, taps, depth)
    shuffled = filled.reshape(groups, panels, PANEL, taps, depth).transpose(0, 1, 3, 4, 2)
    added = np.zeros((groups, panels * PANEL), np.float32)
    added[:, :wide] = bias.reshape(groups, wide)
    return np.ascontiguousarray(shuffled), added


def only_floats(operation: Operation, *values: Value | None) -> None:
    """Refuses other element types."""
    for value in values:
        if value is not None and value.dtype is not FLOAT:
            raise Unsupported(f"{operation.code} of {value.dtype.name}")


@emits("CONV_2D")
def conv_2d(unit: Unit, operation: Operation, source: Value, kernel: Value, result: Value) -> None:
    only_floats(operation, source, kernel, result)
    weights = array_of(kernel)
    window = FilterWindow(operation, source, (kernel.shape[1], kernel.shape[2]))
    groups = source.shape[3] // kernel.shape[3]
    flat = weights.reshape(weights.shape[0], -1, weights.shape[3])
    emit_convolution(unit, operation, window, flat, bias_of(operation, 2, result.shape[3]), groups, source)


def emit_convolution(
    unit: Unit, operation: Operation, window: FilterWindow, weights: Array, bias: Array, groups: int, source: Value
) -> None:
    """Calls the kernel for weights of [output channel, tap, input channel]."""
    _, taps, depth = weights.shape
    patch = (depth < FEW_CHANNELS and taps > 1) or taps > MOST_TAPS
    packed, added = in_panels(weights, bias, groups)
    panels = max(1, CACHE // (taps * depth * PANEL * 4)) if not patch else 1 << 20
    unit.call(
        "conv_f32.h", "pg_conv_f32", "m->level", unit.table("pg_conv", window.fields(groups, patch, panels)),
        range_of(unit, operation), source, unit.constant(packed, 64), unit.constant(added, 64),
        unit.constant(np.zeros(depth, np.float32)), unit.scratch(ROWS * taps * depth * 4) if patch else "0",
        operation.outputs[0],
    )  # fmt: skip


def row_window(source: Value, result: Value, rows: int, kernel: Value) -> FilterWindow:
    """The window of a layer as a convolution of one pixel; its rows are the pixels of a line."""
    count, depth = kernel.shape
    line = Value(source.name, source.dtype, (1, 1, rows, depth))
    made = Operation("CONV_2D", [line], [Value(result.name, result.dtype, (1, 1, rows, count))], {"padding": "VALID"})
    return FilterWindow(made, line, (1, 1))


@emits("FULLY_CONNECTED")
def fully_connected(unit: Unit, operation: Operation, source: Value, kernel: Value, result: Value) -> None:
    only_floats(operation, source, kernel, result)
    count, depth = kernel.shape
    rows = result.size // count
    if kernel.constant is None or source.constant is not None:
        bias = operation.inputs[2] if len(operation.inputs) > 2 else None
        fields = [1, [1], [0], [0], rows, count, depth, 0, 1]
        unit.call(
            "matmul_f32.h", "pg_matmul_f32", unit.table("pg_product", fields), range_of(unit, operation), source,
            kernel, "0" if bias is None else unit.at(bias), result,
        )  # fmt: skip
        return
    window = row_window(source, result, rows, kernel)
    weights = array_of(kernel).reshape(count, 1, depth)
    emit_convolution(unit, operation, window, weights, bias_of(operation, 2, count), 1, source)


@emits("DEPTHWISE_CONV_2D")
def depthwise_conv_2d(unit: Unit, operation: Operation, source: Value, kernel: Value, result: Value) -> None:
    only_floats(operation, source, kernel, result)
    window = FilterWindow(operation, source, (kernel.shape[1], kernel.shape[2]))
    unit.call(
        "depthwise_f32.h", "pg_depthwise_f32", "m->level", unit.table("pg_conv", window.fields()),
        range_of(unit, operation), source, unit.constant(array_of(kernel).reshape(-1, result.shape[3]), 64),
        unit.constant(bias_of(operation, 2, result.shape[3]), 64),
        unit.constant(np.zeros(result.shape[3], np.float32)), result,
    )  # fmt: skip


def transposed_window(operation: Operation, source: Value, kernel: Value) -> FilterWindow:
    """The window of a transposed convolution: that of the convolution whose gradient it is, turned around."""
    result = operation.outputs[0]
    forward = Operation("CONV_2D", [], [source], operation.options)
    window = FilterWindow(forward, result, (kernel.shape[1], kernel.shape[2]))
    window.in_h, window.out_h = window.out_h, window.in_h
    window.in_w, window.out_w = window.out_w, window.in_w
    window.in_c, window.out_c = source.shape[3], result.shape[3]
    return window


@emits("TRANSPOSE_CONV")
def transpose_conv(unit: Unit, operation: Operation) -> None:
    kernel, source = operand(operation, 1), operand(operation, 2)
    result = operation.outputs[0]
    only_floats(operation, source, kernel, result)
    window = transposed_window(operation, source, kernel)
    weights = array_of(kernel).transpose(1, 2, 3, 0)
    unit.call(
        "transpose_conv_f32.h", "pg_transpose_conv_f32", unit.table("pg_conv", window.fields()),
        range_of(unit, operation), source, unit.constant(weights, 64),
        unit.constant(bias_of(operation, 3, result.shape[3])), result,
    )  # fmt: skip


@emits("BATCH_MATMUL")
def batch_matmul(unit: Unit, operation: Operation, left: Value, right: Value, result: Value) -> None:
    only_floats(operation, left, right, result)
    table = unit.table("pg_product", matrices(operation))
    unit.call("matmul_f32.h", "pg_matmul_f32", table, range_of(unit, operation), left, right, "0", result)


def matrices(operation: Operation) -> list[Any]:
    """The shapes of a product of matrices, as the fields that structures of such products begin with."""
    left, right = operand(operation, 0), operand(operation, 1)
    shape = operation.outputs[0].shape
    turned_a, turned_b = bool(operation.options.get("adj_x")), bool(operation.options.get("adj_y"))
    depth = left.shape[-2] if turned_a else left.shape[-1]
    steps = []
    for value in (left, right):
        inner = math.prod(value.shape[-2:])
        steps.append([step * inner for step in stretched(value.shape[:-2], shape[:-2])])
    sizes, (a, b) = joined(shape[:-2], *steps)
    return [len(sizes) + 1, [*sizes, 1], [*a, 0], [*b, 0], *shape[-2:], depth, turned_a, turned_b]
