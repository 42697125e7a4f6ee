"""The table of what Core ML says in place of each ONNX operator; the modules of operators/ are its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from pocketgraph.kernels.op_table import OpTable

OperatorTranslation: TypeAlias = Callable[[Any, Any], Any]
"""Called with a Translation and an Operation; gives the Core ML value of each output, or the only one. It raises
``translation.unsupported`` for what Core ML cannot say."""
Function = TypeVar("Function", bound=Callable[..., Any])

TRANSLATIONS: OpTable[OperatorTranslation] = OpTable(
    "translation", "pocketgraph.exporting.coreml.operators", "TRANSLATIONS"
)
"""What says each ONNX operator in Core ML's."""


def translates(*codes: str) -> Callable[[Function], Function]:
    """Enters the decorated function for these operators; its parameters behind the operation are the first operands."""
    return TRANSLATIONS.taking(lambda to, op, count: (to.input(op, index) for index in range(count)), *codes)
