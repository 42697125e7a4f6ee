"""What each op computes, in NumPy: the reference that every other engine is held to."""

from pocketgraph.kernels.registry import Context, Kernel, evaluate, find, kernel

__all__ = ["Context", "Kernel", "evaluate", "find", "kernel"]
