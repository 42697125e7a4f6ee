"""Ops that parse batches of encoded tf.train.SequenceExample records: a context of features, and features of each step.

The error texts are TensorFlow's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph import DType, Shape
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.parsing.record_batches import listed, shown, texts
from pocketgraph.kernels.parsing.sequence_features import (
    Sequences,
    check_defaults,
    context_dense,
    context_ragged,
    context_sparse,
    steps_dense,
    steps_ragged,
    steps_sparse,
)
from pocketgraph.kernels.parsing.sequence_records import strict_maps
from pocketgraph.kernels.parsing.wanted_features import Wanted, encoded
from pocketgraph.kernels.registry import kernel
from pocketgraph.protobuf.wire import WireError


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
