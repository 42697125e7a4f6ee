"""The table of what Core ML says in place of each ONNX operator; the modules of operators/ are its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pocketgraph.kernels.op_table import OpTable

OperatorTranslation: TypeAlias = Callable[[Any, Any], Any]
"""Called with a Translation and an Operation; gives the Core ML value of each output, or the only one. It raises
``translation.unsupported`` for what Core ML cannot say."""

TRANSLATIONS: OpTable[OperatorTranslation] = OpTable(
    "translation", "pocketgraph.exporting.coreml.operators", "TRANSLATIONS"
)
"""What says each ONNX operator in Core ML's."""

translates = TRANSLATIONS.enters
