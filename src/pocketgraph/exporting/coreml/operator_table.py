"""The table of what Core ML says in place of each ONNX operator; the modules of operators/ are its rows."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

MODULES = ("elementwise", "convolution", "reducing", "moving", "looking_up", "recurrent", "quantized", "audio")
"""The modules of ``operators``; they are imported when the first row is looked up."""

_ROWS: dict[str, Callable[[Any, Any], Any]] = {}


def translates(*codes: str) -> Callable[[F], F]:
    """Registers a function as what says these ONNX operators in Core ML's.

    It is called with a Translation and an Operation, and gives the Core ML value of each output, or the only one. It
    raises ``translation.unsupported`` for what Core ML cannot say.
    """

    def register(function: F) -> F:
        for code in codes:
            if code in _ROWS:
                raise ValueError(f"{code} has two translations")
            _ROWS[code] = function
        return function

    return register


def find(code: str) -> Callable[[Any, Any], Any] | None:
    """The translation of an ONNX operator, or None."""
    if not _ROWS:
        for name in MODULES:
            import_module(f"pocketgraph.exporting.coreml.operators.{name}")
    return _ROWS.get(code)
