"""DecodeProtoV2: fields of serialized protocol buffer messages as tensors; so TF-Ranking's models take examples.

Source of what describes a message: descriptor.proto of the protobuf project (FileDescriptorSet and what is in it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pocketgraph.budgets import timed
from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.kernels.arrays import Array, reserve, strings
from pocketgraph.kernels.registry import kernel
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.c_escapes import unescaped

DOUBLE, FLOAT, INT64, UINT64, INT32, FIXED64, FIXED32, BOOL, STRING, GROUP, MESSAGE, BYTES, UINT32, ENUM = range(1, 15)
SFIXED32, SFIXED64, SINT32, SINT64 = range(15, 19)
TEXTS = (STRING, GROUP, MESSAGE, BYTES)
FILE, INSIDE = (4, 5), (3, 4)
"""The fields with messages and enums, of a file and of a message."""
DEEPEST = 100
REPEATED = 3
"""The label of fields that may stand several times."""


@dataclass(frozen=True)
class MessageField:
    """One field of a message; ``kind`` is its type, a number above, ``default`` what it is where it is missing."""

    name: str
    number: int
    kind: int
    is_repeated: bool
    default: Any


@lru_cache(maxsize=16)
def message_fields(files: bytes, name: str) -> dict[str, MessageField]:
    """The fields of the message ``name`` (with its package), by name.

    Args:
        files: a FileDescriptorSet.
        name: of the message.

    Raises:
        RunError: the files are damaged, or no message has the name.
    """
    enums: dict[str, int] = {}
    found: list[bytes] = []
    try:
        for file in _parts(files, 1):
            _collect(file, _text(file, 2), FILE, name, found, enums)
        if found:
            return {field.name: field for field in (_field(part, enums) for part in _parts(found[0], 2))}
    except ValueError as error:
        raise RunError(f"the descriptors of message type '{name}' are damaged: {error}") from error
    raise RunError(f"No descriptor found for message type {name}")


def _collect(
    part: bytes, scope: str, numbers: tuple[int, int], name: str, found: list[bytes], enums: dict[str, int]
) -> None:
    """Looks through a file or a message, whose messages and enums are in the fields ``numbers``."""
    if scope.count(".") > DEEPEST:
        raise ValueError(f"messages lie more than {DEEPEST} deep in each other")
    for enum in _parts(part, numbers[1]):
        full = f"{scope}.{_text(enum, 1)}".strip(".")
        for value in _parts(enum, 2):
            number = wire.int32(dict(_plain(value)).get(2, 0))
            enums.setdefault(full, number)  # the first one is the default
            enums[f"{full}/{_text(value, 1)}"] = number
    for message in _parts(part, numbers[0]):
        full = f"{scope}.{_text(message, 1)}".strip(".")
        if full == name:
            found.append(message)
        _collect(message, f"{scope}.{_text(message, 1)}", INSIDE, name, found, enums)


def _field(part: bytes, enums: dict[str, int]) -> MessageField:
    numbers = dict(_plain(part))
    kind, is_repeated = numbers.get(5, 0), numbers.get(4) == REPEATED
    given = _parts(part, 7)
    text = given[0].decode() if given and not is_repeated else ""
    enum = _text(part, 6).strip(".")
    default: Any
    if kind in TEXTS:
        default = unescaped(text.encode()) if kind == BYTES else text.encode()
    elif kind == ENUM:
        default = enums.get(f"{enum}/{text}" if text else enum, 0)
    elif kind == BOOL:
        default = text == "true"
    else:
        default = float(text or 0) if kind in (DOUBLE, FLOAT) else int(text or 0)
        default = float(np.float32(default)) if kind == FLOAT else default
    return MessageField(_text(part, 1), numbers.get(3, 0), kind, is_repeated, default)


def _parts(message: bytes, number: int) -> list[bytes]:
    return [bytes(value) for n, kind, value in wire.payloads(message) if (n, kind) == (number, wire.LEN)]


def _plain(message: bytes) -> list[tuple[int, int]]:
    return [(n, value) for n, kind, value in wire.payloads(message) if kind == wire.VARINT]


def _text(message: bytes, number: int) -> str:
    return b"".join(_parts(message, number)[-1:]).decode()


Bytes = bytes  # the op's input has the name
INLINE = b"bytes://"
TYPES = {
    DOUBLE: ("double",), FLOAT: ("float", "double"), INT64: ("int64",), UINT64: ("uint64",),
    INT32: ("int32", "int64"), FIXED64: ("uint64",), FIXED32: ("uint32",), BOOL: ("bool",),
    UINT32: ("uint32",), ENUM: ("int32",), SFIXED32: ("int32", "int64"), SFIXED64: ("int64",),
    SINT32: ("int32", "int64"), SINT64: ("int64",), **dict.fromkeys(TEXTS, ("string",)),
}  # fmt: skip
"""The types that a field can have as a tensor."""
FIXED = {
    DOUBLE: "<f8", FLOAT: "<f4", FIXED64: "<u8", FIXED32: "<u4", SFIXED32: "<i4",
    SFIXED64: "<i8",
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
            elif form != wire.LEN or field.kind in TEXTS:
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
    if kind in TEXTS:
        return [payload] if form == wire.LEN else []
    if kind in FIXED:
        layout = np.dtype(FIXED[kind])
        alone = wire.FIXED64 if layout.itemsize == 8 else wire.FIXED32
        return np.frombuffer(payload, layout).tolist() if form in (alone, wire.LEN) else []
    if form == wire.LEN:
        return [_number(kind, value) for value in wire.packed_varints(payload, 0, len(payload)).tolist()]
    return [_number(kind, payload)] if form == wire.VARINT else []


def _number(kind: int, value: int) -> int | bool:
    if kind in (INT32, ENUM):
        return wire.int32(value)
    if kind in (UINT32, SINT32):
        value &= 0xFFFF_FFFF
    if kind in (SINT32, SINT64):
        return value >> 1 ^ -(value & 1)
    if kind == BOOL:
        return value != 0
    return wire.signed(value) if kind == INT64 else value


def _column(rows: list[list[Any]], field: MessageField, kind: DType, batch: tuple[int, ...]) -> Array:
    longest = max(1, *map(len, rows))
    shape = reserve((*batch, longest), np.dtype(object) if kind.name == "string" else kind.numpy)
    filled = [value for row in rows for value in (*row, *[field.default] * (longest - len(row)))]
    return strings(filled, shape) if kind.name == "string" else np.array(filled, kind.numpy).reshape(shape)
