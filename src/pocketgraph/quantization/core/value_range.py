"""Ranges of real numbers and the eight-bit codes for them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pocketgraph.errors import UsageError
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Quantization

LOWEST, HIGHEST = -128, 127  # int8
LEVELS = HIGHEST - LOWEST
HIGHEST_16 = 32767  # int16, whose codes are symmetric
WITHOUT_WIDTH = 1e-6
"""How wide the range of a tensor of zeros is."""
SMALLEST_SCALE = 2.0**-63
"""The product of two scales is a normal float32, as LiteRT computes it."""


@dataclass(frozen=True)
class Range:
    """The numbers from ``low`` to ``high``.

    Raises:
        UsageError: an end is not finite, or they are the wrong way round.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise UsageError(f"a range from {self.low} to {self.high} is not finite")
        if self.low > self.high:
            raise UsageError(f"a range cannot go from {self.low:g} down to {self.high:g}")

    def union(self, other: Range) -> Range:
        """The smallest range that holds both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    def quantization(self, bits: int = 8) -> Quantization:
        """int8 codes for the range, widened to hold 0, which gets a code of its own; or int16 ones with ``bits=16``.

        int16 codes are symmetric, ``scale = max(|low|, |high|) / 32767``. For int8
        ``scale = (high - low) / 255``; the zero point is rounded, as in LiteRT's 8-bit quantization specification, and
        the range moves by up to half a step for it.
        """
        low, high = min(self.low, 0.0), max(self.high, 0.0)
        if bits == 16:
            return Quantization((_scale(max(-low, high), HIGHEST_16),), (0,))
        scale = _scale(high - low, LEVELS)
        zero = min(max(round(LOWEST - low / scale), LOWEST), HIGHEST)
        return Quantization((scale,), (zero,))


def _scale(width: float, steps: int) -> float:
    return float(np.float32(max((width or WITHOUT_WIDTH) / steps, SMALLEST_SCALE)))


def quantized(values: Array, quantization: Quantization, bits: int = 8) -> Array:
    """The int8 (int16 with ``bits=16``) codes nearest to ``values``, those outside of the range at its ends.

    There is one scale for the whole tensor.
    """
    scaled = np.rint(np.asarray(values, np.float64) / quantization.scales[0]) + quantization.zero_points[0]
    if bits == 16:
        wide: Array = np.clip(scaled, -HIGHEST_16, HIGHEST_16).astype(np.int16)
        return wide
    result: Array = np.clip(scaled, LOWEST, HIGHEST).astype(np.int8)
    return result


def quantized_bytes(values: Array, quantization: Quantization) -> Array:
    """The uint8 codes nearest to ``values``, those outside of the range at its ends; one scale for all."""
    scaled = np.rint(np.asarray(values, np.float64) / quantization.scales[0]) + quantization.zero_points[0]
    codes: Array = np.clip(scaled, 0, 255).astype(np.uint8)
    return codes


def dequantized(coded: Array, quantization: Quantization) -> Array:
    """What codes stand for, in float32; one scale for the whole tensor."""
    centred = coded.astype(np.float32) - np.float32(quantization.zero_points[0])
    result: Array = centred * np.float32(quantization.scales[0])
    return result
