"""What each op computes, in NumPy: the reference that every other engine is held to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pocketgraph.lazy_members import lazy_members

if TYPE_CHECKING:
    from pocketgraph.kernels.registry import KERNELS, Context, Kernel, evaluate, kernel

__all__ = ["KERNELS", "Context", "Kernel", "evaluate", "kernel"]

__getattr__ = lazy_members(__name__, dict.fromkeys(__all__, "registry"))  # which a plan of compiled parts does without
