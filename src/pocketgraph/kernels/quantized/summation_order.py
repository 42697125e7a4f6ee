"""Float32 sums in the order in which TensorFlow's CPU kernels (Eigen) take them, on which their last digits depend."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.kernels.arrays import Array

F32 = np.float32
LANES = 4
LEAF = 1024 * LANES
"""Longer rows are halved, each half summed by itself."""


def row_sums(rows: Array) -> Array:
    """The sum of each row of a float32 matrix whose rows lie in memory as they are, on one thread.

    Packets of four numbers are added up alternately in two accumulators; their sum, halved and halved again, is added
    to that of the numbers left over.
    """
    count = rows.shape[1]
    if count > LEAF:
        half = LANES * (((count + 1) // 2 + LANES - 1) // LANES)
        return np.asarray(row_sums(rows[:, :half]) + row_sums(rows[:, half:]))
    pairs, packets = count // (2 * LANES) * 2 * LANES, count // LANES * LANES
    lanes = np.zeros((len(rows), 2, LANES), F32)
    if pairs:
        lanes = np.add.accumulate(rows[:, :pairs].reshape(len(rows), -1, 2, LANES), axis=1, dtype=F32)[:, -1]
    first = lanes[:, 0] + rows[:, pairs:packets] if packets > pairs else lanes[:, 0]
    total: Any = first + lanes[:, 1]
    total = total[:, :2] + total[:, 2:]
    total = total[:, 0] + total[:, 1]
    if packets == count:
        return np.asarray(total)
    rest = np.add.accumulate(rows[:, packets:], axis=1, dtype=F32)[:, -1]
    return np.asarray(rest + total)
