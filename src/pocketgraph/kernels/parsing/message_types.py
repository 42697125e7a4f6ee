"""Types of protocol buffer messages, as descriptors say them: the fields of a message, with their numbers and defaults.

Source: descriptor.proto of the protobuf project (FileDescriptorSet and what is in it).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
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
