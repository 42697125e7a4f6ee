"""Memory that was freed: copies of weights, as an engine opened a part, and tensors of a comparison."""

from __future__ import annotations

import contextlib


def trim_memory() -> None:
    """Gives freed memory back to the system, where the C library (glibc) would keep it for what comes."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
