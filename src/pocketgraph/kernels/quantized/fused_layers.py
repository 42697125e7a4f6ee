"""Products of codes with bias, sum, activation and move to eight bits in one op, as TensorFlow does it with oneDNN.

Codes are taken to lie about zero: unsigned ones stand for ``code / 255`` of the larger end of their range, signed ones
for ``code / 127`` of it. Weights are signed, with one range for all or one for each output channel. What the products
stand for is computed in float32, and halves are rounded to even.

Source: MklQuantizedConvOp and MklDnnQuantizedMatMulOp in tensorflow/core/kernels/mkl; recorded results of TensorFlow
2.21 with oneDNN hold this file (tests/kernels/quantized/test_fused_layers.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT, QINT8, QINT32, QUINT8
from pocketgraph.kernels.arrays import Array, number, reserve
from pocketgraph.kernels.quantized.eight_bit_arithmetic import F32, WIDE, Quantized, cast
from pocketgraph.kernels.quantized.range_checks import ends
from pocketgraph.kernels.registry import Context, kernel
from pocketgraph.kernels.shapes.quantized import FUSED_CONVOLUTIONS
from pocketgraph.kernels.windows import padded, spatial, taps, windows

LARGEST = {QUINT8: 255.0, QINT8: 127.0}
"""The code of the larger end of a range."""
LARGEST_WEIGHT = 127.0
SMALLEST = {QUINT8: 0.0, QINT8: -128.0}


def unit(low: Array, high: Array, largest: float) -> Array:
    """What one code is worth, float32, for a range or for many of them.

    Raises:
        RunError: the ends are not finite, or not as many of each.
    """
    if low.shape != high.shape or not low.size:
        raise RunError(
            f"as many lower as upper ends of ranges are wanted, not {list(low.shape)} and {list(high.shape)}"
        )
    tops = np.maximum(np.abs(low), np.abs(high)).astype(F32)
    if not np.isfinite(tops).all():
        raise RunError("both ends of a range must be finite numbers")
    return np.asarray(tops / F32(largest), F32)


def finished(
    values: Array, kind: DType, step: Array, *, summand: Array | None = None, relu: bool = False, largest: float = 0.0
) -> Array:
    """Values, float32, as codes that are worth ``step`` each; none is larger than ``largest``, if that is not 0."""
    if summand is not None:
        values = values + summand
    if relu:
        values = np.maximum(values, F32(0))
    if kind is FLOAT:
        return np.asarray(values, F32)
    levels = np.rint(values * (F32(1) / step))
    if kind is QINT32:
        return cast(np.minimum(levels, F32(2147483520.0)), WIDE)
    codes = np.clip(np.nan_to_num(levels), SMALLEST[kind], largest or LARGEST[kind])
    return np.asarray(codes.astype(kind.numpy))


def _places(input: Array, filter: Array, strides: Sequence[int], padding: str, dilations: Sequence[int],
            padding_list: Sequence[int], *, depthwise: bool) -> Array:  # fmt: skip
    """Sums of products of codes, float64, in which they are exact."""
    channels = filter.shape[2] if filter.ndim == 4 else -1
    if input.ndim != 4 or filter.ndim != 4 or input.shape[3] != channels:
        raise RunError(f"shapes that do not fit: input {list(input.shape)} and filter {list(filter.shape)}")
    kind = "EXPLICIT" if any(padding_list) else padding
    spread = spatial(dilations, "NHWC", "dilations")
    steps = spatial(strides, "NHWC")
    spans = windows(input.shape[1:3], filter.shape[:2], steps, kind, spread, padding_list or (0,) * 8)
    x = padded(input.astype(np.float64), spans)
    many = channels * filter.shape[3] if depthwise else filter.shape[3]
    total = np.zeros(reserve((x.shape[0], spans[0].output, spans[1].output, many), np.float64))
    weights = filter.astype(np.float64)
    for index, where in taps(spans):
        seen = x[where]
        if depthwise:
            total += (seen[..., np.newaxis] * weights[index]).reshape(total.shape)
        else:
            total += seen @ weights[index]
    return total


def convolved(
    input: Array, filter: Array, bias: Array | None, ranges: Sequence[Array], wanted: Sequence[Array], out_type: DType,
    strides: Sequence[int], padding: str, dilations: Sequence[int], padding_list: Sequence[int], *,
    summand: Sequence[Array] = (), relu: bool = False, depthwise: bool = False,
) -> Quantized:  # fmt: skip
    """A convolution of codes and what follows it.

    Args:
        input: quint8 or qint8 [batch, rows, columns, channels].
        filter: qint8 [rows, columns, channels, outputs], for depthwise ones [rows, columns, channels, many].
        bias: float32 values, or qint32 codes of the products, one for each output; or None.
        ranges: the ends of the input's range, and of the filter's, one range or one for each output.
        wanted: the ends of the range of eight-bit results; empty for results of 32 bits.
        out_type: qint32, qint8 or quint8.
        strides, padding, dilations, padding_list: as the op has them.
        summand: codes and the ends of their range, or float32 values; added to the result before the activation.
        relu: whether results below zero become zero.
        depthwise: whether each channel has weights of its own.

    Raises:
        RunError: shapes or ranges do not fit.
    """
    low, high = ends(*ranges[:2])
    kind = QINT8 if input.dtype == np.int8 else QUINT8
    first = unit(np.asarray(low, F32), np.asarray(high, F32), LARGEST[kind])
    second = unit(ranges[2], ranges[3], LARGEST_WEIGHT)
    sums = _places(input, filter, strides, padding, dilations, padding_list, depthwise=depthwise)
    if second.size not in (1, sums.shape[-1]):
        raise RunError(f"{second.size} ranges of weights for {sums.shape[-1]} outputs")
    if bias is not None and bias.shape != (sums.shape[-1],):
        raise RunError(f"a bias of shape {list(bias.shape)} for {sums.shape[-1]} outputs")
    one = (first * second).astype(F32)
    values = sums.astype(F32) * one
    if bias is not None:
        values = values + (bias.astype(F32) if bias.dtype == F32 else bias.astype(F32) * one)
    if out_type is QINT32:
        widest = np.maximum(np.abs(ranges[2].min()), np.abs(ranges[3].max())).astype(F32)
        step = np.asarray(first * F32(widest / F32(LARGEST_WEIGHT)), F32)
        edges = _wide_ends(kind, low, high, ranges[2], ranges[3])
    else:
        edges = np.asarray(wanted[0], F32), np.asarray(wanted[1], F32)
        step = unit(np.asarray(number(wanted[0]), F32), np.asarray(number(wanted[1]), F32), LARGEST[out_type])
    added, largest = None, 0.0
    if len(summand) == 1:
        added = summand[0]
    elif summand:
        codes, bottom, top = summand
        most = LARGEST[QINT8 if codes.dtype == np.int8 else QUINT8]
        added = codes.astype(F32) * unit(np.asarray(number(bottom), F32), np.asarray(number(top), F32), most)
        largest = most  # oneDNN writes the result over the summand, as codes of its type
    if added is not None and added.shape != sums.shape:
        raise RunError(f"the summand has the shape {list(added.shape)}, the result {list(sums.shape)}")
    return (finished(values, out_type, step, summand=added, relu=relu, largest=largest), *edges)


def _wide_ends(kind: DType, low: float, high: float, lows: Array, highs: Array) -> tuple[Array, Array]:
    """The range of 32-bit results, one for each range of weights."""
    steps = 255 if kind is QUINT8 else 254
    one = F32((F32(high) - F32(low)) / F32(steps)) * ((highs - lows).astype(F32) / F32(254))
    bottom, top = one * F32(WIDE.low), one * F32(WIDE.high)
    return np.asarray(bottom, F32), np.asarray(top, F32)


def _is_eight_bit(op: str, out_type: DType | None) -> DType:
    """The type of an op's result; the op's default where it has no attribute."""
    if "Requantize" not in op:
        return out_type or QINT32
    found = out_type or (QUINT8 if "Relu" in op or "MatMul" in op else QINT8)
    if found not in LARGEST:
        raise RunError(f"{op} gives qint8 or quint8, not {found.name}")
    return found


@kernel(*FUSED_CONVOLUTIONS)
def fused_convolution(
    input: Array,
    filter: Array,
    *others: Array,
    context: Context,
    strides: Sequence[int],
    padding: str,
    out_type: DType | None = None,
    dilations: Sequence[int] = (1, 1, 1, 1),
    padding_list: Sequence[int] = (),
) -> Quantized:
    """``others``: the bias, the four ends of ranges, the ends of the result's, what is added and its ends; as many of
    these as the op's name has parts."""
    op = context.node.op
    kind, rest = _is_eight_bit(op, out_type), list(others)
    bias = rest.pop(0) if "WithBias" in op else None
    ranges, rest = rest[:4], rest[4:]
    wanted = [rest.pop(0), rest.pop(0)] if "Requantize" in op else []
    return convolved(
        input, filter, bias, ranges, wanted, kind, strides, padding, dilations, padding_list, summand=rest,
        relu="Relu" in op, depthwise="Depthwise" in op,
    )  # fmt: skip


