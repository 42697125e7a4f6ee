"""The table of converters: how ONNX says each op. The modules of ops/ are its rows."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., None])

MODULES = (
    "pass_through", "elementwise", "comparison", "reductions", "array", "slicing", "gathering", "nn", "pooling",
    "normalization", "image", "blocks", "random", "segments", "sorting", "linear_algebra", "arrays_of_tensors",
    "recurrent", "quantized", "fake_quantization", "quantized_joins", "audio", "text",
)  # fmt: skip
"""The modules of ``ops`` that hold converters; they are imported when the first converter is looked up."""

_CONVERTERS: dict[str, Callable[[Any, Any], None]] = {}
_loaded = False


def converts(*ops: str) -> Callable[[F], F]:
    """Registers a function as what turns these ops into ONNX operators.

    It is called with an Emit (see emitter.py) and a node; it reads the node's operands from ``emit``, adds operators,
    and ends with ``emit.result``. It raises ``emit.unsupported`` for what ONNX cannot say.
    """

    def register(function: F) -> F:
        for op in ops:
            if op in _CONVERTERS:
                raise ValueError(f"{op} has two converters")
            _CONVERTERS[op] = function
        return function

    return register


def find(op: str) -> Callable[[Any, Any], None] | None:
    """The converter of an op, or None."""
    global _loaded
    if not _loaded:
        for name in MODULES:
            import_module(f"pocketgraph.exporting.onnx.ops.{name}")
        _loaded = True
    return _CONVERTERS.get(op)
