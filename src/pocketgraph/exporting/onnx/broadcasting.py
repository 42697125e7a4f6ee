"""Operators that work element by element, in whichever layout their operands are made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pocketgraph.exporting.onnx.layout import broadcast_first, prefers_first
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.graph import DType
from pocketgraph.kernels.shapes.algebra import broadcast


def elementwise(
    emit: OnnxEmit, code: str, values: Sequence[OnnxValue], dtype: DType | None = None, **attrs: Any
) -> OnnxValue:
    """An operator whose operands broadcast, by default with a result of the first one's element type."""
    shape = reduce(broadcast, [value.shape for value in values])
    rank = prefers_first(values)
    if not rank:
        return emit.op(code, values, shape, dtype, **attrs)
    operands = [broadcast_first(emit, value, rank) for value in values]
    made = emit.op(code, operands, reduce(broadcast, [value.shape for value in operands]), dtype, **attrs)
    return emit.from_first(made, shape)


def unary(emit: OnnxEmit, code: str, value: OnnxValue, **attrs: Any) -> OnnxValue:
    """An operator of one operand."""
    return elementwise(emit, code, [value], **attrs)


def add(emit: OnnxEmit, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    """a + b."""
    return elementwise(emit, "Add", [a, b])


def sub(emit: OnnxEmit, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    """a - b."""
    return elementwise(emit, "Sub", [a, b])


def mul(emit: OnnxEmit, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    """a · b."""
    return elementwise(emit, "Mul", [a, b])


def div(emit: OnnxEmit, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    """a / b; of whole numbers towards zero."""
    return elementwise(emit, "Div", [a, b])


def where(emit: OnnxEmit, condition: OnnxValue, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    """a where the condition holds, else b."""
    return elementwise(emit, "Where", [condition, a, b], a.dtype)
