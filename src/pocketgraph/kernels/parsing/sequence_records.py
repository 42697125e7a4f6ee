"""Encoded tf.train.SequenceExample records, walked in place: one as TensorFlow's own parser does, one as protobuf does.

A record is SequenceExample { Features context = 1, FeatureLists feature_lists = 2 }, FeatureLists { map<string,
FeatureList> feature_list = 1 }, FeatureList { repeated Feature feature = 1 }; Features and Feature as in
example_records. https://www.tensorflow.org/api_docs/python/tf/train/SequenceExample

TensorFlow reads a batch with a parser of its own, which is stricter than protobuf (a map entry is a key, then a value,
and nothing else) and looks at the first packed run of numbers alone. It reads the single record of
ParseSingleSequenceExample with protobuf.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT, INT64, STRING
from pocketgraph.kernels.arrays import Array, strings
from pocketgraph.kernels.parsing.example_records import LISTS, kind_of, values_of
from pocketgraph.protobuf.wire import FIXED32, LEN, VARINT, WireError, packed_varints, payloads

CONTEXT, FEATURE_LISTS = 1, 2


def strict_maps(record: bytes) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
    """The encoded Feature of each key of the context, and the encoded FeatureList of each other key.

    Raises:
        WireError: this is no SequenceExample, or a map entry is not a key and a value.
    """
    maps: dict[int, dict[bytes, bytes]] = {CONTEXT: {}, FEATURE_LISTS: {}}
    for number, wire, body in payloads(record):
        if number not in maps or wire != LEN:
            continue
        for entry_number, entry_wire, entry in payloads(body):
            parts = list(payloads(entry)) if (entry_number, entry_wire) == (1, LEN) else []
            if [(n, w) for n, w, _ in parts] != [(1, LEN), (2, LEN)]:
                raise WireError(0, "a map entry is not a key and a value")
            maps[number][parts[0][2]] = parts[1][2]
    return maps[CONTEXT], maps[FEATURE_LISTS]


def strict_values(feature: bytes, dtype: DType) -> Array | None:
    """The values of an encoded Feature, or None when it holds no list of this type that can be read."""
    try:
        return values_of(feature) if kind_of(feature) is dtype else None
    except (ValueError, IndexError, StopIteration):
        return None


def strict_steps(feature_list: bytes) -> list[bytes]:
    """The encoded Features of a FeatureList.

    Raises:
        WireError: it holds anything else.
    """
    steps = []
    for number, wire, feature in payloads(feature_list):
        if (number, wire) != (1, LEN) or len(feature) == 1:
            raise WireError(0, "a FeatureList holds something else")
        steps.append(feature)
    return steps


def merged_maps(record: bytes) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
    """As strict_maps, as protobuf reads them: entries in any order, the last of a key, and what is unknown skipped.

    Raises:
        WireError: this is no SequenceExample, in parts that nobody wants too, or a key is no UTF-8.
    """
    maps: dict[int, dict[bytes, bytes]] = {CONTEXT: {}, FEATURE_LISTS: {}}
    for number, wire, body in payloads(record):
        if number not in maps or wire != LEN:
            continue
        for entry_number, entry_wire, entry in payloads(body):
            if (entry_number, entry_wire) == (1, LEN):
                key, value = b"", b""
                for n, w, payload in payloads(entry):
                    if (n, w) == (1, LEN):
                        key = payload
                    elif (n, w) == (2, LEN):
                        value += payload  # a message that comes twice is one message
                try:
                    key.decode()
                except UnicodeDecodeError:
                    raise WireError(0, "a key is no UTF-8") from None
                for feature in [value] if number == CONTEXT else merged_steps(value):
                    merged_values(feature)
                maps[number][key] = value
    return maps[CONTEXT], maps[FEATURE_LISTS]


def merged_steps(feature_list: bytes) -> list[bytes]:
    return [feature for number, wire, feature in payloads(feature_list) if (number, wire) == (1, LEN)]


def merged_values(feature: bytes) -> tuple[DType | None, Array]:
    """The type of an encoded Feature, None when it has none, and its values, as protobuf reads them.

    Raises:
        WireError: a list is cut off.
    """
    kind: DType | None = None
    body = b""
    for number, wire, payload in payloads(feature):
        if number in LISTS and wire == LEN:
            body = body + payload if kind is LISTS[number] else payload  # of several kinds the last counts
            kind = LISTS[number]
    texts: list[bytes] = []
    numbers: list[int] = []
    raw: list[bytes] = []
    for number, wire, payload in payloads(body):
        if number != 1:
            continue
        if kind is STRING and wire == LEN:
            texts.append(payload)
        elif kind is FLOAT and wire in (FIXED32, LEN):
            if len(payload) % 4:
                raise WireError(0, "a float is cut off")
            raw.append(payload)
        elif kind is INT64 and wire == VARINT:
            numbers.append(payload)
        elif kind is INT64 and wire == LEN:
            numbers += packed_varints(payload, 0, len(payload)).tolist()
    if kind is FLOAT:
        return kind, np.frombuffer(b"".join(raw), "<f4").astype(np.float32)
    if kind is INT64:
        return kind, np.array(numbers, np.uint64).view(np.int64)
    return kind, strings(texts, (len(texts),))
