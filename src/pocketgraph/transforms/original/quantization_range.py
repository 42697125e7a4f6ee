"""The range of a tensor's values as the original tool's eight-bit rules find it."""

from __future__ import annotations

from typing import Any

import numpy as np

SMALLEST_NORMAL = np.finfo(np.float32).tiny  # 1.17549435e-38


def value_range(values: np.ndarray[Any, Any]) -> tuple[np.float32, np.float32]:
    """The least and the greatest of some float32 values, NaNs aside.

    The search for the greatest starts at the smallest normal float, so that is what values without a greater one get.
    Of two zeros of different sign the first counts.
    """
    flat = values.reshape(-1)
    low = np.float32(np.fmin.reduce(flat, initial=np.finfo(np.float32).max))
    high = np.float32(np.fmax.reduce(flat, initial=SMALLEST_NORMAL))
    if low == 0:
        low = np.float32(flat[np.argmax(flat == 0)])
    return low, high
