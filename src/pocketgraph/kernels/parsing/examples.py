"""Ops that parse encoded tf.train.Example records into dense, sparse and ragged tensors.

The error texts are TensorFlow's own, but for a record in them, which is cut short.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pocketgraph.graph import DType, Shape
from pocketgraph.kernels.arrays import Array, strings
from pocketgraph.kernels.parsing.column_results import RecordColumn, dense_of, ragged_of, sparse_of
from pocketgraph.kernels.parsing.example_columns import columns_of
from pocketgraph.kernels.parsing.example_pattern import Memory
from pocketgraph.kernels.parsing.example_records import LIST_NAMES
from pocketgraph.kernels.parsing.record_batches import UNKNOWN, Batch, Wanted, batch_of, encoded, listed, shown, texts
from pocketgraph.kernels.recycled_arrays import recycled
from pocketgraph.kernels.registry import Context, kernel

TOGETHER = "records_together"
"""The pass that reads the records of a batch together."""
BY_PATTERN = "records_by_pattern"
"""The pass that reads records by a regular expression that was learned of earlier ones."""


NO_NAMES = strings([], (0,))


def check_dense(shape: Shape, default: Array, number: int) -> None:
    """Refuses a shape of a dense feature, and a default that does not fit it, in TensorFlow's words.

    Raises:
        ValueError: more than the first dimension is open, or the default does not fit.
    """
    dims = shape.dims
    if dims is None or None in dims[1:]:
        raise ValueError(f"dense_shapes[{number}] has unknown rank or unknown inner dimensions: {shape}")
    if dims and dims[0] is None:
        if default.size != 1:
            raise ValueError(
                f"dense_shape[{number}] is a variable length shape: {listed(dims)}, therefore def_value[{number}] must "
                f"contain a single element (the padding element).  But its shape is: {listed(default.shape)}"
            )
    elif default.size and default.shape != tuple(dims):
        raise ValueError(
            f"def_value[{number}].shape() == {listed(default.shape)} is not compatible with dense_shapes_[{number}] == "
            f"{listed(dims)}"
        )


def misfit(batch: Batch, key: bytes, dtype: DType, shape: Shape, default: Array, counts: Sequence[int]) -> ValueError:
    """The error of the first record whose values, of which it has so many, do not make a dense feature."""
    kind, sizes = LIST_NAMES[dtype], shape.dims or ()
    is_open = bool(sizes) and sizes[0] is None
    size = math.prod(int(dim or 0) for dim in sizes[is_open:])
    misfits = (
        count > 0 and (not size or count % size > 0) if is_open else count != size and (count >= 0 or not default.size)
        for count in counts
    )
    index = [*misfits].index(True)
    count, place = counts[index], batch.place(index, key)
    if is_open and batch.single:
        what = f"number of elements should be divisible by {size}, found {count} instead"
        return ValueError(f"Error while parsing feature with key {shown(key)}: {what}")
    if is_open:
        what = f"Saw {count} values but output shape is: {listed(sizes)}"
        return ValueError(f"{place}Number of {kind} values is not a multiple of stride length. {what}")
    if count < 0:
        who = "" if batch.single else f"Name: {batch.name(index)}, "
        what = f"Feature: {shown(key)} (data type: {dtype.name})"
        return ValueError(f"{who}{what} is required but could not be found.")
    if batch.single:
        return ValueError(f"{place}Can't parse serialized Example: Some {kind}_list slice was not parsed.")
    what = f"Values size: {count} but output shape: {listed(sizes)}"
    return ValueError(f"{place}Number of {kind} values != expected.  {what}")


def parse_together(
    serialized: Array, features: Wanted, defaults: Sequence[Array], memory: Memory | None
) -> tuple[Array, ...] | None:
    """``parse``, of all records at once; None where it takes the general way to know what to do.

    ``memory``: as of ``columns_of``.
    """
    sparse_keys, sparse_types, dense_keys, dense_types, dense_shapes, ragged_keys, ragged_types, split_types = features
    keys = (*sparse_keys, *dense_keys, *ragged_keys)
    types = (*sparse_types, *dense_types, *ragged_types)
    wanted = dict(zip(keys, types, strict=False))
    counts = {len(dense_keys), len(dense_types), len(dense_shapes), len(defaults)}
    is_plain = len(keys) == len(types) == len(wanted) and len(counts) == 1 and len(sparse_keys) == len(sparse_types)
    if not is_plain or not LIST_NAMES.keys() >= set(types):
        return None
    columns = columns_of(serialized.reshape(-1).tolist(), wanted, memory)
    if columns is None:
        return None
    rows: list[Array] = []
    for key, dtype, shape, default in zip(dense_keys, dense_types, dense_shapes, defaults, strict=True):
        whole = dense_of(columns[key], shape, default, dtype)
        if whole is None:
            return None
        rows.append(whole)
    return _outputs(
        [columns[key] for key in sparse_keys], rows, [columns[key] for key in ragged_keys], split_types,
        has_one=not serialized.ndim,
    )  # fmt: skip


def _outputs(
    sparse: Sequence[RecordColumn], dense: Sequence[Array], ragged: Sequence[RecordColumn], splits: Sequence[DType],
    *, has_one: bool,
) -> tuple[Array, ...]:  # fmt: skip
    """All outputs in the order of the ops' signatures; ``has_one``: of a single record, without the axis of records."""
    scattered = [sparse_of(column, has_one=has_one) for column in sparse]
    ragged_rows = [ragged_of(column, kind) for column, kind in zip(ragged, splits, strict=True)]
    if has_one:
        dense = [np.asarray(whole[0]) for whole in dense]
        ragged_rows = [(values, kept[:0]) for values, kept in ragged_rows]
    return (
        *(part for parts in zip(*scattered, strict=True) for part in parts),
        *dense,
        *(part for parts in zip(*ragged_rows, strict=True) for part in parts),
    )


