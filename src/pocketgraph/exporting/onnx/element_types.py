"""Element types: what ONNX calls them, and which ONNX Runtime's CPU kernels compute in.

What is of another type is computed in a wider one.
"""

from __future__ import annotations

from functools import cache

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import DOUBLE, FLOAT, INT32, INT64, STRING
from pocketgraph.litert.lowering import Unsupported

NUMBERS = "float double int32 int64"
REALS = "float double"
ORDERED = "float double int32 int64 int8 uint8"
COMPUTED_IN = {
    NUMBERS: (
        "Add", "Sub", "Mul", "Div", "Mod", "Pow", "Neg", "CumSum", "Einsum", "ReduceSum", "ReduceMean", "ReduceProd",
        "ReduceSumSquare", "ReduceL2", "ReduceL1", "ReduceLogSumExp", "Range", "Less", "LessOrEqual", "Greater",
        "GreaterOrEqual", "Abs", "Sign", "TopK", "MatMul", "Max", "Min", "Clip",
    ),
    REALS: (
        "Ceil", "Cos", "Exp", "Floor", "Gemm", "Log", "LogSoftmax", "Reciprocal", "Sigmoid", "Sin", "Softmax", "Sqrt",
        "Sum", "Tanh", "Relu", "Round", "IsNaN", "IsInf", "BatchNormalization", "LSTM", "GRU", "DFT", "STFT",
        "RandomUniform", "RandomNormal", "RandomUniformLike", "RandomNormalLike", "LayerNormalization",
    ),
    "float": (
        "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "AveragePool", "Conv", "ConvTranspose", "Cosh", "Det", "Elu",
        "Erf", "GlobalAveragePool", "GlobalMaxPool", "GridSample", "HardSigmoid", "LRN", "LeakyRelu", "PRelu", "Selu",
        "Sinh", "Softplus", "Softsign", "Tan", "Multinomial", "InstanceNormalization",
    ),
    "bool": ("And", "Or", "Not", "Xor"),
    "bool float double int32 int64": ("Trilu", "Pad"),
    "bool float double int32 int64 string": ("Equal",),
    ORDERED: ("ArgMax", "ArgMin", "ReduceMax", "ReduceMin"),
    "float double int8 uint8": ("DepthToSpace", "SpaceToDepth", "MaxPool"),
    "float int32 int8 uint8": ("Resize",),
    "float double int64 int8 string": ("Unique",),
    "float double int32 int64 uint8 string": ("Where",),
    "bool float int32 int64 uint8": ("NonZero",),
    "float double int16 int32 int64 int8 uint8 uint16 uint32 uint64 bool string": ("Tile", "Expand"),
}  # fmt: skip
"""Operators by the types that they are computed in (ONNX Runtime 1.20 and later, and the standard itself)."""

_TYPES = {op: frozenset(types.split()) for types, ops in COMPUTED_IN.items() for op in ops}


@cache
def computed_type(code: str, dtype: DType) -> DType | None:
    """The type that an operator is to be computed in for operands of this type: itself, a wider one, or None where
    there is none."""
    allowed = _TYPES.get(code)
    if allowed is None or dtype.name in allowed:
        return dtype
    if dtype is STRING:
        return None
    order: tuple[DType, ...]
    if dtype.is_floating:
        order = (FLOAT, DOUBLE) if dtype is not DOUBLE else (FLOAT,)
    elif dtype.name in ("int32", "int64", "uint32", "uint64"):
        order = (INT64, DOUBLE, FLOAT)
    else:
        order = (INT32, INT64, FLOAT)
    return next((wider for wider in order if wider.name in allowed), None)


def plain_type(dtype: DType) -> DType:
    """The type that ONNX has for one of TensorFlow's: references as what they refer to, quantized types as integers."""
    base = dtype.base
    if base.is_quantized:
        return DType.of_numpy(base.numpy)
    return base


def onnx_type(dtype: DType) -> int:
    """The number of ONNX's element type.

    Raises:
        Unsupported: it has none.
    """
    try:
        return _ONNX_TYPES[dtype.name]
    except KeyError:
        raise Unsupported(f"ONNX has no tensors of type {dtype.name}") from None


_ONNX_TYPES = {
    "float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "string": 8, "bool": 9,
    "half": 10, "double": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
    "float8_e4m3fn": 17, "float8_e5m2": 19, "uint4": 21, "int4": 22,
}  # fmt: skip
"""TensorProto.DataType of the ONNX standard, by TensorFlow's names."""
