"""How many elements a range has, in the arithmetic of its type: in float32, 1 / 0.001 is a thousand."""

from __future__ import annotations

import math

import numpy as np

from pocketgraph.kernels.arrays import Array


def steps_between(start: Array, limit: Array, delta: Array) -> int:
    """The elements of ``start, start + delta, …`` before ``limit``, which lies in the direction of ``delta``.

    Args:
        start, limit, delta: arrays of one element and one type; ``delta`` is not 0.

    Raises:
        ValueError: a range without an end, or of what is no number.
    """
    if start.dtype.kind in "iu":
        first, last, step = (int(value.item()) for value in (start, limit, delta))
        return -((last - first) // -step)
    with np.errstate(all="ignore"):
        steps = float(abs((limit.reshape(()) - start.reshape(())) / delta.reshape(())))
    if not math.isfinite(steps):
        raise ValueError(f"a range from {start.item()} to {limit.item()} by {delta.item()} has no end")
    return math.ceil(steps)
