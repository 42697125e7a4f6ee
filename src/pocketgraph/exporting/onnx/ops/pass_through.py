"""What passes its input on, constants, shapes, and what only guards or prints."""

from __future__ import annotations

import numpy as np

from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.element_types import plain_type
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.fourier import complex_cast
from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL, INT32, STRING
from pocketgraph.litert.constant import Array


@converts(
    "Identity", "StopGradient", "PreventGradient", "Snapshot", "CheckNumerics", "EnsureShape", "PlaceholderWithDefault",
    "Print", "RefIdentity", "DebugGradientIdentity", "ReadVariableOp", "CheckNumericsV2", "LoopCond",
    "XlaSharding", "XlaClusterOutput",
)  # fmt: skip
def passed(emit: OnnxEmit, node: Node) -> OnnxValue:
    return emit.input(0)


@converts("IdentityN", "XlaOptimizationBarrier")
def passed_many(emit: OnnxEmit, node: Node) -> tuple[OnnxValue, ...]:
    return tuple(emit.inputs())


@converts("Const")
def const(emit: OnnxEmit, node: Node) -> None:
    emit.value(f"{node.name}:0")


@converts("NoOp", "Assert", "PrintV2", "ControlTrigger", "Abort")
def nothing(emit: OnnxEmit, node: Node) -> None:
    """What is run for what it does, not for a result."""


@converts("Shape")
def shape(emit: OnnxEmit, node: Node) -> OnnxValue:
    return emit.cast(emit.dims(emit.input(0)), node.dtype("out_type", INT32))


@converts("ShapeN")
def shapes(emit: OnnxEmit, node: Node) -> tuple[OnnxValue, ...]:
    return tuple(emit.cast(emit.dims(value), node.dtype("out_type", INT32)) for value in emit.inputs())


@converts("Size")
def size(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    count = emit.op("ReduceProd", [emit.dims(value)], [], keepdims=0)
    return emit.cast(count, node.dtype("out_type", INT32))


@converts("Rank")
def rank(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    if value.rank is not None:
        return emit.const(np.int32(value.rank))
    return emit.cast(emit.reshape(emit.dims(emit.op("Shape", [value], None, emit.ints([0]).dtype)), []), INT32)


@converts("Cast")
def cast(emit: OnnxEmit, node: Node) -> OnnxValue | None:
    if node.dtype("SrcT").is_complex or node.dtype("DstT").is_complex:
        return complex_cast(emit, node)
    value, wanted = emit.input(0), plain_type(node.dtype("DstT"))
    if value.dtype.is_floating and wanted.name in ("uint8", "int8", "uint16", "int16"):
        value = emit.cast(value, INT32)  # what lies outside of the type wraps round, as TensorFlow does it
    return emit.cast(value, wanted)


@converts("Bitcast")
def bitcast(emit: OnnxEmit, node: Node) -> OnnxValue:
    value, wanted = emit.input(0), plain_type(node.dtype("type"))
    if value.dtype is not wanted:
        raise emit.unsupported("ONNX does not read the bits of one type as another's")
    return value


@converts("ZerosLike", "OnesLike")
def filled_like(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    if value.dtype is STRING:
        raise emit.unsupported("ONNX fills no tensors with texts")
    number = np.full(1, node.op == "OnesLike", value.dtype.numpy)
    return filled(emit, emit.dims(value), number, value)


def filled(emit: OnnxEmit, dims: OnnxValue, number: Array, value: OnnxValue) -> OnnxValue:
    """A tensor of one number."""
    if value.dtype is STRING:
        raise emit.unsupported("ONNX fills no tensors with texts")
    if dims.constant is not None:
        shape = tuple(int(size) for size in dims.constant.numpy())
        return emit.const(np.full(shape, number[0], number.dtype))
    return emit.op("ConstantOfShape", [dims], value.shape, value.dtype, value=number)


@converts("Fill")
def fill(emit: OnnxEmit, node: Node) -> OnnxValue:
    _, shape = emit.output()
    return emit.op("Expand", [emit.input(1), emit.as_int64(emit.input(0))], shape)


@converts("BroadcastArgs")
def broadcast_args(emit: OnnxEmit, node: Node) -> OnnxValue:
    a, b = (emit.as_int64(value) for value in emit.inputs())
    lengths = [emit.known_size(value, 0, "the length of a shape") for value in (a, b)]
    count = max(lengths)
    a, b = (emit.concat([emit.ints([1] * (count - length)), value]) if length < count else value
            for value, length in zip((a, b), lengths, strict=True))  # fmt: skip
    is_one = emit.op("Equal", [a, emit.ints([1])], [count], BOOL)
    return emit.cast(emit.op("Where", [is_one, b, a], [count], a.dtype), node.dtype("T", INT32))
