"""Sets in the rows of tensors: differences, intersections and unions of the last axis, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, ints, reserve
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.sparse.sparse_algebra import checked

OPERATIONS = ("a-b", "b-a", "intersection", "union")
Group = tuple[int, ...]
Sets = dict[Group, set[Any]]


def _of_dense(values: Array) -> tuple[Sets, Group]:
    """(the set in each row, the shape of the rows)."""
    if values.ndim < 2:
        raise RunError(f"Shape rank {values.ndim} < 2")
    rows = values.reshape(-1, values.shape[-1]).tolist() if values.size else []
    places = np.ndindex(*values.shape[:-1]) if values.size else iter(())
    return {place: set(row) for place, row in zip(places, rows, strict=True)}, values.shape[:-1]


def _of_sparse(indices: Array, values: Array, shape: Array, validate: bool) -> tuple[Sets, Group]:
    sizes = checked(indices, values, shape)
    if len(sizes) < 2:
        raise RunError(f"Shape rank {len(sizes)} < 2")
    rows = [tuple(row) for row in indices.tolist()]
    if validate and any(a >= b for a, b in pairwise(rows)):
        raise RunError("indices are out of order or repeated")
    found: Sets = {}
    for row, value in zip(rows, values.tolist(), strict=True):
        found.setdefault(row[:-1], set()).add(value)
    return found, sizes[:-1]


def _combined(
    first: tuple[Sets, Group], second: tuple[Sets, Group], operation: str, dtype: np.dtype[Any]
) -> tuple[Array, Array, Array]:
    """(indices, values, shape): the resulting set of each row in rising order."""
    if operation.lower() not in OPERATIONS:
        raise RunError(f"no set operation is called '{operation}' ({', '.join(OPERATIONS)})")
    (left, shape), (right, other) = first, second
    if shape != other:
        raise RunError(f"shapes that do not fit: rows {list(shape)} and {list(other)}")
    places: list[Group] = []
    values: list[Any] = []
    widest = 0
    for group in sorted({*left, *right}):
        a, b = left.get(group, set()), right.get(group, set())
        result = {"a-b": a - b, "b-a": b - a, "intersection": a & b, "union": a | b}[operation.lower()]
        places += [(*group, i) for i in range(len(result))]
        values += sorted(result)
        widest = max(widest, len(result))
    found = np.empty(len(values), dtype=dtype)
    found[:] = values
    indices = np.array(places, dtype=np.int64).reshape(-1, len(shape) + 1)
    return indices, found, np.array([*shape, widest], dtype=np.int64)


@kernel("DenseToDenseSetOperation", "DenseToSparseSetOperation", "SparseToSparseSetOperation")
def set_operation(*sets: Array, set_operation: str, validate_indices: bool = True) -> tuple[Array, Array, Array]:
    """(indices, values, shape) of the operation on each pair of rows of two sets: each a dense tensor, or the indices,
    values and shape of a sparse one."""
    size = 3 if len(sets) == 6 else 1
    first, second = sets[:size], sets[size:]
    dtype = first[size // 2].dtype
    return _combined(_of(first, validate_indices), _of(second, validate_indices), set_operation, dtype)


def _of(parts: Sequence[Array], validate: bool) -> tuple[Sets, Group]:
    return _of_dense(parts[0]) if len(parts) == 1 else _of_sparse(parts[0], parts[1], parts[2], validate)


@kernel("SetSize")
def set_size(set_indices: Array, set_values: Array, set_shape: Array, *, validate_indices: bool = True) -> Array:
    """int32: how many different values each row has."""
    sets, shape = _of_sparse(set_indices, set_values, set_shape, validate_indices)
    result = np.zeros(reserve(ints(shape), np.int32), dtype=np.int32)
    for group, values in sets.items():
        result[group] = len(values)
    return result
