"""ParseSingleSequenceExample: one SequenceExample, read as protobuf reads it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.graph import DType, Shape
from pocketgraph.kernels.arrays import Array, reserve
from pocketgraph.kernels.parsing.record_batches import Wanted, listed, shown, texts
from pocketgraph.kernels.parsing.sequence_examples import check_defaults, counted, flat, full, missing
from pocketgraph.kernels.parsing.sequence_records import merged_maps, merged_steps, merged_values
from pocketgraph.kernels.registry import kernel
from pocketgraph.protobuf.wire import WireError


def of_type(feature: bytes, dtype: DType, place: str, may_be_unset: bool) -> Array:
    """The values of a feature of this type.

    Raises:
        ValueError: it is of another type, or of none and that may not be.
        WireError: it cannot be read.
    """
    kind, values = merged_values(feature)
    if kind is None and may_be_unset:
        return np.empty(0, dtype.numpy)
    if kind is not dtype:
        raise ValueError(f"{place}.  Data types don't match. Expected type: {dtype.name}")
    return values


def row(values: Array, dims: tuple[int, ...], name: str, key: bytes, step: int) -> Array:
    """Raises ValueError: the values do not fill the shape."""
    if values.size != int(np.prod(dims, dtype=np.int64)):
        numbers = {"f": "float", "i": "int64"}.get(values.dtype.kind)
        place = f"Name: {name}, Key{':' if numbers else ''} {shown(key)}, Index: {step}"
        size = f"{'values' if numbers else 'Values'} size: {values.size}"
        raise ValueError(
            f"{place}.  Number of {numbers or 'bytes'} values != expected.  {size} but output shape: {listed(dims)}"
        )
    return values.reshape(dims)


@kernel("ParseSingleSequenceExample")
def parse_single_sequence_example(
    serialized: Array,
    feature_list_dense_missing_assumed_empty: Array,
    *keys_and_defaults: Array,
    Ncontext_sparse: int = 0,
    Ncontext_dense: int = 0,
    Nfeature_list_sparse: int = 0,
    Nfeature_list_dense: int = 0,
    context_sparse_types: Sequence[DType] = (),
    Tcontext_dense: Sequence[DType] = (),
    feature_list_dense_types: Sequence[DType] = (),
    context_dense_shapes: Sequence[Shape] = (),
    feature_list_sparse_types: Sequence[DType] = (),
    feature_list_dense_shapes: Sequence[Shape] = (),
) -> tuple[Array, ...]:
    """(context sparse indices…, values…, shapes…, context dense…, then of the steps likewise) of one record.

    Indices are [values, 1] in the context and [values, 2] (step, place) in the steps; a dense feature of the steps is
    [steps, *shape]. The last input is the record's name.
    """
    if serialized.ndim != 0:
        raise ValueError(f"Expected serialized to be a scalar, got shape: {listed(serialized.shape)}")
    may_miss = feature_list_dense_missing_assumed_empty
    if may_miss.ndim != 1:
        raise ValueError(
            f"Expected feature_list_dense_missing_assumed_empty to be a vector, got shape: {listed(may_miss.shape)}"
        )
    rest = list(keys_and_defaults)
    groups = []
    for what, count in (
        ("context_sparse_keys", Ncontext_sparse),
        ("context_dense_keys", Ncontext_dense),
        ("feature_list_sparse_keys", Nfeature_list_sparse),
        ("feature_list_dense_keys", Nfeature_list_dense),
    ):
        for number, key in enumerate(rest[:count]):
            if key.ndim != 0:
                raise ValueError(f"Expected {what}[{number}] to be a scalar, got shape: {listed(key.shape)}")
        groups.append([texts(key)[0] for key in rest[:count]])
        rest = rest[count:]
    if not rest:
        raise ValueError("the name of the record (debug_name) is not among the inputs")
    *defaults, debug_name = rest
    context = Wanted(groups[0], context_sparse_types, groups[1], Tcontext_dense, context_dense_shapes)
    steps = Wanted(groups[2], feature_list_sparse_types, groups[3], feature_list_dense_types, feature_list_dense_shapes)
    for wanted in (context, steps):
        wanted.check_types()
    check_defaults(defaults, context_dense_shapes, "def_value", "context_dense_shapes_")
    name = shown(texts(debug_name)[0]) if debug_name.size else "<unknown>"
    record = serialized.item()
    try:
        features, lists = merged_maps(record)
        return (*of_context(features, name, context, defaults), *of_steps(lists, name, steps, set(texts(may_miss))))
    except WireError:
        raise ValueError(f"Could not parse example input, value: '{shown(record)}'") from None


def of_context(features: dict[bytes, bytes], name: str, wanted: Wanted, defaults: Sequence[Array]) -> tuple[Array, ...]:
    """(sparse indices…, values…, shapes…, dense values…) of the context."""
    dense = []
    for number, (key, dtype, default) in enumerate(zip(wanted.dense, wanted.dense_types, defaults, strict=True)):
        dims = reserve(full(wanted.dense_shapes[number]), dtype.numpy)
        if key in features:
            values = of_type(features[key], dtype, f"Name: {name}, Context feature: {shown(key)}", may_be_unset=False)
            dense.append(row(values, dims, name, key, 0))
        elif default.size or 0 in dims:
            dense.append(default.reshape(dims))
        else:
            raise ValueError(f"Name: {name}, Context feature '{shown(key)}' is required but could not be found.")
    sparse = [
        of_type(features.get(key, b""), dtype, f"Name: {name}, Context feature: {shown(key)}", may_be_unset=True)
        for key, dtype in zip(wanted.sparse, wanted.sparse_types, strict=True)
    ]
    indices = [counted([values.size])[:, None] for values in sparse]
    return (*indices, *sparse, *(np.array([values.size], np.int64) for values in sparse), *dense)


def of_steps(lists: dict[bytes, bytes], name: str, wanted: Wanted, may_miss: set[bytes]) -> tuple[Array, ...]:
    """(sparse indices…, values…, shapes…, dense values…) of the steps."""
    dense = []
    for number, (key, dtype) in enumerate(zip(wanted.dense, wanted.dense_types, strict=True)):
        if key not in lists and key not in may_miss:
            raise ValueError(missing(name, key))
        dims = full(wanted.dense_shapes[number])
        features = merged_steps(lists.get(key, b""))
        result = np.empty(reserve((len(features), *dims), dtype.numpy), dtype.numpy)
        for step, feature in enumerate(features):
            place = f"Name: {name}, Feature list: {shown(key)}, Index: {step}"
            step_values = of_type(feature, dtype, place, may_be_unset=False)
            result[step, ...] = row(step_values, dims, name, key, step)
        dense.append(result)
    indices, values, shapes = [], [], []
    for key, dtype in zip(wanted.sparse, wanted.sparse_types, strict=True):
        found = [
            of_type(feature, dtype, f"Name: {name}, Feature List: {shown(key)}, Index: {step}", may_be_unset=True)
            for step, feature in enumerate(merged_steps(lists.get(key, b"")))
        ]
        sizes = [part.size for part in found]
        down = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
        indices.append(np.stack([down, counted(sizes)], axis=1))
        values.append(flat(found, dtype))
        shapes.append(np.array([len(sizes), max(sizes, default=0)], np.int64))
    return (*indices, *values, *shapes, *dense)
