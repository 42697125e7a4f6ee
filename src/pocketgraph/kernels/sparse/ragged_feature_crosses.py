"""Crosses of categorical features of which each row may have any number: ragged, sparse and dense columns together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.kernels.arrays import Array, ints, strings
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.sparse.feature_crosses import combined, keyed, sparse_column, text


@kernel("RaggedCross")
def ragged_cross(
    *parts: Array, Nsparse: int, input_order: str, hashed_output: bool, num_buckets: int, hash_key: int,
    ragged_values_types: Sequence[DType], dense_types: Sequence[DType], out_values_type: DType,
    out_row_splits_type: DType,
) -> tuple[Array, Array]:  # fmt: skip
    """(values, row splits): texts joined by ``_X_``, or hashes as those of SparseCross.

    ``parts`` are the ragged columns' values, their row splits, the sparse columns' indices, values and shapes, and the
    dense matrices. ``input_order`` has a letter for each column, R, S or D, in the order in which they are crossed.

    Raises:
        RunError: columns of different numbers of rows, an order that does not name each, or splits that are none.
    """
    ragged, rest = len(ragged_values_types), list(parts)
    counts = {"R": ragged, "S": Nsparse, "D": len(dense_types)}
    if len(input_order) != sum(counts.values()) or any(input_order.count(kind) != n for kind, n in counts.items()):
        raise RunError(f"the order of the columns '{input_order}' does not name {counts}")
    taken = [[rest.pop(0) for _ in range(count)] for count in (ragged, ragged, Nsparse, Nsparse, Nsparse)]
    values, splits, places, held, shapes = taken
    sizes = {len(ends) - 1 for ends in splits} | {ints(shape)[0] for shape in shapes} | {len(d) for d in rest}
    if len(sizes) > 1:
        raise RunError(f"inputs must all have the same batch dimension size, not {sorted(sizes)}")
    rows = sizes.pop() if sizes else 0
    columns = {
        "R": [_ragged_column(*pair) for pair in zip(values, splits, strict=True)],
        "S": [sparse_column(where, what, rows) for where, what in zip(places, held, strict=True)],
        "D": [matrix.tolist() for matrix in rest],
    }
    ordered = [columns[kind].pop(0) for kind in input_order]
    joined = keyed(hash_key, num_buckets) if hashed_output else lambda row: text(row, b"_X_")
    found, widths = combined(rows, ordered, joined)
    ends = np.concatenate([[0], np.cumsum(widths, dtype=np.int64)]).astype(out_row_splits_type.numpy)
    if out_values_type.numpy.kind == "O":
        return strings(found, (len(found),)), ends
    return np.array(found, np.int64), ends


def _ragged_column(values: Array, splits: Array) -> list[list[Any]]:
    ends = ints(splits)
    if values.ndim != 1 or splits.ndim != 1 or not ends or ends[0] or ends[-1] != values.size or any(np.diff(ends) < 0):
        raise RunError(f"Invalid ragged splits: {list(ends)[:9]} for {values.size} values")
    flat = values.tolist()
    return [flat[begin:end] for begin, end in pairwise(ends)]
