"""Lowerings of simulated quantization: rounding to the steps that eight-bit codes would have.

In the order of operations in which TensorFlow does it, because what lies just between two steps depends on that.
LiteRT has an operator for it, but XNNPACK does not take that."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import FLOAT, INT8
from pocketgraph.kernels.arrays import number
from pocketgraph.kernels.quantized.eight_bit_arithmetic import half_away, nudged
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import MAY_QUANTIZE, lowers
from pocketgraph.litert.lowerings.math.elementwise import binary
from pocketgraph.litert.program import Quantization, Value


@lowers("FakeQuantWithMinMaxArgs")
def fake_quant_args(emit: Emit, node: Node) -> Value:
    low, high = (np.float32(node.attr(name, default)) for name, default in (("min", -6.0), ("max", 6.0)))
    bits, narrow = int(node.attr("num_bits", 8)), bool(node.attr("narrow_range", False))
    if not low < high:
        raise emit.unsupported(f"the range {low}…{high}")
    inverse = np.float32((1 << bits) - 1 - int(narrow)) / (high - low)
    source = emit.require(emit.input(0), "float")
    bottom, top, scale = nudged(np.asarray(low), np.asarray(high), bits, narrow)
    zero = np.floor(-bottom * inverse + np.float32(0.5))
    codes = binary(emit, "MUL", _inside(emit, source, bottom, top), emit.const(inverse, np.float32))
    return _rounded(emit, codes, zero, scale)


@lowers("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel", takes=("float",))
def fake_quant_vars(emit: Emit, node: Node, source: Value) -> Value:
    low, high = (np.asarray(emit.static(index, "the range"), np.float32) for index in (1, 2))
    if node.op == "FakeQuantWithMinMaxVars":
        low, high = low.reshape(()), high.reshape(())
    if not low.any() and not high.any():
        shape = source.shape
        return emit.constant(Constant(lambda: np.zeros(shape, np.float32), shape, np.dtype(np.float32)))
    if node.attr(MAY_QUANTIZE, False):
        return on_grid(emit, source, number(low), number(high))
    bits, narrow = int(node.attr("num_bits", 8)), bool(node.attr("narrow_range", False))
    bottom, top, scale = nudged(low, high, bits, narrow)
    if not np.all(scale > 0):
        raise emit.unsupported("a range of no width")
    zero = np.floor(-bottom / scale + np.float32(0.5))
    codes = binary(emit, "DIV", _inside(emit, source, bottom, top), emit.const(scale, np.float32))
    return _rounded(emit, codes, zero, scale)


def on_grid(emit: Emit, source: Value, low: float, high: float) -> Value:
    """``source`` as real eight-bit codes and back, which what is before and behind may do without."""
    bottom, _, scale = nudged(np.float32(low), np.float32(high), 8, False)
    if not scale > 0:
        raise emit.unsupported("a range of no width")
    zero = int(half_away(-bottom / scale))
    if source.constant is not None:
        levels = np.clip(half_away(source.constant.numpy() / scale), -zero, 255 - zero)
        return emit.const(levels * scale, np.float32)
    codes = emit.add("QUANTIZE", [source], source.shape, INT8)
    codes.quantization = Quantization((float(scale),), (zero - 128,))
    return emit.add("DEQUANTIZE", [codes], source.shape, FLOAT)


def _inside(emit: Emit, source: Value, bottom: Array, top: Array) -> Value:
    """How far above ``bottom`` the value is, kept within the range."""
    low, high = emit.const(bottom, np.float32), emit.const(top, np.float32)
    return binary(emit, "SUB", binary(emit, "MINIMUM", binary(emit, "MAXIMUM", source, low), high), low)


def _rounded(emit: Emit, codes: Value, zero: Array, scale: Array) -> Value:
    """The whole steps as values."""
    centred = binary(emit, "SUB", codes, emit.const(zero, np.float32))
    whole = emit.add("FLOOR", [binary(emit, "ADD", centred, emit.const(0.5, np.float32))], codes.shape)
    return binary(emit, "MUL", whole, emit.const(scale, np.float32))
