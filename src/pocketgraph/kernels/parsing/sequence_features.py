"""The features of SequenceExamples as tensors: of the context and of the steps, each dense, sparse or ragged.

The error texts are TensorFlow's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pocketgraph.graph import DType, Shape
from pocketgraph.graph.dtype import STRING
from pocketgraph.kernels.arrays import Array, reserve
from pocketgraph.kernels.parsing.column_results import ragged_of, sparse_of
from pocketgraph.kernels.parsing.record_batches import listed, shown
from pocketgraph.kernels.parsing.record_column import RecordColumn
from pocketgraph.kernels.parsing.sequence_records import strict_steps, strict_values
from pocketgraph.kernels.parsing.wanted_features import Wanted
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