def parse(batch: Batch, wanted: Wanted, defaults: Sequence[Array]) -> tuple[Array, ...]:
    """All outputs in the order of the ops' signatures, of values that are found record by record.

    Raises:
        ValueError: a value is missing and there is no default, or the sizes do not fit.
    """
    wanted.check_types()
    if len(defaults) != len(wanted.dense):
        raise ValueError("there are not as many defaults as dense features")
    found: list[Array] = []
    dense = zip(wanted.dense, wanted.dense_types, wanted.dense_shapes, defaults, strict=True)
    for number, (key, dtype, shape, default) in enumerate(dense):
        check_dense(shape, default, number)
        column = batch.column(key, dtype, dense=True)
        whole = dense_of(column, shape, default, dtype)
        if whole is None:
            raise misfit(batch, key, dtype, shape, default, column.counts().tolist())
        found.append(whole)
    sparse = [batch.column(*each, dense=False) for each in zip(wanted.sparse, wanted.sparse_types, strict=True)]
    ragged = [batch.column(*each, dense=False) for each in zip(wanted.ragged, wanted.ragged_types, strict=True)]
    return _outputs(sparse, found, ragged, wanted.split_types, has_one=batch.single)


LEAST_KEPT = 1 << 18
"""Bytes of a feature's numbers in a batch, whose memory is used again: the allocator may give back what is larger."""


def _memory(context: Context | None, wanted: Wanted) -> Memory | None:
    """Where large features of a session's batches go, in these shapes; None outside of sessions: nothing is learned
    there."""
    if context is None:
        return None

    def memory(key: bytes, records: int, each: int, dtype: Any) -> Array:
        dims = (wanted.dense_shapes[wanted.dense.index(key)].dims if key in wanted.dense else None) or ()
        fixed = [size for size in dims if size is not None]
        shape = (records, *fixed) if len(fixed) == len(dims) and math.prod(fixed) == each else (records * each,)
        return recycled(context, shape, dtype, part=key, least=LEAST_KEPT)

    return memory


@kernel("ParseExample")
def parse_example(
    serialized: Array,
    names: Array,
    *keys_and_defaults: Array,
    Nsparse: int,
    Ndense: int,
    sparse_types: Sequence[DType],
    Tdense: Sequence[DType],
    dense_shapes: Sequence[Shape],
    context: Context | None = None,
) -> tuple[Array, ...]:
    """(sparse indices…, sparse values…, sparse shapes…, dense values…) of a vector of records."""
    if serialized.ndim != 1:
        raise ValueError(f"Expected serialized to be a vector, got shape: {listed(serialized.shape)}")
    keys = [key.item() if key.size == 1 else b"".join(texts(key)) for key in keys_and_defaults[: Nsparse + Ndense]]
    wanted = Wanted(keys[:Nsparse], sparse_types, keys[Nsparse:], Tdense, dense_shapes)
    return _parsed(serialized, names, wanted, keys_and_defaults[Nsparse + Ndense :], context)


