"""Ops that parse batches of encoded tf.train.SequenceExample records: a context of features, and features of each step.

The error texts are TensorFlow's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pocketgraph.graph import DType, Shape
from pocketgraph.graph.dtype import STRING
from pocketgraph.kernels.arrays import Array, reserve
from pocketgraph.kernels.parsing.column_results import RecordColumn, ragged_of, sparse_of
from pocketgraph.kernels.parsing.record_batches import Wanted, encoded, listed, shown, texts
from pocketgraph.kernels.parsing.sequence_records import strict_maps, strict_steps, strict_values
from pocketgraph.kernels.registry import kernel
from pocketgraph.protobuf.wire import WireError


@dataclass(frozen=True)
class Sequences:
    """The records of one op: what each has of every key, and what errors call it; ``single``: no batch axis."""

    contexts: Sequence[Mapping[bytes, bytes]]
    lists: Sequence[Mapping[bytes, bytes]]
    names: Sequence[bytes]
    single: bool

    def name(self, index: int) -> str:
        return shown(self.names[index]) if self.names else "<unknown>"

    def context(self, key: bytes, dtype: DType) -> list[Array | None]:
        """The values in each record; None where there are none.

        Raises:
            ValueError: they are of another type.
        """
        found: list[Array | None] = []
        for index, features in enumerate(self.contexts):
            feature = features.get(key)
            values = strict_values(feature, dtype) if feature else None
            if feature and values is None:
                raise ValueError(
                    f"Name: {self.name(index)}, Context feature: {shown(key)}.  Data types don't match. "
                    f"Expected type: {dtype.name}"
                )
            found.append(np.empty(0, dtype.numpy) if values is None and feature is not None else values)
        return found

    def steps(self, key: bytes, dtype: DType) -> list[list[Array] | None]:
        """The values of each step of each record; None where a record has no such list.

        Raises:
            ValueError: they are of another type, or no Features.
        """
        found: list[list[Array] | None] = []
        for index, lists in enumerate(self.lists):
            if key not in lists:
                found.append(None)
                continue
            try:
                features = strict_steps(lists[key])
            except WireError:
                raise ValueError(f"Error in sequence feature {shown(key)} in example {self.name(index)}") from None
            rows = []
            for step, feature in enumerate(features):
                values = strict_values(feature, dtype) if feature else np.empty(0, dtype.numpy)
                if values is None:
                    raise ValueError(
                        f"Name: {self.name(index)}, Feature list: {shown(key)}, Index: {step}.  Data types don't match."
                        f" Expected type: {dtype.name}"
                    )
                rows.append(values)
            found.append(rows)
        return found


def full(shape: Shape) -> tuple[int, ...]:
    """Raises ValueError: a dimension is not known."""
    dims = shape.dims
    if dims is None or None in dims:
        raise ValueError(f"Shape {'<unknown>' if dims is None else listed(dims)} is not fully defined")
    return tuple(int(d or 0) for d in dims)


def flat(parts: Sequence[Array], dtype: DType) -> Array:
    return np.concatenate(parts) if parts else np.empty(0, dtype.numpy)


def counted(counts: Sequence[int]) -> Array:
    """0, 1, … for each count, one after the other."""
    return np.concatenate([np.arange(n, dtype=np.int64) for n in counts] or [np.empty(0, np.int64)])


def ends(counts: Sequence[int], dtype: DType) -> Array:
    return np.cumsum([0, *counts]).astype(dtype.numpy)


def check_defaults(defaults: Sequence[Array], shapes: Sequence[Shape], ours: str, theirs: str) -> None:
    """Raises ValueError: a default that is not empty is not of its feature's shape."""
    if len(defaults) != len(shapes):
        raise ValueError(
            f"Expected len(context_dense_defaults) == len(context_dense_keys) but got: {len(defaults)} vs. "
            f"{len(shapes)}"
        )
    for number, (default, shape) in enumerate(zip(defaults, shapes, strict=True)):
        dims = full(shape)
        if default.size and default.shape != dims:
            raise ValueError(
                f"{ours}[{number}].shape() == {listed(default.shape)} != {theirs}[{number}] == {listed(dims)}"
            )


