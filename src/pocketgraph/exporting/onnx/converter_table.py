"""The table of converters: how ONNX says each op. The modules of ops/ are its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pocketgraph.graph import Node
from pocketgraph.kernels.op_table import OpTable

if TYPE_CHECKING:
    from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit

Converter: TypeAlias = Callable[["OnnxEmit", Node], Any]
"""Called with an emitter and a node: reads the node's operands from ``emit``, adds operators, and
gives back its outputs, one or a tuple; or tells them to ``emit.result`` and gives None. It raises ``emit.unsupported``
for what ONNX cannot say."""
Function = TypeVar("Function", bound=Callable[..., Any])

CONVERTERS: OpTable[Converter] = OpTable("converter", "pocketgraph.exporting.onnx.ops", "CONVERTERS")
"""What turns each op into ONNX operators."""


def converts(*ops: str) -> Callable[[Function], Function]:
    """Enters the decorated function for these ops; its parameters behind the node are the node's first operands."""
    return CONVERTERS.taking(lambda emit, node, count: map(emit.input, range(count)), *ops)


COMPLEX = frozenset(("Angle", "Cast", "Complex", "ComplexAbs", "Conj", "FFT", "IFFT", "IRFFT", "Imag", "RFFT", "Real"))
"""Not a trait: whose converters (ops/fourier.py) take or give complex numbers, as pairs."""
BY_PARTS = frozenset((
    "Add", "AddN", "AddV2", "ConcatV2", "ExpandDims", "GatherV2", "Identity", "Mul", "Neg", "Pack", "Pad", "Reshape",
    "Slice", "Split", "SplitV", "Squeeze", "StridedSlice", "Sub", "Transpose", "Unpack",
))  # fmt: skip
"""Not a trait: what is done to real and imaginary parts one after the other, and products."""
