"""Arithmetic, comparisons, logic and choices, element by element."""

from __future__ import annotations

from functools import reduce
from math import frexp, pi

import numpy as np

from pocketgraph.errors import GraphError
from pocketgraph.exporting.onnx.broadcasting import add, div, elementwise, mul, sub, unary, where
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.quantized import scaled_codes
from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32, INT64, STRING, UINT32, UINT64
from pocketgraph.kernels.selu_constants import SELU_ALPHA, SELU_SCALE
from pocketgraph.kernels.shapes.algebra import broadcast

SAME = {
    "Abs": "Abs", "Neg": "Neg", "Exp": "Exp", "Log": "Log", "Sqrt": "Sqrt", "Ceil": "Ceil", "Floor": "Floor",
    "Sin": "Sin", "Cos": "Cos", "Tan": "Tan", "Asin": "Asin", "Acos": "Acos", "Atan": "Atan", "Sinh": "Sinh",
    "Cosh": "Cosh", "Asinh": "Asinh", "Acosh": "Acosh", "Atanh": "Atanh", "Erf": "Erf", "Sign": "Sign",
    "Relu": "Relu", "Sigmoid": "Sigmoid", "Tanh": "Tanh", "Elu": "Elu", "Softplus": "Softplus",
    "Softsign": "Softsign", "Round": "Round", "Rint": "Round", "Reciprocal": "Reciprocal", "Inv": "Reciprocal",
}  # fmt: skip
"""Ops that ONNX has under these names."""