def context_dense(records: Sequences, wanted: Wanted, defaults: Sequence[Array]) -> list[Array]:
    """[records, *shape] of each dense feature of the context."""
    results = []
    for key, dtype, shape, default in zip(wanted.dense, wanted.dense_types, wanted.dense_shapes, defaults, strict=True):
        dims = full(shape)
        size = int(np.prod(dims, dtype=np.int64))
        found = records.context(key, dtype)
        most = max([default.size, *(values.size for values in found if values is not None)])
        if most != size:
            raise ValueError(
                f"Inconsistent max number of elements for feature {shown(key)}: expected {size}, but found {most}"
            )
        result = np.empty(reserve((len(found), *dims), dtype.numpy), dtype.numpy)
        for index, values in enumerate(found):
            if values is None:
                if not default.size:
                    raise ValueError(
                        f"Feature: {shown(key)} (data type: {dtype.name}) is required but could not be found."
                    )
                values = default
            if values.size != size:
                raise ValueError(f"Unexpected number of elements in example {records.name(index)}")
            result[index, ...] = values.reshape(dims)
        results.append(np.asarray(result[0]) if records.single else result)
    return results


def context_columns(records: Sequences, keys: Sequence[bytes], types: Sequence[DType]) -> list[RecordColumn]:
    """The values of features of the context."""
    return [RecordColumn.of(records.context(key, dtype), dtype) for key, dtype in zip(keys, types, strict=True)]


def context_sparse(records: Sequences, wanted: Wanted) -> list[tuple[Array, ...]]:
    """(indices, values, shapes) of the sparse features of the context; axes: record (in a batch), place."""
    columns = context_columns(records, wanted.sparse, wanted.sparse_types)
    return list(zip(*(sparse_of(column, has_one=records.single) for column in columns), strict=True))


def context_ragged(records: Sequences, wanted: Wanted) -> tuple[list[Array], list[Array]]:
    """(values, row splits) of the ragged features of the context; the splits of a single record are a number that means
    nothing."""
    columns = context_columns(records, wanted.ragged, wanted.ragged_types)
    found = [ragged_of(column, split) for column, split in zip(columns, wanted.split_types, strict=True)]
    splits = [np.zeros((), ends.dtype) if records.single else ends for _, ends in found]
    return [values for values, _ in found], splits


