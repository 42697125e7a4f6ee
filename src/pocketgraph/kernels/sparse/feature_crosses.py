"""Crosses of categorical features: every combination of a row's values, as joined texts or as hashes;
of sparse and of ragged rows, and as ``tf.contrib.layers`` made them, with an older hash."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from pocketgraph.budgets import check_memory, check_time
from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import INT64, STRING
from pocketgraph.kernels.arrays import Array, integer, ints, strings
from pocketgraph.kernels.murmur_hash import GOLDEN_RATIO, MASK, MULTIPLIER, SEED
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.text.hashing import CATEGORIES, fingerprint64
from pocketgraph.kernels.text.keyed_hashing import sip_hash

LARGEST = 2**63 - 1
SEEN = 4
"""Bytes of an int64 of a sparse column that SparseCrossHashed looks at: the original takes the type code's size."""
MOST = 1 << 24
"""Combinations of one op; a few columns of many values each would otherwise fill the memory."""
ROW = 64  # bytes that Python needs for a short list or text


def _mixed(value: int) -> int:
    return value ^ value >> 47


@lru_cache(maxsize=CATEGORIES)
def joined(first: int, second: int) -> int:
    """The 64-bit fingerprint of two fingerprints one behind the other, as TensorFlow joins them."""
    result = first ^ MULTIPLIER ^ _mixed(second * MULTIPLIER & MASK) * MULTIPLIER & MASK
    result = result * MULTIPLIER & MASK
    return _mixed(_mixed(result) * MULTIPLIER & MASK)


def _columns(parts: Sequence[Array], count: int) -> tuple[int, list[list[list[Any]]]]:
    """(rows, for each column the values of each row): ``count`` sparse columns, the others dense."""
    indices, rest = parts[:count], parts[count:]
    values, shapes, dense = rest[:count], rest[count : 2 * count], rest[2 * count :]
    for shape in shapes:
        if shape.shape != (2,):
            raise RunError(f"the shape of a sparse matrix is two numbers, not {shape.tolist()}")
    sizes = {ints(shape)[0] for shape in shapes} | {column.shape[0] for column in dense}
    if len(sizes) > 1:
        raise RunError(f"all columns must have the same number of rows, not {sorted(sizes)}")
    rows = sizes.pop() if sizes else 0
    columns = [sparse_column(places, held, rows) for places, held in zip(indices, values, strict=True)]
    columns += [column.tolist() for column in dense]
    return rows, columns


def sparse_column(places: Array, held: Array, rows: int) -> list[list[Any]]:
    """The values of each row of a sparse matrix.

    Raises:
        RunError: the indices do not fit the values, or a row is outside.
    """
    check_memory(ROW * rows, f"a matrix of {rows:,} rows")
    column: list[list[Any]] = [[] for _ in range(rows)]
    if places.ndim != 2 or places.shape != (held.size, 2):
        raise RunError(f"indices of shape {list(places.shape)} for {held.size} values of a matrix")
    for row, value in zip(places[:, 0].tolist(), held.tolist(), strict=True):
        if not 0 <= row < rows:
            raise RunError(f"the row {row} is outside [0, {rows})")
        column[row].append(value)
    return column


def combined(
    rows: int, columns: Sequence[Sequence[Sequence[Any]]], combine: Callable[[Sequence[Any]], Any]
) -> tuple[list[Any], list[int]]:
    """(every combination of each row's values, one row behind the other; how many each row has)."""
    found: list[Any] = []
    widths = []
    for row in range(rows):
        here = [column[row] for column in columns]
        widths.append(math.prod([len(values) for values in here]))
        if len(found) + widths[-1] > MOST:
            raise RunError(f"more than {MOST:,} combinations")
        check_memory(ROW * (len(found) + widths[-1]), "every combination of the columns")
        check_time()
        found += map(combine, itertools.product(*here))
    return found, widths


def _crossed(
    parts: Sequence[Array], count: int, combine: Callable[[Sequence[Any]], Any]
) -> tuple[Array, list[Any], Array]:
    rows, columns = _columns(parts, count)
    found, widths = combined(rows, columns, combine)
    places = [(row, number) for row, width in enumerate(widths) for number in range(width)]
    shape = np.array([rows, max(widths, default=0)], np.int64)
    return np.array(places, np.int64).reshape(-1, 2), found, shape


