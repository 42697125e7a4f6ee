"""Runs graphs: sessions, what runs where, node times, and the comparison of two models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pocketgraph.runtime.compare import Report, verify
    from pocketgraph.runtime.interface import InferenceInterface
    from pocketgraph.runtime.profile import NodeTiming, StepTrace
    from pocketgraph.runtime.run_options import RunOptions
    from pocketgraph.runtime.session import Session
    from pocketgraph.runtime.stat_summarizer import StatSummarizer

__all__ = [
    "InferenceInterface",
    "NodeTiming",
    "Report",
    "RunOptions",
    "Session",
    "StatSummarizer",
    "StepTrace",
    "verify",
]

_HOME = {
    "InferenceInterface": "interface",
    "NodeTiming": "profile",
    "StepTrace": "profile",
    "RunOptions": "run_options",
    "Session": "session",
    "StatSummarizer": "stat_summarizer",
    "Report": "compare",
    "verify": "compare",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pocketgraph.runtime' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(f"pocketgraph.runtime.{_HOME[name]}"), name)
    globals()[name] = value
    return value
