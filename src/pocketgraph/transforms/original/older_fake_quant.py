"""FakeQuant as TensorFlow 1.15 computes it: steps are counted from the lower end, later from zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.kernels.quantized.eight_bit_arithmetic import F32, nudged

OLDER_FAKE_QUANTS = frozenset(
    {"FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel"}
)
"""Not a trait: those of which 1.15 gives other last bits than later versions."""


def older_fake_quant(node: Node, inputs: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """What 1.15 gives, as floats in the shape of the first input; these must be inputs that the op takes."""
    values, *ends = inputs
    if not ends:
        ends = [np.array(node.attr("min", -6.0)), np.array(node.attr("max", 6.0))]
    low, high = (end.astype(F32).reshape(() if end.size == 1 else end.shape) for end in ends)
    bottom, top, scale = nudged(low, high, node.attr("num_bits", 8), node.attr("narrow_range", False))
    with np.errstate(all="ignore"):
        inside = np.maximum(np.minimum(values, top), bottom) - bottom
        rounded = np.floor(inside / scale + F32(0.5)) * scale + bottom
    return np.asarray(np.where((low == 0) & (high == 0), F32(0), rounded)).astype(F32)
