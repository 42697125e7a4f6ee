"""Operators that work element by element, in whichever layout their operands are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pocketgraph.exporting.onnx.layout import broadcast_first, prefers_first
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.graph import DType, Shape
from pocketgraph.graph.shape import UNKNOWN


def elementwise(
    emit: OnnxEmit, code: str, values: Sequence[OnnxValue], dtype: DType | None = None, **attrs: Any
) -> OnnxValue:
    """An operator whose operands broadcast, by default with a result of the first one's element type."""
    shape = broadcast_shape([value.shape for value in values])
    rank = prefers_first(values)
    if not rank:
        return emit.op(code, values, shape, dtype, **attrs)
    operands = [broadcast_first(emit, value, rank) for value in values]
    made = emit.op(code, operands, broadcast_shape([value.shape for value in operands]), dtype, **attrs)
    return emit.from_first(made, shape)


def broadcast_shape(shapes: Sequence[Shape]) -> Shape:
    """What is known of the shape that these broadcast to."""
    if any(shape.dims is None for shape in shapes):
        return UNKNOWN
    rank = max(len(shape) for shape in shapes)
    sizes: list[int | None] = []
    for place in range(1, rank + 1):
        found: int | None = 1
        for shape in shapes:
            size = shape[-place] if len(shape) >= place else 1
            if size != 1 and (size is not None or found == 1):
                found = size
        sizes.insert(0, found)
    return Shape(sizes)


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
