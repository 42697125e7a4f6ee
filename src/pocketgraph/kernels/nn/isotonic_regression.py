"""Isotonic regression: the falling sequence nearest to another one, as some losses and rankings use it."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.registry import kernel


@kernel("IsotonicRegression")
def isotonic_regression(input: Array, *, output_dtype: DType = FLOAT) -> tuple[Array, Array]:
    """(values, int32 number of the piece that each belongs to), by pooling neighbours that rise along the last axis.

    Neighbours that are equal, or NaN, stay pieces of their own.
    """
    length = input.shape[-1] if input.ndim else 1
    rows = input.reshape(input.size // length if length else 0, length)
    values = np.empty(rows.shape, np.float64)
    pieces = np.empty(rows.shape, np.int32)
    for number, row in enumerate(rows.astype(np.float64).tolist()):
        sums: list[float] = []
        counts: list[int] = []
        for value in row:
            total, count = value, 1
            while sums and sums[-1] / counts[-1] < total / count:
                total, count = total + sums.pop(), count + counts.pop()
            sums.append(total)
            counts.append(count)
        values[number] = np.repeat(np.divide(sums, counts), counts)
        pieces[number] = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    return values.reshape(input.shape).astype(output_dtype.numpy), pieces.reshape(input.shape)
