"""Rows paired with columns by distance, as detectors pair boxes with what they should find."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, number
from pocketgraph.kernels.registry import kernel


@kernel("BipartiteMatch")
def bipartite_match(distance_mat: Array, num_valid_rows: Array, *, top_k: int = -1) -> tuple[Array, Array]:
    """int32 (rows,), int32 (columns,): the column of each row and the row of each column, -1 without one.

    The nearest pair goes first, then the nearest of what is left (the first of equals), ``top_k`` pairs at most.

    Raises:
        RunError: ``distance_mat`` is no matrix, or more rows are valid than there are.
    """
    if distance_mat.ndim != 2:
        raise RunError(f"distance_mat should be 2-dimensional, not of shape {list(distance_mat.shape)}")
    rows, columns = distance_mat.shape
    valid = int(number(num_valid_rows))
    if valid > rows:
        raise RunError(f"{valid} valid rows of {rows}")
    valid = rows if valid < 0 else valid
    of_row, of_column = np.full(rows, -1, np.int32), np.full(columns, -1, np.int32)
    left = min(valid, columns) if top_k < 0 else min(top_k, valid, columns)
    for place in np.argsort(distance_mat[:valid], axis=None, kind="stable").tolist():
        if not left:
            break
        row, column = divmod(place, columns)
        if of_row[row] < 0 and of_column[column] < 0:
            of_row[row], of_column[column] = column, row
            left -= 1
    return of_row, of_column