@kernel(
    "QuantizedMatMulWithBias", "QuantizedMatMulWithBiasAndRelu", "QuantizedMatMulWithBiasAndReluAndRequantize",
    "QuantizedMatMulWithBiasAndRequantize", "QuantizedMatMulWithBiasAndDequantize",
)  # fmt: skip
def fused_product(
    a: Array,
    b: Array,
    bias: Array,
    min_a: Array,
    max_a: Array,
    min_b: Array,
    max_b: Array,
    *wanted: Array,
    context: Context,
    Toutput: DType | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    input_quant_mode: str = "MIN_FIRST",
) -> Quantized | Array:
    """The product of two matrices of codes and a bias; ``wanted``: the ends of the range of eight-bit results.

    With MIN_FIRST the codes of ``a`` count from the low end of its range. TensorFlow makes up for that in a bias of
    float32 only, by the sums of the weights' codes times the code of zero, without their worth; so does this.
    """
    op = context.node.op
    if transpose_a or transpose_b:
        raise RunError(f"{op} does not transpose its operands")
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or bias.shape != b.shape[1:]:
        raise RunError(f"shapes that do not fit: {list(a.shape)}, {list(b.shape)} and a bias of {list(bias.shape)}")
    low, high = ends(min_a, max_a)
    weights = unit(np.asarray(number(min_b), F32), np.asarray(number(max_b), F32), LARGEST_WEIGHT)
    from_low = input_quant_mode == "MIN_FIRST"
    kind = FLOAT if "AndDequantize" in op else _is_eight_bit(op, Toutput)
    width = F32(high) - F32(low)
    first = F32(float(width) / 255.0) if from_low else F32(F32(max(abs(low), abs(high))) / 255.0)
    one = F32(first * weights)
    offset = bias.astype(F32)
    if bias.dtype != F32:
        top = width if from_low else F32(high)
        per_unit = F32(255.0 * 127.0 / float(top * F32(max(abs(number(min_b)), abs(number(max_b))))))
        offset = offset / per_unit if from_low else offset * (F32(1) / per_unit)
    elif from_low:
        zero = F32(F32(255) * F32(low) / width)
        offset = offset + b.astype(np.int64).sum(axis=0).astype(F32) * zero
    values = (a.astype(np.float64) @ b.astype(np.float64)).astype(F32) * one + offset
    if kind in LARGEST:
        edges = np.asarray(number(wanted[0]), F32), np.asarray(number(wanted[1]), F32)
        step = unit(*edges, LARGEST[kind])
    else:
        edges = _wide_ends(QUINT8, low, high, np.asarray(number(min_b), F32), np.asarray(number(max_b), F32))
        step = np.asarray(one)
    codes = finished(values, kind, step, relu="Relu" in op)
    return codes if kind is FLOAT else (codes, *edges)
