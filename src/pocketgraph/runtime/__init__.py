"""Runs graphs: sessions, what runs where, node times, and the comparison of two models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pocketgraph.lazy_members import lazy_members

if TYPE_CHECKING:
    from pocketgraph.runtime.comparison.comparison_report import Report
    from pocketgraph.runtime.comparison.verification import verify
    from pocketgraph.runtime.interface import InferenceInterface
    from pocketgraph.runtime.profiling.profile import NodeTiming, StepTrace
    from pocketgraph.runtime.profiling.stat_summarizer import StatSummarizer
    from pocketgraph.runtime.run_options import RunOptions
    from pocketgraph.runtime.session import Session
    from pocketgraph.runtime.training import train
    from pocketgraph.runtime.user_kernels import kernel, remove_kernel

__all__ = [
    "InferenceInterface",
    "NodeTiming",
    "Report",
    "RunOptions",
    "Session",
    "StatSummarizer",
    "StepTrace",
    "kernel",
    "remove_kernel",
    "train",
    "verify",
]

_HOME = {
    "InferenceInterface": "interface",
    "kernel": "user_kernels",
    "remove_kernel": "user_kernels",
    "NodeTiming": "profiling.profile",
    "StepTrace": "profiling.profile",
    "RunOptions": "run_options",
    "Session": "session",
    "StatSummarizer": "profiling.stat_summarizer",
    "train": "training",
    "Report": "comparison.comparison_report",
    "verify": "comparison.verification",
}

__getattr__ = lazy_members(__name__, _HOME)
