"""Batch and Unbatch, between which servers run many requests at once: here each run is a batch of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, integer
from pocketgraph.kernels.registry import kernel

KEY = 1
"""The number of a run, which TensorFlow draws."""


@kernel("Batch")
def batch(*in_tensors: Array, max_batch_size: int, allowed_batch_sizes: Sequence[int] = ()) -> tuple[Array, ...]:
    """(the tensors, batch_index, id): filled up to the next of ``allowed_batch_sizes`` with the first row of each.

    ``batch_index`` is int64 (1, 3): the run's number, where its rows begin and end; ``id`` is the number.
    """
    if any(not tensor.ndim for tensor in in_tensors):
        raise RunError("Batching input tensors must have at least one dimension")
    sizes = {len(tensor) for tensor in in_tensors}
    if len(sizes) > 1:
        raise RunError(f"Batching input tensors must have equal 0th-dimension size, not {sorted(sizes)}")
    size = sizes.pop() if sizes else 0
    if size > max_batch_size:
        raise RunError(f"Task size {size} is larger than maximum input batch size {max_batch_size}")
    if allowed_batch_sizes and allowed_batch_sizes[-1] != max_batch_size:
        raise RunError(f"final entry in allowed_batch_sizes must equal max_batch_size ({max_batch_size})")
    wanted = next((allowed for allowed in allowed_batch_sizes if allowed >= size), size) if size else 0
    index = np.array([[KEY, 0, size]], np.int64)
    rows = np.where(np.arange(wanted) < size, np.arange(wanted), 0)
    return *(tensor[rows] if wanted > size else tensor for tensor in in_tensors), index, np.array(KEY, np.int64)


@kernel("Unbatch")
def unbatch(batched_tensor: Array, batch_index: Array, id: Array) -> Array:
    """The rows of the run ``id``; those of the runs in ``batch_index`` (runs, 3) lie one behind the other."""
    if batch_index.ndim != 2 or batch_index.shape[1] != 3 or not batched_tensor.ndim:
        raise RunError(
            f"batch_index is not (runs, 3) for rows: {list(batch_index.shape)}, {list(batched_tensor.shape)}"
        )
    begin, wanted = 0, integer(id)
    for key, first, last in batch_index.tolist():
        end = begin + last - first
        if first < 0 or last < first or end > len(batched_tensor):
            raise RunError(f"Sum of split sizes must not exceed dim0-size of input tensor ({len(batched_tensor)})")
        if key == wanted:
            return np.asarray(batched_tensor[begin:end])
        begin = end
    raise RunError(f"batch_index has no rows of the run {wanted}: {batch_index[:9, 0].tolist()}")