def _parsed(
    serialized: Array, names: Array, wanted: Wanted, defaults: Sequence[Array], context: Context | None
) -> tuple[Array, ...]:
    called = texts(names)
    together = None
    if not called or (len(called) == serialized.size and called[0] != UNKNOWN):
        together = parse_together(serialized, wanted, defaults, _memory(context, wanted))
    return together if together is not None else parse(batch_of(serialized, called), wanted, defaults)


@kernel("ParseExampleV2")
def parse_example_v2(
    serialized: Array,
    names: Array,
    sparse_keys: Array,
    dense_keys: Array,
    ragged_keys: Array,
    *dense_defaults: Array,
    sparse_types: Sequence[DType],
    Tdense: Sequence[DType],
    dense_shapes: Sequence[Shape],
    ragged_value_types: Sequence[DType],
    ragged_split_types: Sequence[DType],
    context: Context | None = None,
) -> tuple[Array, ...]:
    """As ParseExample, then ragged values… and ragged row splits…; ``serialized`` may be a single record."""
    if serialized.ndim > 1:
        raise ValueError(f"Expected serialized to be a scalar or vector, got shape: {listed(serialized.shape)}")
    wanted = Wanted(
        texts(sparse_keys), sparse_types, texts(dense_keys), Tdense, dense_shapes,
        texts(ragged_keys), ragged_value_types, ragged_split_types,
    )  # fmt: skip
    return _parsed(serialized, names, wanted, dense_defaults, context)


def _one_by_one(parsing: Callable[..., tuple[Array, ...]]) -> Callable[..., tuple[Array, ...]]:
    """A kernel that reads no records together: it does not where all have the name of those without."""

    def parsed(serialized: Array, names: Array, *inputs: Array, **attributes: Any) -> tuple[Array, ...]:
        names = names if names.size else strings([UNKNOWN] * serialized.size, serialized.shape)
        return parsing(serialized, names, *inputs, **attributes)

    return parsed


def _unlearned(parsing: Callable[..., tuple[Array, ...]]) -> Callable[..., tuple[Array, ...]]:
    """A kernel that reads no records by a pattern of earlier ones."""

    def parsed(*inputs: Array, context: Context | None = None, **attributes: Any) -> tuple[Array, ...]:
        return parsing(*inputs, **attributes)

    return parsed


parse_example.without = {  # type: ignore[attr-defined]
    BY_PATTERN: _unlearned(parse_example),
    TOGETHER: _one_by_one(parse_example),
}
parse_example_v2.without = {  # type: ignore[attr-defined]
    BY_PATTERN: _unlearned(parse_example_v2),
    TOGETHER: _one_by_one(parse_example_v2),
}


@kernel("ParseSingleExample")
def parse_single_example(
    serialized: Array,
    *dense_defaults: Array,
    sparse_keys: Sequence[str | bytes],
    dense_keys: Sequence[str | bytes],
    sparse_types: Sequence[DType],
    Tdense: Sequence[DType],
    dense_shapes: Sequence[Shape],
) -> tuple[Array, ...]:
    """(sparse indices…, sparse values…, sparse shapes…, dense values…) of one record."""
    if serialized.ndim != 0:
        raise ValueError(f"Expected serialized to be a scalar, got shape: {listed(serialized.shape)}")
    wanted = Wanted(encoded(sparse_keys), sparse_types, encoded(dense_keys), Tdense, dense_shapes)
    return _parsed(serialized, NO_NAMES, wanted, dense_defaults, None)


def _of_one_apart(serialized: Array, *dense_defaults: Array, **attributes: Any) -> tuple[Array, ...]:
    """ParseSingleExample, feature by feature."""
    keys = [strings(encoded(attributes.pop(which)), (-1,)) for which in ("sparse_keys", "dense_keys")]
    none: dict[str, Any] = {"ragged_value_types": (), "ragged_split_types": ()}
    return _one_by_one(parse_example_v2)(serialized, NO_NAMES, *keys, NO_NAMES, *dense_defaults, **attributes, **none)


parse_single_example.without = {TOGETHER: _of_one_apart}  # type: ignore[attr-defined]
