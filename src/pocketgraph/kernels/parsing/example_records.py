"""Encoded tf.train.Example records, walked in place: from bytes to the values of each feature.

A record is Example { Features features = 1 }, Features { map<string, Feature> feature = 1 }, Feature { one of
BytesList bytes_list = 1, FloatList float_list = 2, Int64List int64_list = 3 }, each list { repeated value = 1 }
(packed or not). https://www.tensorflow.org/api_docs/python/tf/train/Example
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT, INT64, STRING
from pocketgraph.kernels.arrays import Array, strings
from pocketgraph.protobuf.wire import FIXED32, LEN, VARINT, WireError, packed_varints, payloads, read_varint

LISTS = {1: STRING, 2: FLOAT, 3: INT64}
"""What each of Feature's fields holds."""
ENTRY, FEATURE = 1 << 3 | LEN, 2 << 3 | LEN
"""The tags of an Example's Features, of an entry and of its key; and of the entry's Feature."""
TEXTS, FLOATS, INTEGERS = (number << 3 | LEN for number in LISTS)
"""The tags of a Feature's lists."""
LIST_NAMES = {STRING: "bytes", FLOAT: "float", INT64: "int64"}


def features_of(record: bytes, emptied: set[bytes] | None = None) -> dict[bytes, bytes]:
    """The encoded Feature of each key; the last of a key that comes twice, and none for one that holds nothing.

    Args:
        record: an encoded Example.
        emptied: takes the keys whose last Feature holds nothing.

    Raises:
        WireError: this is no Example, or an entry is not a key and a Feature.
    """
    found: dict[bytes, bytes] = {}
    for number, wire, features in payloads(record):
        if (number, wire) != (1, LEN):
            continue
        for entry_number, entry_wire, entry in payloads(features):
            if (entry_number, entry_wire) != (1, LEN):
                raise WireError(0, "an entry of another kind")
            parts = sorted(payloads(entry), key=lambda part: part[0])
            if [(n, w) for n, w, _ in parts] != [(1, LEN), (2, LEN)]:
                raise WireError(0, "an entry is not a key and a Feature")
            (_, _, key), (_, _, feature) = parts
            if feature:
                found[key] = feature
            if emptied is not None:
                (emptied.discard if feature else emptied.add)(key)
    return found


def kind_of(feature: bytes) -> DType:
    """The element type of an encoded Feature.

    Raises:
        ValueError: it is none of the three there are.
    """
    number, _ = read_varint(feature, 0, len(feature))
    if number & 7 != LEN or number >> 3 not in LISTS:
        raise ValueError("Unsupported datatype.")
    return LISTS[number >> 3]


def values_of(feature: bytes) -> Array:
    """The values of an encoded Feature, a vector.

    Raises:
        WireError: a list is cut off or of another kind of element.
    """
    kind = kind_of(feature)
    texts: list[bytes] = []
    numbers: list[int] = []
    raw: list[bytes] = []
    _, _, body = next(payloads(feature))  # TensorFlow looks at the first list alone, and in it at the first packed run
    for number, wire, payload in payloads(body):
        if number != 1:
            raise WireError(0, "a list of another kind of element")
        if kind is STRING and wire == LEN:
            texts.append(payload)
        elif kind is FLOAT and wire == FIXED32:
            raw.append(payload)
        elif kind is INT64 and wire == VARINT:
            numbers.append(payload)
        elif kind is not STRING and wire == LEN and not raw and not numbers:
            if kind is INT64:
                numbers = packed_varints(payload, 0, len(payload)).tolist()
            raw.append(payload)
            break
        else:
            raise WireError(0, "a list of another kind of element")
    if kind is STRING:
        return strings(texts, (len(texts),))
    if kind is FLOAT:
        whole = b"".join(raw)
        if any(len(piece) % 4 for piece in raw):
            raise WireError(0, "a list of another kind of element")
        return np.frombuffer(whole, "<f4").astype(np.float32)
    return np.array(numbers, np.uint64).view(np.int64)
