"""tf.Example records: features by name, each a list of strings, floats or integers (tensorflow/core/example)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import STRING
from pocketgraph.protobuf import wire

BYTES, FLOATS, INTS = 1, 2, 3
"""Fields of a Feature (tensorflow/core/example/feature.proto)."""


class RecordFeature(NamedTuple):
    """A feature that a record is to have: its name, the type of its values, and how many; None for any number."""

    key: bytes
    dtype: DType
    size: int | None


def serialized(features: Iterable[tuple[RecordFeature, Sequence[Any]]]) -> bytes:
    """An Example with these values: bytes, floats or integers, as each feature's type is."""
    entries = [
        wire.message_field(1, [wire.bytes_field(1, feature.key), *wire.message_field(2, _list(feature.dtype, values))])
        for feature, values in features
    ]
    return wire.joined(wire.message_field(1, [chunk for entry in entries for chunk in entry]))


def _list(dtype: DType, values: Sequence[Any]) -> list[bytes]:
    if dtype is STRING:
        return [wire.joined(wire.message_field(BYTES, [wire.bytes_field(1, value) for value in values]))]
    if dtype.is_floating:
        packed = np.asarray(values, "<f4").tobytes()
        return [wire.joined(wire.message_field(FLOATS, [wire.bytes_field(1, packed)]))]
    packed = b"".join(wire.varint(int(value)) for value in values)
    return [wire.joined(wire.message_field(INTS, [wire.bytes_field(1, packed)]))]