@converts(*SAME)
def same(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    if node.op in ("Round", "Rint", "Ceil", "Floor") and not value.dtype.is_floating:
        return value
    if node.op == "Relu" and not value.dtype.is_floating:
        return elementwise(emit, "Max", [value, emit.like(0, value)])
    return unary(emit, SAME[node.op], value)


@converts("Add", "AddV2", "Sub", "Mul")
def arithmetic(emit: OnnxEmit, node: Node, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    if a.dtype is STRING:
        return joined(emit, [a, b])
    if node.op == "Mul":
        weights = scaled_codes(emit, node)
        if weights is not None:
            return weights
    code = "Add" if node.op == "AddV2" else node.op
    if code in ("Add", "Sub") and a.dtype.is_floating and number(b) == 0:
        return a
    if a.dtype is BOOL:
        code = {"Add": "Or", "Mul": "And", "Sub": "Xor"}[code]
    return elementwise(emit, code, [a, b])


def number(value: OnnxValue) -> float | None:
    """The number that a scalar constant is; None for anything else."""
    if value.constant is None or value.rank != 0 or not value.dtype.is_floating:
        return None
    return float(value.constant.numpy())


def joined(emit: OnnxEmit, texts: list[OnnxValue]) -> OnnxValue:
    """Texts put together."""
    emit.since(20, "ONNX joins texts")
    return reduce(lambda a, b: elementwise(emit, "StringConcat", [a, b]), texts)


converts("AddN", "AccumulateNV2")(lambda emit, node: reduce(lambda a, b: add(emit, a, b), emit.inputs()))


@converts("MulNoNan")
def product_without_nan(emit: OnnxEmit, node: Node, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    is_zero = elementwise(emit, "Equal", [b, emit.like(0, b)], BOOL)
    return where(emit, is_zero, emit.like(0, a), mul(emit, a, b))


MOST_TURNED = 2.0**-14, 2.0**14
"""Between these a power of two and one divided by it are normal numbers of every type."""


@converts("RealDiv", "Div", "TruncateDiv")
def quotient(emit: OnnxEmit, node: Node, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    divisor = number(b)
    if divisor and abs(frexp(divisor)[0]) == 0.5 and MOST_TURNED[0] < abs(divisor) < MOST_TURNED[1]:
        found = mul(emit, a, emit.like(1 / divisor, b))  # of a power of two it is the same, and quicker
    else:
        found = div(emit, a, b)
    if node.op == "TruncateDiv" and found.dtype.is_floating:
        found = mul(emit, unary(emit, "Sign", found), unary(emit, "Floor", unary(emit, "Abs", found)))
    return found


@converts("DivNoNan", "Xdivy", "Xlogy", "Xlog1py")
def guarded(emit: OnnxEmit, node: Node, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    if node.op in ("DivNoNan", "Xdivy"):
        found = div(emit, a, b)
    else:
        inner = b if node.op == "Xlogy" else add(emit, b, emit.like(1, b))
        found = mul(emit, a, unary(emit, "Log", inner))
    guard = b if node.op == "DivNoNan" else a
    is_zero = elementwise(emit, "Equal", [guard, emit.like(0, guard)], BOOL)
    return where(emit, is_zero, emit.like(0, a), found)


@converts("FloorDiv")
def floor_quotient(emit: OnnxEmit, node: Node, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    if a.dtype.is_floating:
        return unary(emit, "Floor", div(emit, a, b))
    if a.dtype.name.startswith("uint"):
        return div(emit, a, b)
    found = div(emit, a, b)
    is_floor = elementwise(emit, "Equal", [sub(emit, a, mul(emit, found, b)), floor_remainder(emit, a, b)], BOOL)
    return where(emit, is_floor, found, sub(emit, found, emit.like(1, found)))  # a - remainder may be too large


def floor_remainder(emit: OnnxEmit, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    """The remainder that has the divisor's sign."""
    if not a.dtype.is_floating:
        return elementwise(emit, "Mod", [a, b])
    rest = elementwise(emit, "Mod", [a, b], fmod=1)
    zero = emit.like(0, rest)
    others = [elementwise(emit, "Less", [value, zero], BOOL) for value in (rest, b)]
    is_other = elementwise(emit, "Xor", others, BOOL)
    is_some = unary(emit, "Not", elementwise(emit, "Equal", [rest, zero], BOOL))
    return where(emit, elementwise(emit, "And", [is_other, is_some], BOOL), add(emit, rest, b), rest)


@converts("FloorMod", "Mod", "TruncateMod")
def remainder(emit: OnnxEmit, node: Node, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    return floor_remainder(emit, a, b) if node.op == "FloorMod" else elementwise(emit, "Mod", [a, b], fmod=1)


@converts("Pow")
def power(emit: OnnxEmit, node: Node, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    if b.constant is not None and b.shape.elements == 1 and a.dtype.is_floating:
        exponent = float(b.constant.numpy().reshape(-1)[0])
        if exponent == 2 and (b.rank == 0 or b.rank == a.rank):
            return mul(emit, a, a)
        if exponent == 0.5 and (b.rank == 0 or b.rank == a.rank):
            return unary(emit, "Sqrt", a)
    return elementwise(emit, "Pow", [a, b])


@converts("Maximum", "Minimum")
def extreme(emit: OnnxEmit, node: Node) -> OnnxValue:
    return elementwise(emit, "Max" if node.op == "Maximum" else "Min", emit.inputs())


@converts("Square", "SquaredDifference")
def square(emit: OnnxEmit, node: Node) -> OnnxValue:
    value = emit.input(0) if node.op == "Square" else sub(emit, *emit.inputs())
    return mul(emit, value, value)


converts("Rsqrt")(lambda emit, node: unary(emit, "Reciprocal", unary(emit, "Sqrt", emit.input(0))))


@converts("Log1p", "Expm1")
def shifted(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    one = emit.like(1, value)
    if node.op == "Log1p":
        return unary(emit, "Log", add(emit, value, one))
    else:
        return sub(emit, unary(emit, "Exp", value), one)


@converts("Erfc")
def complementary_error(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    return sub(emit, emit.like(1, value), unary(emit, "Erf", value))


converts("Relu6")(lambda emit, node: clipped(emit, emit.input(0), 0, 6))


def clipped(emit: OnnxEmit, value: OnnxValue, low: float, high: float) -> OnnxValue:
    """A value held between two numbers."""
    return elementwise(emit, "Clip", [value, emit.like(low, value), emit.like(high, value)])


@converts("ClipByValue")
def clip(emit: OnnxEmit, node: Node, value: OnnxValue, low: OnnxValue, high: OnnxValue) -> OnnxValue:
    return elementwise(emit, "Max", [elementwise(emit, "Min", [value, high]), low])


@converts("LeakyRelu", "Selu")
def with_slope(emit: OnnxEmit, node: Node) -> OnnxValue:
    if node.op == "Selu":
        return unary(emit, "Selu", emit.input(0), alpha=SELU_ALPHA, gamma=SELU_SCALE)
    return unary(emit, "LeakyRelu", emit.input(0), alpha=float(node.attr("alpha", 0.2)))


@converts("Atan2")
def angle(emit: OnnxEmit, node: Node, y: OnnxValue, x: OnnxValue) -> OnnxValue:
    zero = emit.like(0, x)
    is_upright = elementwise(emit, "Equal", [x, zero], BOOL)
    base = unary(emit, "Atan", div(emit, y, where(emit, is_upright, zero, x)))  # by -0 it would turn round
    is_behind = elementwise(emit, "Less", [x, zero], BOOL)
    is_below = elementwise(emit, "Less", [y, zero], BOOL)
    turn = where(emit, is_below, emit.like(-pi, x), emit.like(pi, x))
    found = add(emit, base, where(emit, is_behind, turn, zero))
    both = elementwise(emit, "And", [is_upright, elementwise(emit, "Equal", [y, zero], BOOL)], BOOL)
    return where(emit, both, zero, found)


@converts("IsFinite", "IsInf", "IsNan")
def kinds(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    if value.dtype.name not in ("float", "double"):
        value = emit.cast(value, FLOAT)
    if node.op == "IsInf":
        return elementwise(emit, "IsInf", [value], BOOL)
    elif node.op == "IsNan":
        return elementwise(emit, "IsNaN", [value], BOOL)
    else:  # what is finite is 0 when taken from itself, and nothing else is
        difference = sub(emit, value, value)
        return elementwise(emit, "Equal", [difference, emit.like(0, value)], BOOL)


@converts("ReluGrad", "Relu6Grad", "SigmoidGrad", "TanhGrad", "RsqrtGrad", "SqrtGrad", "InvGrad", "ReciprocalGrad")
def gradient(emit: OnnxEmit, node: Node, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    one = emit.like(1, a)
    if node.op in ("ReluGrad", "Relu6Grad"):
        passes = elementwise(emit, "Greater", [b, emit.like(0, b)], BOOL)
        if node.op == "Relu6Grad":
            below = elementwise(emit, "Less", [b, emit.like(6, b)], BOOL)
            passes = elementwise(emit, "And", [passes, below], BOOL)
        return where(emit, passes, a, emit.like(0, a))
    elif node.op == "SigmoidGrad":
        return mul(emit, mul(emit, b, a), sub(emit, one, a))
    elif node.op == "TanhGrad":
        return mul(emit, b, sub(emit, one, mul(emit, a, a)))
    elif node.op == "SqrtGrad":
        return div(emit, mul(emit, b, emit.like(0.5, a)), a)
    elif node.op == "RsqrtGrad":
        return mul(emit, mul(emit, b, emit.like(-0.5, a)), mul(emit, mul(emit, a, a), a))
    else:
        return unary(emit, "Neg", mul(emit, b, mul(emit, a, a)))


COMPARED = {
    "Less": "Less", "LessEqual": "LessOrEqual", "Greater": "Greater", "GreaterEqual": "GreaterOrEqual",
    "Equal": "Equal", "NotEqual": "Equal",
}  # fmt: skip
LOGIC = {"LogicalAnd": "And", "LogicalOr": "Or"}


@converts(*COMPARED)
def compared(emit: OnnxEmit, node: Node, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    if a.dtype is STRING:
        emit.since(19, "ONNX compares texts")
    if a.dtype is BOOL and node.op not in ("Equal", "NotEqual"):
        raise emit.unsupported("ONNX does not order truth values")
    try:
        broadcast(a.shape, b.shape)
    except GraphError:  # it has incompatible_shape_error=false
        raise emit.unsupported("operands that do not broadcast are unequal as a whole, which ONNX refuses") from None
    found = elementwise(emit, COMPARED[node.op], [a, b], BOOL)
    return unary(emit, "Not", found) if node.op == "NotEqual" else found


converts(*LOGIC)(lambda emit, node: elementwise(emit, LOGIC[node.op], emit.inputs(), BOOL))
converts("LogicalNot")(lambda emit, node: unary(emit, "Not", emit.input(0)))


@converts("ApproximateEqual")
def nearly_equal(emit: OnnxEmit, node: Node) -> OnnxValue:
    difference = unary(emit, "Abs", elementwise(emit, "Sub", emit.inputs()))
    limit = emit.like(float(node.attr("tolerance", 1e-5)), difference)
    return elementwise(emit, "Less", [difference, limit], BOOL)


@converts("Select", "SelectV2")
def select(emit: OnnxEmit, node: Node, condition: OnnxValue, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    if node.op == "Select" and condition.rank == 1 and (a.rank is None or a.rank > 1):  # it chooses whole rows
        condition = emit.unsqueeze(condition, list(range(1, emit.rank(a))))
    if a.dtype is not BOOL:
        return where(emit, condition, a, b)
    return emit.cast(where(emit, condition, emit.cast(a, INT32), emit.cast(b, INT32)), BOOL)


@converts("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Invert")
def bitwise(emit: OnnxEmit, node: Node) -> OnnxValue:
    emit.since(18, "ONNX works on bits")
    return elementwise(emit, "BitwiseNot" if node.op == "Invert" else node.op, emit.inputs())


@converts("LeftShift", "RightShift")
def shift(emit: OnnxEmit, node: Node, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    """ONNX shifts unsigned numbers, ONNX Runtime those of 8, 32 and 64 bits; by at least all bits is by all but one."""
    kind = np.iinfo(a.dtype.numpy)
    is_wide, is_signed = kind.bits == 64, kind.min < 0
    signed, unsigned = (INT64, UINT64) if is_wide else (INT32, UINT32)
    operand = signed if is_signed else unsigned
    places = elementwise(emit, "Max", [emit.cast(b, operand), emit.const(np.array(0, operand.numpy))])
    places = elementwise(emit, "Min", [places, emit.const(np.array(kind.bits - 1, operand.numpy))])
    value, places = emit.cast(a, operand), emit.cast(places, unsigned)
    if node.op == "LeftShift" or not is_signed:
        direction = "LEFT" if node.op == "LeftShift" else "RIGHT"
        made = elementwise(emit, "BitShift", [emit.cast(value, unsigned), places], direction=direction)
        return emit.cast(emit.cast(made, operand), a.dtype)
    zero, minus_one = (emit.const(np.array(number, signed.numpy)) for number in (0, -1))
    is_negative = elementwise(emit, "Less", [value, zero], BOOL)
    flipped = where(emit, is_negative, sub(emit, minus_one, value), value)  # all bits, as -1 - x has
    moved = elementwise(emit, "BitShift", [emit.cast(flipped, unsigned), places], direction="RIGHT")
    found = emit.cast(moved, signed)
    return emit.cast(where(emit, is_negative, sub(emit, minus_one, found), found), a.dtype)


@converts("Where")
def places(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    if value.dtype is not BOOL:
        value = emit.op("Not", [emit.op("Equal", [value, emit.like(0, value)], value.shape, BOOL)], value.shape)
    found = emit.op("NonZero", [value], [value.rank, None] if value.rank is not None else None, INT64)
    return emit.transpose(found, [1, 0])
