"""Simulated quantization: floats that are rounded to codes and back."""

from __future__ import annotations

import numpy as np

from pocketgraph.exporting.onnx.broadcasting import add, div, elementwise, mul, sub, unary
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.layout import is_first
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.quantized import linear, stored
from pocketgraph.exporting.onnx.stored_codes import FAKES
from pocketgraph.graph import Node
from pocketgraph.graph.dtype import FLOAT, INT8, UINT8
from pocketgraph.kernels.quantized.eight_bit_arithmetic import F32, nudged
from pocketgraph.litert.constant import Array


@converts(*sorted(FAKES))
def fake_quantized(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    if node.op == "FakeQuantWithMinMaxArgs":
        low, high = (np.array(node.attr(name, default), F32) for name, default in (("min", -6.0), ("max", 6.0)))
    else:
        low, high = (np.asarray(emit.static(index, "the range"), F32) for index in (1, 2))
    bits, narrow = int(node.attr("num_bits", 8)), bool(node.attr("narrow_range", False))
    axis = emit.rank(value) - 1 if node.op.endswith("PerChannel") else None
    low, high = (end if axis is not None else end.reshape(()) for end in (low, high))
    bottom, top, scale = nudged(low, high, bits, narrow)
    if not np.all(scale > 0):
        if np.all((low == 0) & (high == 0)):
            return mul(emit, value, emit.like(0, value))
        raise emit.unsupported("its range is empty")
    zero = np.rint(-bottom / scale)
    if bits != 8:
        return _rounded(emit, value, bottom, top, scale)
    zero = zero + 1 if narrow else zero  # the lowest of the 256 codes is left out
    if value.constant is not None:
        codes = np.floor((np.clip(value.constant.numpy(), bottom, top) - bottom) / scale + F32(0.5)) + int(narrow)
        return stored(emit, codes.astype(np.uint8), np.asarray(scale), np.asarray(zero), axis)
    if narrow:
        value = elementwise(emit, "Max", [value, emit.const(np.asarray(bottom))])
    operands = [emit.const(scale.astype(F32)), emit.const(zero.astype(np.uint8))]
    if axis is None:
        return linear(emit, "DequantizeLinear", linear(emit, "QuantizeLinear", value, operands, UINT8), operands, FLOAT)
    source, place = (value, axis) if not is_first(value) or value.first is None else (value.first, 1)
    codes_made = emit.op("QuantizeLinear", [source, *operands], source.shape, UINT8, axis=place)
    made = emit.op("DequantizeLinear", [codes_made, *operands], source.shape, FLOAT, axis=place)
    return made if source is value else emit.from_first(made, value.shape)


def _rounded(emit: OnnxEmit, value: OnnxValue, bottom: Array, top: Array, scale: Array) -> OnnxValue:
    """Other than eight bits: arithmetic in floats."""
    low, high, step = (emit.const(np.asarray(part, F32)) for part in (bottom, top, scale))
    inside = sub(emit, elementwise(emit, "Max", [elementwise(emit, "Min", [value, high]), low]), low)
    steps = unary(emit, "Floor", add(emit, div(emit, inside, step), emit.const(F32(0.5))))
    return add(emit, mul(emit, steps, step), low)


@converts("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
def both_ways(emit: OnnxEmit, node: Node) -> OnnxValue:
    value = emit.cast(emit.input(0), FLOAT)
    signed, narrow = bool(node.attr("signed_input", True)), bool(node.attr("narrow_range", False))
    bits = int(emit.static(3, "the number of bits")) if node.op.endswith("V3") else int(node.attr("num_bits", 8))
    if bits != 8 or not node.attr("range_given", False) or int(node.attr("axis", -1)) != -1:
        raise emit.unsupported("only eight bits in one given range have a QDQ form")
    low, high = (float(np.asarray(emit.static(index, "the range")).reshape(-1)[0]) for index in (1, 2))
    smallest, largest = (-128 + int(narrow), 127) if signed else (0, 255)
    steps = [end / limit for end, limit in ((low, smallest), (high, largest)) if limit and end / limit > 0]
    if not steps:
        raise emit.unsupported("its range is empty")
    dtype = INT8 if signed else UINT8
    operands = [emit.const(F32(max(steps))), emit.const(np.zeros((), dtype.numpy))]
    if narrow:
        value = elementwise(emit, "Max", [value, emit.const(F32(max(steps) * smallest))])
    codes = linear(emit, "QuantizeLinear", value, operands, dtype)
    return emit.cast(linear(emit, "DequantizeLinear", codes, operands, FLOAT), emit.output()[0])
