"""Memory that an engine freed while it opened a part: copies of the weights, in several forms, one after the other."""

from __future__ import annotations

import contextlib


def give_back() -> None:
    """Gives freed memory back to the system, where the C library (glibc) would keep it for what comes."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
