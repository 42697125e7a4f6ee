"""16-bit floats are computed in float32: what is rounded to them, and where.

LiteRT's operators do not compute with half or bfloat16. Inside of a program such tensors are float32; what enters is
made float32, and what leaves is rounded once, by whoever runs the program (sixteen_bits.py). Rounding to 16 bits is an
operation of the program where a graph converts to or from such a type, and before operators that tell apart what 16
bits do not: those whose results are of another type, and those that jump. Large tensors of halves inside of a network
keep their digits through conversions, unless one to half is followed by one back, whose purpose is to round.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.litert.constant import Constant

NARROW = frozenset(("half", "bfloat16"))
"""Element types that are computed in float32, by name."""

NARROW_ARRAYS = frozenset(("float16", "bfloat16"))
"""NumPy's names for them."""

JUMPING = ops_with("discontinuous")
"""Ops whose results jump where their operands hardly change."""

MOST_ROUNDED = 1024
"""Elements up to which a conversion between values that are computed here rounds to half. Rounding millions of values
would take longer than computing them. To bfloat16 all are rounded: that decides about its few digits."""


def keeps_digits(dtype: DType, size: int) -> bool:
    """Whether so many values computed here may keep their digits where the graph converts to or from this type."""
    return dtype.name == "half" and size > MOST_ROUNDED


def widened(dtype: DType) -> DType:
    """The type that elements of this one are computed in."""
    return FLOAT if dtype.name in NARROW else dtype


def widened_constant(constant: Constant) -> Constant:
    """A constant of 16-bit floats as float32, any other as it is."""
    if constant.dtype.itemsize != 2 or constant.dtype.name not in NARROW_ARRAYS:  # NumPy makes up names slowly
        return constant
    return Constant(lambda: constant.numpy().astype(np.float32), constant.shape, np.dtype(np.float32))


def rounded_constant(constant: Constant, dtype: DType) -> Constant:
    """A float32 constant with its values rounded to a 16-bit type; still float32."""
    return Constant(
        lambda: constant.numpy().astype(dtype.numpy).astype(np.float32), constant.shape, np.dtype(np.float32)
    )
