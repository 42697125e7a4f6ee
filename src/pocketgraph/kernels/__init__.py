"""What each op computes, in NumPy: the reference that every other engine is held to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pocketgraph.kernels.registry import KERNELS, Context, Kernel, evaluate, kernel

__all__ = ["KERNELS", "Context", "Kernel", "evaluate", "kernel"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'pocketgraph.kernels' has no attribute '{name}'")
    from pocketgraph.kernels import registry  # which a plan of compiled parts does without

    value = getattr(registry, name)
    globals()[name] = value
    return value
