"""Engines of others are imported without their telemetry, which tells their makers of each process that uses them."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

VARIABLE = "ORT_DISABLE_TELEMETRY"
"""What ONNX Runtime from 1.32 on looks for when it is loaded."""
PACKAGE = "openvino_telemetry"
"""What OpenVINO sends with, and does without where it cannot be imported."""


def without_telemetry(engine: str) -> ModuleType:
    """The module of an engine, which writes no identifiers and calls no servers. Who wants that sets
    ``ORT_DISABLE_TELEMETRY=0``, or imports ``openvino_telemetry``, before.

    Raises:
        ImportError: it is not installed.
    """
    if engine == "onnxruntime":
        os.environ.setdefault(VARIABLE, "1")
    else:
        modules: dict[str, Any] = sys.modules
        modules.setdefault(PACKAGE, None)  # by which Python refuses to import it
    return import_module(engine)
