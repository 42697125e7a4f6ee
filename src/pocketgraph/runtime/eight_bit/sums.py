"""Where the original's sums of codes lie beside the sums of the values that the codes stand for."""

from __future__ import annotations

import numpy as np

from pocketgraph.kernels.quantized.eight_bit_arithmetic import (
    BYTE,
    WIDE,
    dequantized_first,
    from_code,
    quantized_first,
    to_code,
)

Range = tuple[float, float]


def sum_line(limits: Range, wanted: Range) -> tuple[float, float]:
    """(gain, offset) of what becomes of the values of codes of ``limits`` on the line through the codes 0 and 1."""
    first, second = (float(from_code(code, *limits, BYTE)) for code in (0, 1))
    start, end = (to_code(value, *wanted, WIDE) for value in (first, second))
    unit = (wanted[1] - wanted[0]) / (WIDE.high - WIDE.low)
    gain = unit * (end - start) / ((limits[1] - limits[0]) / BYTE.high)
    return gain, unit * start - gain * first


def bias_offset(limits: Range, wanted: Range) -> float:
    """How much higher QuantizedBiasAdd puts the values of codes of ``limits`` on average."""
    codes = np.arange(BYTE.steps, dtype=BYTE.dtype)
    values = dequantized_first(codes, *limits, BYTE)
    unit = (wanted[1] - wanted[0]) / WIDE.steps
    return float(np.mean(quantized_first(values, *wanted, WIDE).astype(np.float64) * unit - values))
