"""What sparse segment sums give back: the gradients of SparseSegmentSum, …Mean and …SqrtN by their data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pocketgraph.kernels.array.gather_scatter import check_indices
from pocketgraph.kernels.arrays import Array, integer, reserve
from pocketgraph.kernels.registry import kernel

DIVISORS: dict[str, Callable[[Array], Array]] = {"Sum": np.ones_like, "Mean": lambda counts: counts, "SqrtN": np.sqrt}
"""By reduction: what a segment of so many rows is divided by."""


def _shares(grad: Array, indices: Array, segment_ids: Array, divisor: Callable[[Array], Array]) -> Array:
    """For each index the gradient that its row of data gets, in double precision."""
    if grad.ndim < 1 or indices.ndim != 1 or segment_ids.shape != indices.shape:
        raise ValueError(f"segment_ids and indices should have same size: {list(segment_ids.shape + indices.shape)}")
    check_indices(segment_ids, grad.shape[0])
    groups = segment_ids.astype(np.int64)
    counts = np.maximum(np.bincount(groups, minlength=grad.shape[0]), 1).astype(np.float64)
    rows = grad.astype(np.float64)[groups]
    return np.asarray(rows / divisor(counts)[groups].reshape(-1, *[1] * (grad.ndim - 1)))


def _to_all_rows(divisor: Callable[[Array], Array]) -> Callable[[Array, Array, Array, Array], Array]:
    def run(grad: Array, indices: Array, segment_ids: Array, output_dim0: Array) -> Array:
        """(output_dim0, …): the gradient by all rows of data."""
        count = integer(output_dim0)
        shares = _shares(grad, indices, segment_ids, divisor)
        check_indices(indices, count)
        total = np.zeros(reserve((count, *grad.shape[1:]), np.float64))
        np.add.at(total, indices.astype(np.int64), shares)
        return total.astype(grad.dtype)

    return run


def _to_used_rows(divisor: Callable[[Array], Array]) -> Callable[[Array, Array, Array, Array], tuple[Array, Array]]:
    def run(grad: Array, indices: Array, segment_ids: Array, dense_output_dim0: Array) -> tuple[Array, Array]:
        """(gradient by the rows that were used, their numbers in rising order)."""
        shares = _shares(grad, indices, segment_ids, divisor)
        check_indices(indices, integer(dense_output_dim0))
        used, places = np.unique(indices, return_inverse=True)
        total = np.zeros((used.size, *grad.shape[1:]))
        np.add.at(total, places.ravel(), shares)
        return total.astype(grad.dtype), used

    return run


for _name, _divisor in DIVISORS.items():
    kernel(f"SparseSegment{_name}Grad")(_to_all_rows(_divisor))
    kernel(f"SparseSegment{_name}GradV2")(_to_used_rows(_divisor))