def text(values: Sequence[Any], separator: bytes) -> bytes:
    """The values as one text."""
    return separator.join(value if isinstance(value, bytes) else b"%d" % value for value in values)


def _number(value: Any) -> int:
    return fingerprint64(value) if isinstance(value, bytes) else value & MASK


@kernel("SparseCross")
def sparse_cross(*parts: Array, N: int, num_buckets: int, hash_key: int, out_type: DType) -> tuple[Array, Array, Array]:
    """(indices, values, shape): texts joined by ``_X_``, or hashes modulo ``num_buckets``."""
    if out_type is STRING:  # whatever hashed_output says
        places, found, shape = _crossed(parts, N, lambda values: text(values, b"_X_"))
        return places, strings(found, (len(found),)), shape

    places, found, shape = _crossed(parts, N, keyed(hash_key, num_buckets))
    return places, np.array(found, np.int64), shape


def keyed(key: int, buckets: int) -> Callable[[Sequence[Any]], int]:
    """What makes one number below ``buckets`` (any, when that is 0) of values, from ``key`` on."""

    def hashed(values: Sequence[Any]) -> int:
        result = key & MASK
        for value in values:
            result = joined(result, _number(value))
        return result % (buckets if buckets > 0 else LARGEST)

    return hashed


@kernel("SparseCrossV2")
def sparse_cross_v2(*parts: Array, N: int) -> tuple[Array, Array, Array]:
    """Texts joined by the last input."""
    separator = parts[-1].item()
    places, found, shape = _crossed(parts[:-1], N, lambda values: text(values, separator))
    return places, strings(found, (len(found),)), shape


@kernel("SparseCrossHashed")
def sparse_cross_hashed(*parts: Array, N: int) -> tuple[Array, Array, Array]:
    """Hashes; a strong one of texts is keyed by the salt."""
    buckets, strong, salt = integer(parts[-3]), bool(parts[-2]), [v & MASK for v in ints(parts[-1])]

    def number(value: Any, column: int) -> int:
        if not strong and column >= N:
            return _number(value)
        data = value if isinstance(value, bytes) else struct.pack("<Q", value & MASK)[:SEEN]
        return sip_hash(data, salt[0], salt[1]) if strong else fingerprint64(data)

    def hashed(values: Sequence[Any]) -> int:
        result = number(values[0], 0) if values else 0
        for column, value in enumerate(values[1:], 1):
            result = joined(result, number(value, column))
        return result % (buckets if buckets > 0 else LARGEST)

    places, found, shape = _crossed(parts[:-3], N, hashed)
    return places, np.array(found, np.int64), shape


SIGN = 1 << 63


def _combined(first: int, second: int) -> int:
    """The older way to make one 64-bit hash of two; the shift to the right keeps the sign, as in the original."""
    signed = first - (SIGN << 1) if first & SIGN else first
    return first ^ (second + GOLDEN_RATIO + (first << 10 & MASK) + (signed >> 4)) & MASK


@kernel("SparseFeatureCross")
def sparse_feature_cross(*parts: Array, N: int, hashed_output: bool, num_buckets: int) -> tuple[Array, Array, Array]:
    """(indices, values, shape): texts joined by ``_X_``, or hashes modulo ``num_buckets``."""
    if not hashed_output:
        return sparse_cross(*parts, N=N, num_buckets=0, hash_key=0, out_type=STRING)

    def hashed(values: Sequence[Any]) -> int:
        result = SEED
        for value in values:
            result = _combined(result, _number(value))
        return result % (num_buckets if num_buckets > 0 else LARGEST)

    places, found, shape = _crossed(parts, N, hashed)
    return places, np.array(found, np.int64), shape


@kernel("SparseFeatureCrossV2")
def sparse_feature_cross_v2(
    *parts: Array, N: int, hashed_output: bool, num_buckets: int, hash_key: int
) -> tuple[Array, Array, Array]:
    """The same with SparseCross's hash."""
    out_type = INT64 if hashed_output else STRING
    return sparse_cross(*parts, N=N, num_buckets=num_buckets, hash_key=hash_key, out_type=out_type)


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
