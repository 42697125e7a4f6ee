"""The ends of a range as a quantized op is given them: refused where no codes can be computed with them."""

from __future__ import annotations

import math

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, number
from pocketgraph.kernels.quantized.eight_bit_arithmetic import LARGEST_FLOAT, SMALLEST_NORMAL


def ends(low: Array, high: Array) -> tuple[float, float]:
    """(low, high) of a range that an op computes with, both float32 [] or [1].

    TensorFlow turns NaN and infinity into codes and ranges that differ between its versions and processors, and that
    mean nothing. What is kept as it computes it: ranges of no width, those with ``low`` above ``high``, and subnormal
    ends, which its processor flags take for zero.

    Raises:
        RunError: an end is no finite number, or they are further apart than float32 can say.
    """
    return checked(number(low), number(high))


def checked(low: float, high: float) -> tuple[float, float]:
    """The same for numbers."""
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RunError(
            f"the range {low:g}…{high:g} is none: both ends must be finite numbers",
            hint="look for NaN or infinity in what is fed, or in the weights",
        )
    if abs(high - low) > LARGEST_FLOAT:
        raise RunError(f"the range {low:g}…{high:g} is wider than a float32 can say")
    return flushed(low), flushed(high)


def flushed(end: float) -> float:
    """Zero for a subnormal number."""
    return 0.0 * end if abs(end) < SMALLEST_NORMAL else end
