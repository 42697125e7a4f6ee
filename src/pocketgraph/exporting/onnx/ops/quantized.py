"""Eight bits: codes stay codes, between QuantizeLinear and DequantizeLinear, which run times fuse with what is between.

Weights that the graph stores as codes stay stored so. An int32 tensor of the original's eight-bit ops (a sum of
products) is the number that it stands for; a range that the original finds while running is found while running.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph.exporting.onnx.broadcasting import add, div, elementwise, mul, sub, unary
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.element_types import plain_type
from pocketgraph.exporting.onnx.layout import channels_first, is_first
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.nn import convolve, padding_of, product, spatial, yield_image
from pocketgraph.exporting.onnx.ops.reductions import reduce
from pocketgraph.exporting.onnx.stored_codes import codes_and_steps
from pocketgraph.graph import DType, Node
from pocketgraph.graph.dtype import DOUBLE, FLOAT, INT32
from pocketgraph.kernels.quantized.eight_bit_arithmetic import (
    F32,
    WIDE,
    codes_of,
    dequantized,
    half_away,
    limited_code,
    product_range,
    scaled_range,
    widened_range,
    width,
)
from pocketgraph.litert.constant import Array
from pocketgraph.litert.operands import attr_text

BYTES = ("uint8", "int8")
AWAY = 1 - 2.0**-24
"""A step instead of 1: QuantizeLinear takes the even one of two codes that are equally near, the original the one
farther from zero, to which a quotient larger by a unit in the last place goes."""


@dataclass(frozen=True)
class _Grid:
    """The numbers that codes stand for: ``(code - zero) * step + rest``.

    Attributes:
        step: a float32 scalar.
        zero: a scalar of the codes' type.
        rest: what is left where zero is no code; None where nothing is.
        only: the number that all codes stand for; None where there are several.
    """

    step: OnnxValue
    zero: OnnxValue
    rest: OnnxValue | None = None
    only: float | None = None


def known(emit: OnnxEmit, low: OnnxValue, high: OnnxValue) -> tuple[float, float] | None:
    """The ends of a range where they are constants."""
    if low.constant is None or high.constant is None or low.shape.elements != 1 or high.shape.elements != 1:
        return None
    return float(low.constant.numpy().reshape(-1)[0]), float(high.constant.numpy().reshape(-1)[0])


def grid(
    emit: OnnxEmit, low: OnnxValue, high: OnnxValue, dtype: DType, mode: str = "MIN_FIRST", *, narrow: bool = False
) -> _Grid:
    """The numbers of eight-bit codes of a range."""
    kind = codes_of(dtype.numpy)
    ends = known(emit, low, high)
    if ends is not None:
        first, second = dequantized(np.array([kind.low, kind.low + 1], dtype.numpy), *ends, mode, narrow).tolist()
        top = float(dequantized(np.array([kind.high], dtype.numpy), *ends, mode, narrow)[0])
        step = (top - first) / (kind.high - kind.low) or second - first
        if not step:
            return _Grid(emit.const(F32(1)), emit.const(np.array(kind.low, dtype.numpy)), only=first)
        place = kind.low - first / step
        zero = int(np.clip(round(place), kind.low, kind.high))
        rest = first + (zero - kind.low) * step
        if abs(rest) <= 1e-4 * abs(step):
            return _Grid(emit.const(F32(step)), emit.const(np.array(zero, dtype.numpy)))
        zero = 0 if kind.signed else kind.low  # from which the original counts such codes, and rounds them
        rest = first + (zero - kind.low) * step
        return _Grid(emit.const(F32(step)), emit.const(np.array(zero, dtype.numpy)), emit.const(F32(rest)))
    if mode != "MIN_FIRST":
        raise emit.unsupported(f"a range that is found while running, in the mode {mode}")
    low, high = (emit.reshape(value, []) for value in (low, high))
    step = div(emit, sub(emit, high, low), emit.const(F32(kind.high - kind.low)))
    return _Grid(step, _zero_of(emit, div(emit, low, step), dtype))


def _zero_of(emit: OnnxEmit, lowest: OnnxValue, dtype: DType) -> OnnxValue:
    """The code of zero, where the lowest number is that many steps above it."""
    place = sub(emit, emit.const(F32(codes_of(dtype.numpy).low)), _half_away(emit, lowest))
    return _held(emit, place, dtype)


def _half_away(emit: OnnxEmit, value: OnnxValue) -> OnnxValue:
    """The nearest whole number, halves away from zero."""
    size = unary(emit, "Floor", add(emit, unary(emit, "Abs", value), emit.like(0.5, value)))
    return mul(emit, unary(emit, "Sign", value), size)


def _held(emit: OnnxEmit, place: OnnxValue, dtype: DType) -> OnnxValue:
    """A whole float as a code, kept within those there are."""
    kind = codes_of(dtype.numpy)
    return emit.cast(
        elementwise(emit, "Clip", [place, *(emit.like(end, place) for end in (kind.low, kind.high))]), dtype
    )


def _code_at(emit: OnnxEmit, number: OnnxValue, low: OnnxValue, high: OnnxValue, dtype: DType) -> OnnxValue:
    """The code of one number as QuantizedRelu finds it."""
    kind, ends = codes_of(dtype.numpy), known(emit, low, high)
    if ends is not None and number.constant is not None:
        return emit.const(np.array(limited_code(float(number.constant.numpy()), *ends, kind), dtype.numpy))
    if dtype.name not in BYTES:
        raise emit.unsupported(f"codes of type {dtype.name} and a range that is found while running")
    low, high, number = (emit.reshape(value, []) for value in (low, high, number))
    wide = emit.cast(sub(emit, high, low), DOUBLE)  # in double, as there: where zero is halfway, a bit decides
    scale = div(emit, emit.like(kind.steps, wide), mul(emit, wide, emit.like(kind.steps / (kind.steps - 1.0), wide)))
    places = (_half_away(emit, mul(emit, emit.cast(value, DOUBLE), scale)) for value in (number, low))
    return _held(emit, add(emit, sub(emit, *places), emit.like(kind.low, wide)), dtype)


def in_numbers(emit: OnnxEmit, codes: OnnxValue, of: _Grid) -> OnnxValue:
    """What codes stand for."""
    if of.only is not None:
        zeros = mul(emit, emit.cast(codes, FLOAT), emit.const(F32(0)))
        return add(emit, zeros, emit.const(F32(of.only)))
    known_codes, step, zero = (value.constant for value in (codes, of.step, of.zero))
    if known_codes is not None and step is not None and zero is not None:
        rest = 0.0 if of.rest is None or of.rest.constant is None else float(of.rest.constant.numpy())
        return stored(emit, known_codes.numpy(), step.numpy(), zero.numpy(), None, rest)
    made = linear(emit, "DequantizeLinear", codes, [of.step, of.zero], FLOAT)
    return made if of.rest is None else add(emit, made, of.rest)


def in_codes(emit: OnnxEmit, value: OnnxValue, of: _Grid, dtype: DType) -> OnnxValue:
    """The codes nearest to numbers; the lowest where all stand for the same."""
    if of.only is not None:
        value = mul(emit, value, emit.const(F32(0)))
    if of.rest is not None:
        value = sub(emit, value, of.rest)
    return linear(emit, "QuantizeLinear", value, [of.step, of.zero], dtype)


def linear(emit: OnnxEmit, code: str, value: OnnxValue, operands: list[OnnxValue], dtype: DType) -> OnnxValue:
    """QuantizeLinear or DequantizeLinear, in the layout that the value has."""
    if is_first(value) and value.first is not None:
        return emit.from_first(emit.op(code, [value.first, *operands], value.first.shape, dtype), value.shape)
    return emit.op(code, [value, *operands], value.shape, dtype)


def stored(emit: OnnxEmit, codes: Array, steps: Array, zeros: Array, axis: int | None, rest: float = 0.0) -> OnnxValue:
    """Weights as codes, with one step for all or one for each entry of an axis; permuted ones stay codes."""

    def permuted(order: tuple[int, ...]) -> OnnxValue:
        place = None if axis is None else order.index(axis)
        return stored(emit, np.ascontiguousarray(codes.transpose(order)), steps, zeros, place, rest)

    def reshaped(shape: tuple[int, ...]) -> OnnxValue | None:
        if axis is None:
            return stored(emit, codes.reshape(shape), steps, zeros, None, rest)
        if codes.shape[axis] == shape[-1] and axis == codes.ndim - 1:
            return stored(emit, codes.reshape(shape), steps, zeros, len(shape) - 1, rest)
        return None

    attrs: dict[str, Any] = {} if axis is None else {"axis": axis}
    operands = [emit.const(codes), emit.const(steps.astype(F32)), emit.const(zeros.astype(codes.dtype))]
    made = emit.op("DequantizeLinear", operands, codes.shape, FLOAT, **attrs)
    if rest:
        made = emit.op("Add", [made, emit.const(F32(rest))], codes.shape)
    emit.coded[made] = permuted, reshaped
    return made


def scaled_codes(emit: OnnxEmit, node: Node) -> OnnxValue | None:
    """The weights that a Mul of int8 codes with steps makes; None where it is another Mul."""
    found = codes_and_steps(emit.graph, node)
    if found is None:
        return None
    codes, steps = (part.tensor.numpy() for part in found)
    shape = (1,) * (codes.ndim - steps.ndim) + steps.shape
    axes = [axis for axis, size in enumerate(shape) if size != 1]
    if len(axes) > 1 or len(shape) != codes.ndim:
        return emit.const(codes.astype(F32) * steps)
    flat = steps.reshape(-1) if axes else steps.reshape(())
    return stored(emit, codes, flat, np.zeros(flat.shape, np.int8), axes[0] if axes else None)


# The original's eight-bit ops


@converts("QuantizeV2")
def quantize(emit: OnnxEmit, node: Node, value: OnnxValue, low: OnnxValue, high: OnnxValue) -> tuple[OnnxValue, ...]:
    """As the original computes it: a product with a float32 factor, which is rounded.

    A quotient by the step would be another float32 number, and next to where two codes are equally near another code.
    """
    mode, dtype = attr_text(node, "mode", "MIN_COMBINED"), plain_type(node.dtype("T"))
    if dtype.name not in BYTES or int(node.attr("axis", -1)) != -1:
        raise emit.unsupported("only one range of eight bits has a QDQ form")
    ends, kind = known(emit, low, high), codes_of(dtype.numpy)
    least = float(node.attr("ensure_minimum_range", 0.01))
    zero = emit.const(np.zeros((), dtype.numpy))
    if ends is not None:
        first, last = widened_range(*ends, least)
        number = F32((kind.high - kind.low) / width(first, last) if first != last else 0)
        if mode == "SCALED":
            narrow = bool(node.attr("narrow_range", False))
            first, last, number = scaled_range(first, last, kind, narrow)
            value = elementwise(emit, "Max", [value, emit.const(F32(first))]) if narrow else value
        elif mode == "MIN_FIRST":
            place = np.clip(kind.low - half_away(F32(first) * number), kind.low, kind.high)
            zero = emit.const(place.astype(dtype.numpy))
        low, high, factor = (emit.const(F32(end)) for end in (first, last, number))
    else:
        if mode != "MIN_FIRST":
            raise emit.unsupported(f"a range that is found while running, in the mode {mode}")
        low, high = _widened(emit, low, high, least)
        factor = div(emit, emit.const(F32(kind.high - kind.low)), sub(emit, high, low))
        zero = _zero_of(emit, mul(emit, low, factor), dtype)
    scaled = mul(emit, sub(emit, value, low) if mode == "MIN_COMBINED" else value, factor)
    if mode == "MIN_COMBINED" and kind.signed:
        scaled = sub(emit, scaled, emit.const(F32(kind.half)))
    is_whole = attr_text(node, "round_mode", "HALF_AWAY_FROM_ZERO") == "HALF_TO_EVEN"
    if mode == "MIN_COMBINED" and not kind.signed:  # zero is next to a tie where the range is as wide below it
        scaled, is_whole = unary(emit, "Floor", add(emit, scaled, emit.const(F32(0.5)))), True
    step = emit.const(F32(1 if is_whole else AWAY))
    return linear(emit, "QuantizeLinear", scaled, [step, zero], dtype), low, high


def _widened(emit: OnnxEmit, low: OnnxValue, high: OnnxValue, least: float) -> tuple[OnnxValue, OnnxValue]:
    """A range that is found while running, with zero and of some width, as ``widened_range``."""
    low, high = (emit.reshape(end, []) for end in (low, high))
    size = elementwise(emit, "Max", [unary(emit, "Abs", low), unary(emit, "Abs", high)])
    gap = mul(emit, elementwise(emit, "Max", [size, emit.const(F32(1))]), emit.const(F32(least)))
    low = elementwise(emit, "Min", [low, emit.const(F32(0))])
    above = elementwise(emit, "Max", [high, emit.const(F32(0))])
    return low, elementwise(emit, "Max", [above, add(emit, low, gap)])


@converts("Dequantize")
def dequantize(emit: OnnxEmit, node: Node, codes: OnnxValue, low: OnnxValue, high: OnnxValue) -> OnnxValue:
    mode = attr_text(node, "mode", "MIN_COMBINED")
    if int(node.attr("axis", -1)) != -1:
        raise emit.unsupported("only one range has a QDQ form")
    narrow, kind = bool(node.attr("narrow_range", False)), node.attr("dtype", FLOAT)
    made_of = kind if isinstance(kind, DType) else FLOAT
    if codes.dtype is FLOAT:
        return emit.cast(codes, made_of)
    if codes.dtype.name not in BYTES:
        if codes.constant is None:
            raise emit.unsupported(f"codes of type {codes.dtype.name} have no QDQ form")
        ends = known(emit, low, high)
        if ends is None:
            raise emit.unsupported("its range is computed")
        found = emit.const(dequantized(codes.constant.numpy(), *ends, mode, narrow))
    else:
        found = in_numbers(emit, codes, grid(emit, low, high, codes.dtype, mode, narrow=narrow))
    return emit.cast(found, made_of)


def numbers_of(emit: OnnxEmit, value: OnnxValue, low: OnnxValue, high: OnnxValue) -> OnnxValue:
    """What an operand of an eight-bit op stands for."""
    if value.dtype is FLOAT:
        return value
    if value.dtype is INT32 and value.constant is not None:
        ends = known(emit, low, high)
        if ends is not None:
            return emit.const(dequantized(value.constant.numpy(), *ends, "MIN_FIRST"))
    if value.dtype.name not in BYTES:
        raise emit.unsupported(f"codes of type {value.dtype.name} have no QDQ form")
    return in_numbers(emit, value, grid(emit, low, high, value.dtype))


def yield_sum(emit: OnnxEmit, a: list[OnnxValue], b: list[OnnxValue]) -> None:
    """The range of a sum of products, whose int32 codes are the numbers themselves."""
    ends = [known(emit, *pair) for pair in (a, b)]
    if ends[0] is not None and ends[1] is not None:
        kind = codes_of(np.dtype(np.uint8))
        low, high = (emit.const(F32(end)) for end in product_range(ends[0], kind, ends[1], kind))
    else:
        widths = [div(emit, sub(emit, high, low), emit.const(F32(255))) for low, high in (a, b)]
        level = emit.reshape(mul(emit, *widths), [])
        low, high = (mul(emit, level, emit.const(F32(end))) for end in (WIDE.low, WIDE.high))
    emit.result(low, 1)
    emit.result(high, 2)


@converts("QuantizedConv2D")
def quantized_convolution(emit: OnnxEmit, node: Node) -> None:
    source, weights, *ranges = emit.inputs(0, 6)
    image = channels_first(emit, numbers_of(emit, source, *ranges[:2]))
    filters = numbers_of(emit, weights, *ranges[2:])
    height, width = weights.shape.known[:2]
    made = convolve(emit, node, image, emit.transpose(filters, [3, 2, 0, 1]), [height, width], 1)
    yield_image(emit, node, made)
    yield_sum(emit, ranges[:2], ranges[2:])


@converts("QuantizedMatMul")
def quantized_product(emit: OnnxEmit, node: Node) -> None:
    a, b, *ranges = emit.inputs(0, 6)
    flags = (bool(node.attr("transpose_a", False)), bool(node.attr("transpose_b", False)))
    left, right = numbers_of(emit, a, *ranges[:2]), numbers_of(emit, b, *ranges[2:])
    made = product(emit, left, right, *flags)
    emit.result(made)
    yield_sum(emit, ranges[:2], ranges[2:])


@converts("QuantizedBiasAdd", "QuantizedAdd", "QuantizedMul")
def quantized_arithmetic(emit: OnnxEmit, node: Node) -> None:
    a, b, *ranges = emit.inputs(0, 6)
    left, right = numbers_of(emit, a, *ranges[:2]), numbers_of(emit, b, *ranges[2:])
    made = (mul if node.op == "QuantizedMul" else add)(emit, left, right)
    emit.result(made)
    yield_sum(emit, ranges[:2], ranges[2:])


@converts("QuantizedRelu", "QuantizedRelu6", "QuantizedReluX")
def quantized_relu(emit: OnnxEmit, node: Node) -> tuple[OnnxValue, ...]:
    codes, *ranges = emit.inputs()
    tops = {"QuantizedRelu": None, "QuantizedRelu6": emit.const(F32(6))}
    top = tops[node.op] if node.op in tops else ranges.pop(0)
    if codes.dtype is FLOAT:
        made = unary(emit, "Relu", codes)
        return made if top is None else elementwise(emit, "Min", [made, top]), ranges[0], ranges[1]
    low, high = ranges
    made = elementwise(emit, "Max", [codes, _code_at(emit, emit.const(F32(0)), low, high, codes.dtype)])
    if top is not None:
        made = elementwise(emit, "Min", [made, _code_at(emit, top, low, high, codes.dtype)])
    return made, ranges[0], ranges[1]


@converts("QuantizedMaxPool", "QuantizedAvgPool")
def quantized_pool(emit: OnnxEmit, node: Node, codes: OnnxValue, low: OnnxValue, high: OnnxValue) -> None:
    """Of codes: the largest, or the mean cut to a whole one."""
    source = channels_first(emit, codes)
    window, strides = spatial(node, "ksize", 4), spatial(node, "strides", 4)
    attrs = padding_of(node, list(source.shape)[2:], window, strides, [1, 1])
    if node.op == "QuantizedMaxPool":
        made = emit.op("MaxPool", [source], None, kernel_shape=window, strides=strides, **attrs)
    else:
        numbers = emit.cast(source, FLOAT)
        mean = emit.op("AveragePool", [numbers], None, kernel_shape=window, strides=strides, **attrs)
        made = emit.cast(mean, codes.dtype)  # which cuts
    yield_image(emit, node, made)
    emit.result(low, 1)
    emit.result(high, 2)


@converts("RequantizationRange")
def used_range(emit: OnnxEmit, node: Node, value: OnnxValue) -> tuple[OnnxValue, ...]:
    low, high = _ends_of(emit, value)
    return low, high


def _ends_of(emit: OnnxEmit, value: OnnxValue) -> tuple[OnnxValue, OnnxValue]:
    """The smallest number, at most 0, and the largest."""
    if value.dtype is not FLOAT:
        raise emit.unsupported("its codes come from outside of the model")
    source = value.first if is_first(value) and value.first is not None else value
    axes = list(range(emit.rank(source)))
    smallest, largest = (reduce(emit, code, source, axes, False) for code in ("ReduceMin", "ReduceMax"))
    return elementwise(emit, "Min", [smallest, emit.const(F32(0))]), largest


@converts("Requantize", "QuantizeDownAndShrinkRange")
def requantize(emit: OnnxEmit, node: Node, value: OnnxValue) -> tuple[OnnxValue, ...]:
    dtype = plain_type(node.dtype("out_type"))
    if value.dtype is not FLOAT or dtype.name not in BYTES:
        raise emit.unsupported("its codes come from outside of the model")
    low, high = emit.inputs(3, 5) if node.op == "Requantize" else _ends_of(emit, value)
    return in_codes(emit, value, grid(emit, low, high, dtype), dtype), low, high
