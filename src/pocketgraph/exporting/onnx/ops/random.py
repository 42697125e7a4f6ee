"""Random numbers: drawn by ONNX's own generators, so that no two run times give the same."""

from __future__ import annotations

import numpy as np

from pocketgraph.exporting.onnx.broadcasting import add, mul, sub
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.element_types import plain_type
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.graph import DType, Node
from pocketgraph.graph.dtype import FLOAT, INT32, INT64


def drawn(emit: OnnxEmit, code: str, dims: OnnxValue, dtype: DType, **attrs: float) -> OnnxValue:
    """Random numbers in a shape."""
    _, shape = emit.output()
    kind = dtype if dtype.name in ("float", "double") else FLOAT
    number = {"float": 1, "double": 11}[kind.name]
    if dims.constant is not None:
        sizes = [int(size) for size in dims.constant.numpy()]
        made = emit.op(code, [], sizes, kind, shape_=sizes, dtype_=number, **attrs)
    else:
        zeros = emit.op("ConstantOfShape", [dims], shape, FLOAT, value=np.zeros(1, np.float32))
        made = emit.op(f"{code}Like", [zeros], shape, kind, dtype_=number, **attrs)
    return emit.cast(made, dtype)


@converts("RandomUniform", "StatelessRandomUniform", "StatelessRandomUniformV2")
def uniform(emit: OnnxEmit, node: Node) -> OnnxValue:
    return drawn(emit, "RandomUniform", emit.as_int64(emit.input(0)), plain_type(node.dtype("dtype", FLOAT)))


@converts("RandomStandardNormal", "StatelessRandomNormal", "StatelessRandomNormalV2")
def normal(emit: OnnxEmit, node: Node) -> OnnxValue:
    return drawn(emit, "RandomNormal", emit.as_int64(emit.input(0)), plain_type(node.dtype("dtype", FLOAT)))


@converts("RandomUniformInt")
def whole(emit: OnnxEmit, node: Node) -> OnnxValue:
    low, high = (emit.cast(value, FLOAT) for value in emit.inputs(1, 3))
    numbers = drawn(emit, "RandomUniform", emit.as_int64(emit.input(0)), FLOAT)
    spread = emit.op("Floor", [mul(emit, numbers, sub(emit, high, low))], numbers.shape)
    return emit.cast(add(emit, spread, low), plain_type(node.dtype("Tout", INT32)))


@converts("Multinomial")
def multinomial(emit: OnnxEmit, node: Node) -> OnnxValue:
    count = int(np.asarray(emit.static(1, "the number of samples")).reshape(-1)[0])
    made = emit.op(
        "Multinomial", [emit.cast(emit.input(0), FLOAT)], emit.output()[1], INT32, sample_size=count, dtype_=6
    )
    return emit.cast(made, plain_type(node.dtype("output_dtype", INT64)))
