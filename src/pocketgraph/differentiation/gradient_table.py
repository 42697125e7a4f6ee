"""The table of gradients: for each op, the nodes that carry the gradients of its outputs back to its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.kernels.op_table import OpTable

Gradient: TypeAlias = Callable[[NodeGradient], "str | Sequence[str | None] | None"]
"""Takes one node with the gradients of its outputs; returns a tensor name for each data input (or for the first ones),
None where nothing flows."""

GRADIENTS: OpTable[Gradient] = OpTable("gradient", "pocketgraph.differentiation", "GRADIENTS")
"""What differentiates each op."""

HOLDS_FOR_COMPLEX_NUMBERS = frozenset({
    "Complex", "Real", "Imag", "Conj", "ComplexAbs", "Angle", "Add", "AddV2", "AddN", "Sub", "Mul", "Div", "RealDiv",
    "Neg", "Sum", "Cumsum", "Select", "SelectV2", "BatchMatMul", "BatchMatMulV2", "MatrixSolve", "Identity",
    "IdentityN", "Snapshot", "Reshape", "ExpandDims", "Squeeze", "Transpose", "ConjugateTranspose", "Slice",
    "StridedSlice", "Pad", "ConcatV2", "Concat", "Pack", "Unpack", "Split", "SplitV", "Tile", "BroadcastTo",
    "ReverseV2", "Gather", "GatherV2", "GatherNd", "Merge", "Switch", "FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D",
    "IFFT3D", "RFFT", "RFFT2D", "IRFFT", "IRFFT2D", "Mean", "Prod", "MatMul", "Einsum", "Square", "Exp", "Expm1", "Log",
    "Log1p", "Sin", "Cos", "Tan", "Sinh", "Cosh", "Tanh", "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh", "Sigmoid",
    "Reciprocal", "Inv", "Sqrt", "Rsqrt", "Pow", "BatchMatMulV3",
})  # fmt: skip
"""Not a trait: the ops whose gradients here are right where their tensors are complex, conjugates and all."""

gradient = GRADIENTS.enters
"""Registers a function as the gradient of these ops."""


def no_gradient(op: NodeGradient) -> None:
    """Nothing flows: the result is piecewise constant, or does not depend on the values of the inputs."""


def not_differentiable(*ops: str) -> None:
    """Registers ops through which no gradient flows, without an error, as TensorFlow does."""
    gradient(*ops)(no_gradient)
