"""Operators on int8 codes, to the last code as LiteRT computes them on CPUs.

Layers, sums, products and means are as in XNNPACK; what it leaves to LiteRT's own kernels is as in those. What makes
one code of one is a table that LiteRT itself fills in.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from pocketgraph.exporting.c.operators import convolution
from pocketgraph.exporting.c.operators.convolution import (
    CACHE,
    FEW_CHANNELS,
    MOST_TAPS,
    PANEL,
    RANGES,
    ROWS,
    FilterWindow,
    transposed_window,
)
from pocketgraph.exporting.c.operators.elementwise import emit_pairs, known
from pocketgraph.exporting.c.operators.emitter_table import PLAIN, emits, is_code
from pocketgraph.exporting.c.operators.pooling_and_resizing import resized
from pocketgraph.exporting.c.operators.shapes import paired_walk, reduced_walk
from pocketgraph.exporting.c.unit import CConstant as Place
from pocketgraph.exporting.c.unit import Unit, array_of, c_type, number, operand
from pocketgraph.graph.dtype import FLOAT, INT8, INT32
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.quantization.core.operator_rules import PRESCRIBED_INT8

LOWEST, HIGHEST = -128, 127
DOUBLED = 1 << 31


def quantization(value: Value) -> Quantization:
    """What a tensor's codes stand for.

    Raises:
        Unsupported: it has none.
    """
    if value.quantization is None or value.dtype not in (INT8, INT32):
        raise Unsupported(f"'{value.name}' of {value.dtype.name} among int8 codes")
    return value.quantization


def step(value: Value) -> Any:
    """What one code is worth, as a float32."""
    return np.float32(quantization(value).scales[0])


def zero(value: Value) -> int:
    """The code of zero."""
    return int(quantization(value).zero_points[0])


def ends(operation: Operation) -> tuple[int, int]:
    """The smallest and the largest code that an operation's activation allows."""
    result = operation.outputs[0]
    low, high = RANGES[operation.options.get("activation", "")]
    codes = [np.float32(end) / step(result) + np.float32(zero(result)) for end in (low, high)]
    first, last = (int(np.rint(np.clip(code, LOWEST, HIGHEST))) for code in codes)
    return first, last


def codes_of(unit: Unit, operation: Operation) -> str:
    """``pg_codes`` of an operation's result."""
    unit.use("requantize.h")
    low, high = ends(operation)
    at = zero(operation.outputs[0])
    return unit.table("pg_codes", [at, float(low - at), float(high - at)]).removeprefix("&")


