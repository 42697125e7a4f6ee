"""What each op computes, in NumPy: the reference that every other engine is held to."""

from pocketgraph.kernels.registry import KERNELS, Context, Kernel, evaluate, kernel

__all__ = ["KERNELS", "Context", "Kernel", "evaluate", "kernel"]
