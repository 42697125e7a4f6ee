"""Comparisons, logic, and choices between two tensors."""

from __future__ import annotations

import numpy as np

from pocketgraph.exporting.onnx.broadcasting import elementwise, sub, unary, where
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL, INT32, INT64, STRING, UINT32, UINT64

COMPARED = {
    "Less": "Less", "LessEqual": "LessOrEqual", "Greater": "Greater", "GreaterEqual": "GreaterOrEqual",
    "Equal": "Equal", "NotEqual": "Equal",
}  # fmt: skip
LOGIC = {"LogicalAnd": "And", "LogicalOr": "Or"}


@converts(*COMPARED)
def compared(emit: OnnxEmit, node: Node) -> OnnxValue:
    a, b = emit.inputs()
    if a.dtype is STRING and emit.opset < 19:
        raise emit.unsupported("ONNX compares texts from opset 19 on; export with opset 19")
    if a.dtype is BOOL and node.op not in ("Equal", "NotEqual"):
        raise emit.unsupported("ONNX does not order truth values")
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
def select(emit: OnnxEmit, node: Node) -> OnnxValue:
    condition, a, b = emit.inputs()
    if node.op == "Select" and condition.rank == 1 and (a.rank is None or a.rank > 1):  # it chooses whole rows
        condition = emit.unsqueeze(condition, list(range(1, emit.rank(a))))
    if a.dtype is not BOOL:
        return where(emit, condition, a, b)
    return emit.cast(where(emit, condition, emit.cast(a, INT32), emit.cast(b, INT32)), BOOL)


BITWISE = {"BitwiseAnd": "BitwiseAnd", "BitwiseOr": "BitwiseOr", "BitwiseXor": "BitwiseXor", "Invert": "BitwiseNot"}


@converts(*BITWISE)
def bitwise(emit: OnnxEmit, node: Node) -> OnnxValue:
    if emit.opset < 18:
        raise emit.unsupported("ONNX works on bits from opset 18 on; export with opset 18")
    return elementwise(emit, BITWISE[node.op], emit.inputs())


@converts("LeftShift", "RightShift")
def shift(emit: OnnxEmit, node: Node) -> OnnxValue:
    """ONNX shifts unsigned numbers, ONNX Runtime those of 8, 32 and 64 bits; by at least all bits is by all but one."""
    a, b = emit.inputs()
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
def places(emit: OnnxEmit, node: Node) -> OnnxValue:
    value = emit.input(0)
    if value.dtype is not BOOL:
        value = emit.op("Not", [emit.op("Equal", [value, emit.like(0, value)], value.shape, BOOL)], value.shape)
    found = emit.op("NonZero", [value], [value.rank, None] if value.rank is not None else None, INT64)
    return emit.transpose(found, [1, 0])
