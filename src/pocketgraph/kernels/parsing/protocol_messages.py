"""DecodeProtoV2: fields of serialized protocol buffer messages as tensors; so TF-Ranking's models take examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.budgets import timed
from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.kernels.arrays import Array, reserve, strings
from pocketgraph.kernels.parsing import message_types as kinds
from pocketgraph.kernels.parsing.message_types import MessageField, message_fields
from pocketgraph.kernels.registry import kernel
from pocketgraph.protobuf import wire

Bytes = bytes  # the op's input has the name
INLINE = b"bytes://"
TYPES = {
    kinds.DOUBLE: ("double",), kinds.FLOAT: ("float", "double"), kinds.INT64: ("int64",), kinds.UINT64: ("uint64",),
    kinds.INT32: ("int32", "int64"), kinds.FIXED64: ("uint64",), kinds.FIXED32: ("uint32",), kinds.BOOL: ("bool",),
    kinds.UINT32: ("uint32",), kinds.ENUM: ("int32",), kinds.SFIXED32: ("int32", "int64"), kinds.SFIXED64: ("int64",),
    kinds.SINT32: ("int32", "int64"), kinds.SINT64: ("int64",), **dict.fromkeys(kinds.TEXTS, ("string",)),
}  # fmt: skip
"""The types that a field can have as a tensor."""
FIXED = {
    kinds.DOUBLE: "<f8", kinds.FLOAT: "<f4", kinds.FIXED64: "<u8", kinds.FIXED32: "<u4", kinds.SFIXED32: "<i4",
    kinds.SFIXED64: "<i8",
}  # fmt: skip
"""How numbers of a fixed length are laid out."""


@kernel("DecodeProtoV2")
def decode_proto(
    bytes: Array,
    *,
    message_type: str,
    field_names: Sequence[str],
    output_types: Sequence[DType],
    descriptor_source: str | Bytes = "local://",
    message_format: str = "binary",
) -> tuple[Array, ...]:
    """(sizes, one tensor a field): how often each field stands in each message, int32 (…, fields), and its values.

    A field's tensor is as long in its last dimension as the message that has most of it, and at least 1; the others are
    filled up with the field's default. A field that is not repeated has the last of its values;
    what is packed there counts as one, and stands for the default.

    Raises:
        RunError: a message is damaged, a field or its type is not there, or ``descriptor_source`` is no
            FileDescriptorSet behind ``bytes://``.
    """
    if message_format != "binary":
        raise RunError(f"messages in the format '{message_format}' are not read, binary ones are")
    source = descriptor_source.encode() if isinstance(descriptor_source, str) else descriptor_source
    if not source.startswith(INLINE):
        raise RunError(
            f"No descriptor found for message type {message_type}: it is in TensorFlow or lies in another file",
            hint="feed what comes out of it, or save the graph with its types in descriptor_source (bytes://…)",
        )
    if not bytes.size:
        raise RunError("Bufs argument must contain at least one value")
    known = message_fields(source[len(INLINE) :], message_type)
    wanted = [_wanted(known, name, message_type, kind) for name, kind in zip(field_names, output_types, strict=True)]
    by_number: dict[int, MessageField] = {field.number: field for field in wanted}
    found = [_values(message, by_number) for message in timed(bytes.ravel().tolist())]
    sizes = np.array([[len(values[field.number]) for field in wanted] for values in found], np.int32)
    columns = (
        _column([values[field.number] for values in found], field, kind, bytes.shape)
        for field, kind in zip(wanted, output_types, strict=True)
    )
    return sizes.reshape(*bytes.shape, len(wanted)), *columns


def _wanted(known: dict[str, MessageField], name: str, message: str, kind: DType) -> MessageField:
    if name not in known:
        raise RunError(f"Unknown field: {name} in message type {message}")
    if kind.name not in TYPES.get(known[name].kind, ()):
        raise RunError(f"Unexpected output type for {message}.{name}: {kind.name}")
    return known[name]


def _values(message: Bytes, wanted: dict[int, MessageField]) -> dict[int, list[Any]]:
    """By field number the values that a message has of it."""
    found: dict[int, list[Any]] = {number: [] for number in wanted}
    alone: set[int] = set()
    try:
        for number, form, payload in wire.payloads(message):
            field = wanted.get(number)
            if field is None:
                continue
            values = _read(field.kind, form, payload)
            if field.is_repeated:
                found[number] += values
            elif form != wire.LEN or field.kind in kinds.TEXTS:
                found[number] = values or found[number]
                alone.update([number] * len(values))
            elif number in alone:
                raise RunError(f"the field {field.name}, which is not repeated, has a value and then a packed run")
            elif values:  # TensorFlow counts it, and then lays the default over it
                found[number] = [field.default]
    except ValueError as error:
        raise RunError(f"a message is damaged: {error}") from error
    return found


def _read(kind: int, form: int, payload: Any) -> list[Any]:
    """The values of a field's payload; none where it has the form of another type."""
    if kind in kinds.TEXTS:
        return [payload] if form == wire.LEN else []
    if kind in FIXED:
        layout = np.dtype(FIXED[kind])
        alone = wire.FIXED64 if layout.itemsize == 8 else wire.FIXED32
        return np.frombuffer(payload, layout).tolist() if form in (alone, wire.LEN) else []
    if form == wire.LEN:
        return [_number(kind, value) for value in wire.packed_varints(payload, 0, len(payload)).tolist()]
    return [_number(kind, payload)] if form == wire.VARINT else []


def _number(kind: int, value: int) -> int | bool:
    if kind in (kinds.INT32, kinds.ENUM):
        return wire.int32(value)
    if kind in (kinds.UINT32, kinds.SINT32):
        value &= 0xFFFF_FFFF
    if kind in (kinds.SINT32, kinds.SINT64):
        return value >> 1 ^ -(value & 1)
    if kind == kinds.BOOL:
        return value != 0
    return wire.signed(value) if kind == kinds.INT64 else value


def _column(rows: list[list[Any]], field: MessageField, kind: DType, batch: tuple[int, ...]) -> Array:
    longest = max(1, *map(len, rows))
    shape = reserve((*batch, longest), np.dtype(object) if kind.name == "string" else kind.numpy)
    filled = [value for row in rows for value in (*row, *[field.default] * (longest - len(row)))]
    return strings(filled, shape) if kind.name == "string" else np.array(filled, kind.numpy).reshape(shape)