def steps_dense(records: Sequences, wanted: Wanted, may_miss: Sequence[bool]) -> tuple[list[Array], list[Array]]:
    """([records, longest, *shape] filled up with zeros, [records] steps of each) of the dense features of the steps."""
    results, lengths = [], []
    for key, dtype, shape, missing_is_empty in zip(
        wanted.dense, wanted.dense_types, wanted.dense_shapes, may_miss, strict=True
    ):
        dims = full(shape)
        size = int(np.prod(dims, dtype=np.int64))
        found = records.steps(key, dtype)
        most = max((sum(row.size for row in rows) for rows in found if rows), default=0)
        if not size or most % size:
            raise ValueError(
                f"Feature list '{shown(key)}' has an unexpected number of values.  Total values size: {most} is not "
                f"consistent with output shape: {listed((None, *dims))}"
            )
        nothing = b"" if dtype is STRING else 0
        result = np.full(reserve((len(found), most // size, *dims), dtype.numpy), nothing, dtype.numpy)
        for index, rows in enumerate(found):
            if rows is None and not missing_is_empty:
                raise ValueError(missing(records.name(index), key))
            for step, row in enumerate(rows or ()):
                if row.size != size:
                    raise ValueError(
                        f"Name: {records.name(index)}, Key: {shown(key)}, Index: {step}.  Number of values != expected."
                        f"  values size: {row.size} but output shape: {listed(dims)}"
                    )
                result[index, step, ...] = row.reshape(dims)
        counts = np.array([len(rows or ()) for rows in found], np.int64)
        results.append(np.asarray(result[0]) if records.single else result)
        lengths.append(np.asarray(counts[0]) if records.single else counts)
    return results, lengths


def missing(name: str, key: bytes) -> str:
    return (
        f"Name: {name}, Feature list '{shown(key)}' is required but could not be found.  Did you mean to include it in "
        "feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?"
    )


def steps_sparse(records: Sequences, wanted: Wanted) -> tuple[list[Array], list[Array], list[Array]]:
    """(indices, values, shapes) of the sparse features of the steps; axes: record (in a batch), step, place."""
    indices, values, shapes = [], [], []
    for key, dtype in zip(wanted.sparse, wanted.sparse_types, strict=True):
        found = [rows or [] for rows in records.steps(key, dtype)]
        one_by_one = [row for rows in found for row in rows]
        sizes = [row.size for row in one_by_one]
        axes = [np.repeat(counted([len(rows) for rows in found]), sizes), counted(sizes)]
        bounds = [max((len(rows) for rows in found), default=0), max(sizes, default=0)]
        if not records.single:
            axes.insert(
                0, np.repeat(np.arange(len(found), dtype=np.int64), [sum(r.size for r in rows) for rows in found])
            )
            bounds.insert(0, len(found))
        indices.append(np.stack(axes, axis=1))
        values.append(flat(one_by_one, dtype))
        shapes.append(np.array(bounds, np.int64))
    return indices, values, shapes


def steps_ragged(records: Sequences, wanted: Wanted) -> tuple[list[Array], list[Array], list[Array]]:
    """(values, outer splits, inner splits) of the ragged features of the steps; the outer ones of a single
    record are a number that means nothing."""
    values, outer, inner = [], [], []
    for key, dtype, split in zip(wanted.ragged, wanted.ragged_types, wanted.split_types, strict=True):
        found = [rows or [] for rows in records.steps(key, dtype)]
        one_by_one = [row for rows in found for row in rows]
        values.append(flat(one_by_one, dtype))
        outer.append(np.zeros((), split.numpy) if records.single else ends([len(rows) for rows in found], split))
        inner.append(ends([row.size for row in one_by_one], split))
    return values, outer, inner


def parse(
    serialized: Array,
    names: Sequence[bytes],
    context: Wanted,
    defaults: Sequence[Array],
    steps: Wanted,
    may_miss: Sequence[bool],
) -> tuple[Array, ...]:
    """All outputs in the order of ParseSequenceExampleV2's signature; nothing stands for features nobody wants."""
    if serialized.ndim > 1:
        raise ValueError(f"Expected serialized to be a scalar or vector, got shape: {listed(serialized.shape)}")
    check_defaults(defaults, context.dense_shapes, "default_value", "context_dense_shapes")
    if names and len(names) != serialized.size:
        raise ValueError("example_names must be empty or have the correct number of elements")
    context.check("Context")
    steps.check("Sequence")
    found = []
    for index, record in enumerate(serialized.reshape(-1).tolist()):
        try:
            found.append(strict_maps(record))
        except WireError:
            who = shown(names[index]) if names else "<unknown>"
            raise ValueError(f"Invalid protocol message input, example id: {who}") from None
    records = Sequences([c for c, _ in found], [s for _, s in found], names, serialized.ndim == 0)
    dense = context_dense(records, context, defaults)
    sparse = context_sparse(records, context)
    ragged = context_ragged(records, context)
    step_dense = steps_dense(records, steps, may_miss)
    groups = (*sparse, dense, *ragged, *steps_sparse(records, steps), *step_dense, *steps_ragged(records, steps))
    return tuple(array for group in groups for array in group)


@kernel("ParseSequenceExample")
def parse_sequence_example(
    serialized: Array,
    debug_name: Array,
    *context_dense_defaults: Array,
    feature_list_dense_missing_assumed_empty: Sequence[str | bytes],
    context_sparse_keys: Sequence[str | bytes],
    context_dense_keys: Sequence[str | bytes],
    feature_list_sparse_keys: Sequence[str | bytes],
    feature_list_dense_keys: Sequence[str | bytes],
    context_sparse_types: Sequence[DType] = (),
    Tcontext_dense: Sequence[DType] = (),
    feature_list_dense_types: Sequence[DType] = (),
    context_dense_shapes: Sequence[Shape] = (),
    feature_list_sparse_types: Sequence[DType] = (),
    feature_list_dense_shapes: Sequence[Shape] = (),
) -> tuple[Array, ...]:
    """(context sparse indices…, values…, shapes…, context dense…, then of the steps likewise, and lengths…)."""
    dense = encoded(feature_list_dense_keys)
    may_miss = set(encoded(feature_list_dense_missing_assumed_empty))
    context = Wanted(
        encoded(context_sparse_keys), context_sparse_types,
        encoded(context_dense_keys), Tcontext_dense, context_dense_shapes,
    )  # fmt: skip
    steps = Wanted(
        encoded(feature_list_sparse_keys), feature_list_sparse_types,
        dense, feature_list_dense_types, feature_list_dense_shapes,
    )  # fmt: skip
    may_be_missing = [key in may_miss for key in dense]
    return parse(serialized, texts(debug_name), context, context_dense_defaults, steps, may_be_missing)


@kernel("ParseSequenceExampleV2")
def parse_sequence_example_v2(
    serialized: Array,
    debug_name: Array,
    context_sparse_keys: Array,
    context_dense_keys: Array,
    context_ragged_keys: Array,
    feature_list_sparse_keys: Array,
    feature_list_dense_keys: Array,
    feature_list_ragged_keys: Array,
    feature_list_dense_missing_assumed_empty: Array,
    *context_dense_defaults: Array,
    context_sparse_types: Sequence[DType] = (),
    Tcontext_dense: Sequence[DType] = (),
    context_ragged_value_types: Sequence[DType] = (),
    context_ragged_split_types: Sequence[DType] = (),
    context_dense_shapes: Sequence[Shape] = (),
    feature_list_sparse_types: Sequence[DType] = (),
    feature_list_dense_types: Sequence[DType] = (),
    feature_list_ragged_value_types: Sequence[DType] = (),
    feature_list_ragged_split_types: Sequence[DType] = (),
    feature_list_dense_shapes: Sequence[Shape] = (),
) -> tuple[Array, ...]:
    """As ParseSequenceExample, with ragged values…, row splits… of each part; ``serialized`` may be a single record."""
    context = Wanted(
        texts(context_sparse_keys), context_sparse_types,
        texts(context_dense_keys), Tcontext_dense, context_dense_shapes,
        texts(context_ragged_keys), context_ragged_value_types, context_ragged_split_types,
    )  # fmt: skip
    steps = Wanted(
        texts(feature_list_sparse_keys), feature_list_sparse_types,
        texts(feature_list_dense_keys), feature_list_dense_types, feature_list_dense_shapes,
        texts(feature_list_ragged_keys), feature_list_ragged_value_types, feature_list_ragged_split_types,
    )  # fmt: skip
    may_miss = feature_list_dense_missing_assumed_empty.reshape(-1)
    _check_counts(context, steps, len(may_miss))
    return parse(serialized, texts(debug_name), context, context_dense_defaults, steps, [bool(may) for may in may_miss])


def _check_counts(context: Wanted, steps: Wanted, may_miss: int) -> None:
    """Raises ValueError where there are not as many keys as types, or not as many entries of what may be missing."""
    for name, count, types, counted_by in (
        ("context_dense_keys", len(context.dense), context.dense_types, "len(Tcontext_dense)"),
        ("context_sparse_keys", len(context.sparse), context.sparse_types, "Ncontext_sparse"),
        ("context_ragged_keys", len(context.ragged), context.ragged_types, "len(context_ragged_value_types)"),
        ("feature_list_dense_keys", len(steps.dense), steps.dense_types, "Nfeature_list_dense"),
        ("feature_list_dense_missing_assumed_empty", may_miss, steps.dense_types, "Nfeature_list_dense"),
        ("feature_list_sparse_keys", len(steps.sparse), steps.sparse_types, "Nfeature_list_sparse"),
        ("feature_list_ragged_keys", len(steps.ragged), steps.ragged_types, "len(feature_list_ragged_value_types)"),
    ):
        if count != len(types):
            raise ValueError(f"Expected len({name}) to match {counted_by}")