class _Layer:
    """What layers of codes have in common: scales of their sums, and biases with the operand's zero point in them.

    Attributes:
        weights: codes of [output channel, tap, input channel].
        bias: what every sum begins with.
        scales: what sums are multiplied by, one a channel.
        steps: what one code of the weights is worth, one a channel.
    """

    def __init__(self, operation: Operation, source: Value, kernel: Value, weights: Array, at_bias: int) -> None:
        result, count = operation.outputs[0], weights.shape[0]
        if not is_code(source) or not is_code(result) or kernel.dtype is not INT8:
            raise Unsupported(f"{operation.code} with int8 weights and other operands of floats")
        own = quantization(kernel)
        if any(own.zero_points):
            raise Unsupported("weights with a zero point")
        self.steps: Array = np.broadcast_to(np.asarray(own.scales, np.float32), (count,))
        self.scales: Array = (step(source) * self.steps / step(result)).astype(np.float32)
        value = operation.inputs[at_bias] if len(operation.inputs) > at_bias else None
        given = np.zeros(count, np.int64) if value is None else array_of(value).reshape(-1).astype(np.int64)
        self.weights: Array = weights
        self.bias: Array = given - zero(source) * weights.astype(np.int64).sum(axis=(1, 2))
        if np.abs(self.bias).max(initial=0) >= DOUBLED:
            raise Unsupported("a bias of more than 32 bits")

    def panels(self, groups: int, patch: bool) -> tuple[Array, Array, Array, Array]:
        """Weights, biases, biases for codes that are 128 more, and scales, as kernels/conv_s8.h wants them."""
        count, taps, depth = self.weights.shape
        weights = self.weights.reshape(count, 1, taps * depth) if patch else self.weights
        taps, depth = weights.shape[1:]
        wide, inner = count // groups, -(-depth // 4) * 4
        panels = -(-wide // PANEL)
        filled = np.zeros((groups, panels * PANEL, taps, inner), np.int8)
        filled[:, :wide, :, :depth] = weights.reshape(groups, wide, taps, depth)
        shuffled = filled.reshape(groups, panels, PANEL, taps, inner // 4, 4).transpose(0, 1, 3, 4, 2, 5)
        biases = np.zeros((groups, panels * PANEL), np.int64)
        biases[:, :wide] = self.bias.reshape(groups, wide)
        shifted = biases - 128 * filled.astype(np.int64).sum(axis=(2, 3))
        scales = np.zeros((groups, panels * PANEL), np.float32)
        scales[:, :wide] = self.scales.reshape(groups, wide)
        return np.ascontiguousarray(shuffled), biases.astype(np.int32), shifted.astype(np.int32), scales


def in_floats(unit: Unit, operation: Operation) -> None:
    """Emits a layer between floats, with its weights as floats."""
    entry = PLAIN.row(operation.code)
    assert entry is not None, "layers of codes are layers of floats, too"
    entry.emit(unit, with_float_weights(operation))


@emits("CONV_2D", coded=True)
def conv_2d(unit: Unit, operation: Operation) -> None:
    source, kernel = operand(operation, 0), operand(operation, 1)
    if has_float_ends(operation, source):
        in_floats(unit, operation)
        return
    window = FilterWindow(operation, source, (kernel.shape[1], kernel.shape[2]))
    weights = array_of(kernel).reshape(kernel.shape[0], -1, kernel.shape[3])
    emit_layer(unit, operation, window, weights, source, kernel, source.shape[3] // kernel.shape[3])


@emits("FULLY_CONNECTED", coded=True)
def fully_connected(unit: Unit, operation: Operation) -> None:
    source, kernel = operand(operation, 0), operand(operation, 1)
    if has_float_ends(operation, source):
        in_floats(unit, operation)
        return
    result = operation.outputs[0]
    count, depth = kernel.shape
    window = convolution.row_window(source, result, result.size // count, kernel)
    emit_layer(unit, operation, window, array_of(kernel).reshape(count, 1, depth), source, kernel, 1)


def has_float_ends(operation: Operation, source: Value) -> bool:
    """Whether only the weights of a layer are codes."""
    return source.dtype is FLOAT and operation.outputs[0].dtype is FLOAT


def with_float_weights(operation: Operation) -> Operation:
    """A layer whose weights are codes as one whose weights are the numbers that they stand for."""
    kernel = operand(operation, 1)
    own = quantization(kernel)
    shape = [1] * len(kernel.shape)
    shape[own.axis] = -1
    steps = np.asarray(own.scales, np.float32).reshape(shape)
    numbers = Constant.of(array_of(kernel).astype(np.float32) * steps)
    inputs = list(operation.inputs)
    inputs[1] = Value(kernel.name, FLOAT, kernel.shape, numbers)
    return Operation(operation.code, inputs, operation.outputs, operation.options, operation.nodes)


def emit_layer(
    unit: Unit, operation: Operation, window: FilterWindow, weights: Array, source: Value, kernel: Value, groups: int
) -> None:
    """Calls the kernel for codes of weights of [output channel, tap, input channel]."""
    _, taps, depth = weights.shape
    patch = (depth < FEW_CHANNELS and taps > 1) or taps > MOST_TAPS
    layer = _Layer(operation, source, kernel, weights, 2)
    packed, bias, shifted, scales = layer.panels(groups, patch)
    inner = -(-taps * depth // 4) * 4
    panels = max(1, CACHE // (taps * depth * PANEL)) if not patch else 1 << 20
    unit.call(
        "conv_s8.h", "pg_conv_s8", "m->level", unit.table("pg_conv", window.fields(groups, patch, panels)),
        codes_of(unit, operation), source, unit.constant(packed, 64), unit.constant(bias, 64),
        unit.constant(shifted, 64), unit.constant(scales, 64), outside(unit, source, depth),
        unit.scratch(ROWS * inner) if patch else "0", operation.outputs[0],
    )  # fmt: skip


def outside(unit: Unit, source: Value, depth: int) -> Place:
    """A pixel of zeros, in codes."""
    return unit.constant(np.full(depth + 4, zero(source), np.int8))


@emits("DEPTHWISE_CONV_2D", coded=True)
def depthwise_conv_2d(unit: Unit, operation: Operation) -> None:
    source, kernel = operand(operation, 0), operand(operation, 1)
    if has_float_ends(operation, source):
        in_floats(unit, operation)
        return
    window = FilterWindow(operation, source, (kernel.shape[1], kernel.shape[2]))
    weights = array_of(kernel).reshape(-1, kernel.shape[3])
    layer = _Layer(operation, source, kernel, weights.T[:, :, None], 2)
    unit.call(
        "depthwise_s8.h", "pg_depthwise_s8", "m->level", unit.table("pg_conv", window.fields()),
        codes_of(unit, operation), source, unit.constant(weights, 64),
        unit.constant(layer.bias.astype(np.int32), 64), unit.constant(layer.scales, 64),
        outside(unit, source, source.shape[3]), operation.outputs[0],
    )  # fmt: skip


@emits("TRANSPOSE_CONV", coded=True)
def transpose_conv(unit: Unit, operation: Operation) -> None:
    kernel, source = operand(operation, 1), operand(operation, 2)
    window = transposed_window(operation, source, kernel)
    weights = array_of(kernel)
    layer = _Layer(operation, source, kernel, weights.reshape(weights.shape[0], -1, weights.shape[3]), 3)
    value = operation.inputs[3] if len(operation.inputs) > 3 else None
    bias = np.zeros(weights.shape[0], np.int32) if value is None else array_of(value).reshape(-1).astype(np.int32)
    scales: tuple[Place | str, Place | str] = (unit.constant(layer.scales), "0")
    if operation.options["padding"] == "SAME" and any(map(operator.lt, window.kernel, window.stride)):
        # XNNPACK leaves these to LiteRT's own kernel.
        real = float(step(source)) * layer.steps.astype(np.float64) / float(step(operation.outputs[0]))
        scales = ("0", unit.constant(np.array([fixed_point(one) for one in real.tolist()], np.int32)))
    unit.call(
        "transpose_conv_s8.h", "pg_transpose_conv_s8", unit.table("pg_conv", window.fields()),
        codes_of(unit, operation), zero(source), source, unit.constant(weights.transpose(1, 2, 3, 0)),
        unit.constant(bias), *scales, operation.outputs[0],
    )  # fmt: skip


@emits("RESIZE_BILINEAR", coded=True)
def resize_bilinear(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    table = resized(unit, operation, source, result)
    unit.call("resize_s8.h", "pg_resize_bilinear_s8", table, source, result)


@emits("ADD", "SUB", in_place=True, coded=True)
def add(unit: Unit, operation: Operation, left: Value, right: Value, result: Value) -> None:
    """Source of the constants: XNNPACK's parameters of qs8-vadd."""
    scales = [step(left) / step(result), step(right) / step(result)]
    _, exponent = np.frexp(max(scales))
    shift = 20 - (int(exponent) - 1)
    if not 13 <= shift <= 31:
        raise Unsupported(f"{operation.code} of codes whose steps are too far apart")
    factors = [int(np.rint(np.ldexp(scale, shift))) for scale in scales]
    if operation.code == "SUB":
        factors[1] = -factors[1]
    bias = (1 << (shift - 1)) - factors[0] * zero(left) - factors[1] * zero(right)
    walk = paired_walk(result.shape, left.shape, right.shape)
    fields = [*walk, bias, *factors, shift, zero(result), *ends(operation)]
    table = unit.table("pg_sum_of_codes", fields)
    unit.call("sums_s8.h", "pg_add_s8", "m->level", table, left, right, result)


@emits("MUL", in_place=True, coded=True)
def multiply(unit: Unit, operation: Operation, left: Value, right: Value, result: Value) -> None:
    scale = step(left) * step(right) / step(result)
    walk = paired_walk(result.shape, left.shape, right.shape)
    low, high = (float(end - zero(result)) for end in ends(operation))
    fields = [*walk, zero(left), zero(right), scale, (zero(result), low, high)]
    table = unit.table("pg_product_of_codes", fields)
    unit.call("products_s8.h", "pg_mul_s8", table, left, right, result)


@emits("PRELU", in_place=True, coded=True)
def prelu(unit: Unit, operation: Operation, left: Value, right: Value, result: Value) -> None:
    walk = paired_walk(result.shape, left.shape, right.shape)
    own = fixed_point(float(step(left)) / float(step(result)))
    slope = fixed_point(float(step(left)) * float(step(right)) / float(step(result)))
    table = unit.table("pg_prelu_of_codes", [*walk, zero(left), zero(right), *own, *slope, zero(result)])
    unit.call("prelu_s8.h", "pg_prelu_s8", table, left, right, result)


@emits("SQUARED_DIFFERENCE", in_place=True, coded=True)
def squared_difference(unit: Unit, operation: Operation, left: Value, right: Value, result: Value) -> None:
    """Source of the constants: LiteRT's squared_difference.cc."""
    common = 2 * float(max(step(left), step(right)))
    own = [one for value in (left, right) for one in fixed_point(float(step(value)) / common)]
    whole = fixed_point(common * common / (128.0 * 128.0 * float(step(result))))
    fields = [*paired_walk(result.shape, left.shape, right.shape), zero(left), zero(right), *own, *whole]
    table = unit.table("pg_difference_of_codes", [*fields, zero(result), *ends(operation)])
    kernel = "pg_squared_difference_s8"
    unit.call("squared_difference_s8.h", kernel, table, left, right, result)


def fixed_point(real: float) -> tuple[int, int]:
    """A real number as factor and shift: factor * 2^(shift - 31), as LiteRT rounds it."""
    if not real:
        return 0, 0
    mantissa, shift = math.frexp(real)
    factor = math.floor(mantissa * DOUBLED + 0.5)
    if factor == DOUBLED:
        factor, shift = factor // 2, shift + 1
    return (0, 0) if shift < -31 else (factor, shift)


@emits("BATCH_MATMUL", coded=True)
def batch_matmul(unit: Unit, operation: Operation, left: Value, right: Value, result: Value) -> None:
    own = fixed_point(float(step(left)) * float(step(right)) / float(step(result)))
    at = zero(result)
    fields = [*convolution.matrices(operation), zero(left), zero(right), *own]
    scale = step(left) * step(right) / step(result)
    table = unit.table("pg_matrices_of_codes", [*fields, scale, (at, float(LOWEST - at), float(HIGHEST - at))])
    unit.call("matmul_s8.h", "pg_matmul_s8", table, left, right, result)


@emits("MEAN", "SUM", coded=True)
def mean(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    axes = {axis % len(source.shape) for axis in known(operation.inputs[1])}
    sizes, to = reduced_walk(source.shape, axes)
    count = math.prod(source.shape[axis] for axis in axes)
    scale = step(source) / step(result) / np.float32(count if operation.code == "MEAN" else 1)
    unit.call(
        "mean_s8.h", "pg_mean_s8", unit.table("pg_reduced", [len(sizes), sizes, to, result.size]),
        -count * zero(source), number(scale), codes_of(unit, operation), source, unit.scratch(4 * result.size),
        result,
    )  # fmt: skip


@emits("MAX_POOL_2D", "AVERAGE_POOL_2D", coded=True)
def pool(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    kernel = "pg_max_pool_s8" if operation.code == "MAX_POOL_2D" else "pg_average_pool_s8"
    window = FilterWindow(operation, source, (operation.options["filter_h"], operation.options["filter_w"]))
    unit.call("pool_s8.h", kernel, unit.table("pg_conv", window.fields()), *ends(operation), source, result)


@emits("MAXIMUM", "MINIMUM", in_place=True, coded=True)
def extremes(unit: Unit, operation: Operation, left: Value, right: Value, result: Value) -> None:
    if len({(step(value), zero(value)) for value in (left, right, result)}) > 1:
        raise Unsupported(f"{operation.code} of codes with different steps")
    sign = ">" if operation.code == "MAXIMUM" else "<"
    name = f"pg_{operation.code.lower()}_int8s"
    emit_pairs(unit, name, "int8_t", "int8_t", f"a {sign} b ? a : b", left, right, result)


@emits("QUANTIZE", "DEQUANTIZE", coded=True)
def between_codes_and_numbers(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    if is_code(source) and is_code(result):
        table(unit, operation)
    elif is_code(source) and result.dtype is FLOAT:
        name = f"pg_dequantize_{source.dtype.name}"
        unit.call(
            "codes.h", name, result.size, number(step(source)), zero(source), source, result,
            definition=f"PG_DEQUANTIZE({name}, {c_type(source.dtype)})",
        )  # fmt: skip
    elif source.dtype is FLOAT and is_code(result):
        per_step = number(np.float32(1) / step(result))
        codes = codes_of(unit, operation)
        unit.call("codes.h", "pg_quantize_s8", result.size, per_step, codes, source, result)
    else:
        raise Unsupported(f"{operation.code} of {source.dtype.name} to {result.dtype.name}")


@emits("SOFTMAX", "LOG_SOFTMAX", coded=True)
def softmax(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    if quantization(result) != PRESCRIBED_INT8[operation.code]:
        raise Unsupported(f"{operation.code} with codes of its own")
    scale = -step(source) * np.float32(operation.options.get("beta", 1.0))
    table = np.exp((scale * np.arange(256, dtype=np.float32)).astype(np.float64)).astype(np.float32)
    classes = source.shape[-1]
    scale_of_source = [number(step(source))] if operation.code == "LOG_SOFTMAX" else []
    unit.call(
        "softmax_s8.h", f"pg_{operation.code.lower()}_s8", source.size // max(classes, 1), classes,
        *scale_of_source, unit.constant(table), source, result,
    )  # fmt: skip


@emits(
    "ABS", "ELU", "EXP", "GELU", "LEAKY_RELU", "LOG", "LOGISTIC", "NEG", "RELU", "RELU6", "RELU_N1_TO_1", "RSQRT",
    "SQRT", "TANH", in_place=True, coded=True,
)  # fmt: skip
def table(unit: Unit, operation: Operation) -> None:
    """What LiteRT makes of each of the 256 codes."""
    from pocketgraph.litert.running.runner import PlainRunner
    from pocketgraph.quantization.serialization.tflite_bytes import model_bytes

    source, result = operand(operation, 0), operation.outputs[0]
    shape = (1, 1, 1, HIGHEST - LOWEST + 1)
    taken = Value("codes", INT8, shape, None, quantization(source))
    given = Value("results", INT8, shape, None, quantization(result))
    program = Program([taken], [given], [Operation(operation.code, [taken], [given], dict(operation.options))])
    every = np.arange(LOWEST, HIGHEST + 1, dtype=np.int8).reshape(shape)
    try:
        (made,) = PlainRunner(model_bytes(program), 1).run([every])
    except RuntimeError:
        raise Unsupported(f"{operation.code} of codes that also stand for numbers it does not take") from None
    unit.call("codes.h", "pg_table_s8", result.size, unit.constant(made.reshape(-1)), source, result)
