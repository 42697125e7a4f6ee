"""Examples of a small batch read by protobuf's own parser, which is compiled.

A record counts only where it comes out again byte by byte when it is written: what is not as encoders write it (unknown
fields, features given twice, numbers that are not packed) is left to the general way, which knows the errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT, INT64, STRING
from pocketgraph.kernels.arrays import Array, strings
from pocketgraph.kernels.parsing.record_column import RecordColumn

LIST_FIELDS = {STRING: "bytes_list", FLOAT: "float_list", INT64: "int64_list"}
VALUES = {dtype: attrgetter(f"{name}.value") for dtype, name in LIST_FIELDS.items()}


def columns_by_messages(records: Sequence[bytes], wanted: Mapping[bytes, DType]) -> dict[bytes, RecordColumn] | None:
    """The wanted features of a batch; None where the general way is to read them."""
    message = _example()
    if message is None:
        return None
    from google.protobuf.message import DecodeError

    found: list[dict[bytes, Any]] = []
    for record in records:
        try:
            parsed = message.FromString(record)
            parsed.DiscardUnknownFields()
        except DecodeError:
            return None
        if parsed.SerializeToString() != record:
            return None
        entries = parsed.features.entries
        features = {entry.key: entry.value for entry in entries}
        if len(features) != len(entries):
            return None
        found.append(features)
    columns: dict[bytes, RecordColumn] = {}
    for key, dtype in wanted.items():
        column = _column(found, key, dtype)
        if column is None:
            return None
        columns[key] = column
    return columns


def _column(records: Sequence[Mapping[bytes, Any]], key: bytes, dtype: DType) -> RecordColumn | None:
    """One feature of all records; None where a record has it of another type."""
    name, held = LIST_FIELDS[dtype], VALUES[dtype]
    values: list[Any] = []
    counts: list[int] = []
    for features in records:
        feature = features.get(key)
        if feature is None or not feature.HasField(name):
            if feature is not None and feature.WhichOneof("kind") is not None:
                return None
            counts.append(-1)
            continue
        listed = held(feature)[:]
        values += listed
        counts.append(len(listed))
    made: Array = strings(values, (len(values),)) if dtype is STRING else np.array(values, dtype.numpy)
    return RecordColumn(made, np.array(counts, np.int64))


@lru_cache(maxsize=1)
def _example() -> Any:
    """The class of Example messages, with the entries of Features as they lie there; None where protobuf's parser is
    written in Python."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.internal import api_implementation

    if api_implementation.Type() == "python":
        return None
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="pocketgraph_example.proto", package="pocketgraph", syntax="proto2")

    def add(message: Any, name: str, number: int, kind: Any, *, repeated: bool = False) -> Any:
        made = message.field.add(
            name=name, number=number, label=field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
        )
        if isinstance(kind, str):
            made.type, made.type_name = field.TYPE_MESSAGE, f".pocketgraph.{kind}"
        else:
            made.type = kind
        return made

    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (name, kind) in enumerate(
        (("Bytes", field.TYPE_BYTES), ("Float", field.TYPE_FLOAT), ("Int64", field.TYPE_INT64)), 1
    ):
        listed = file.message_type.add(name=f"{name}List")
        values = add(listed, "value", 1, kind, repeated=True)
        if name != "Bytes":
            values.options.packed = True
        add(feature, f"{name.lower()}_list", number, f"{name}List").oneof_index = 0
    entry = file.message_type.add(name="Entry")
    add(entry, "key", 1, field.TYPE_BYTES)
    add(entry, "value", 2, "Feature")
    add(file.message_type.add(name="Features"), "entries", 1, "Entry", repeated=True)
    add(file.message_type.add(name="Example"), "features", 1, "Features")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("pocketgraph.Example"))
