"""Facts of the public TensorFlow Lite schema (version 3) that a writer needs: operators, option tables, enum values.

To emit one more operator, complete its row in ``formats/tflite_schema.txt``.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from pocketgraph.formats.tflite_schema import entries
from pocketgraph.graph.record import Record

VERSION = 3
IDENTIFIER = b"TFL3"

TENSOR_TYPES = {
    "float": 0, "half": 1, "int32": 2, "uint8": 3, "int64": 4, "string": 5, "bool": 6, "int16": 7, "complex64": 8,
    "int8": 9, "double": 10, "complex128": 11, "uint64": 12, "uint32": 15, "uint16": 16, "int4": 17,
    "bfloat16": 18, "resource": 13,
}  # fmt: skip
"""TensorType numbers by TensorFlow's dtype names."""

PADDINGS = {"SAME": 0, "VALID": 1}
ACTIVATIONS = {"": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}
MIRROR_PAD_MODES = {"REFLECT": 0, "SYMMETRIC": 1}
CHOICES = {"padding": PADDINGS, "activation": ACTIVATIONS, "mode": MIRROR_PAD_MODES}
"""What the options of an operator may be that are words, and the numbers that files have for them."""


class Field(Record):
    """One field of an option table: its slot and how it is stored (see flatbuffer.py)."""

    slot: int
    kind: str


class OptionFields(Record):
    """An option table: its number in the BuiltinOptions union and its fields by name."""

    number: int
    by_name: dict[str, Field]


class Operator(NamedTuple):
    """A builtin operator: its number, the name of its option table (empty when it has none), and its version.

    The version is the first one that LiteRT still registers; the kernels look at their operands, not at it.
    """

    number: int
    options: str
    version: int = 1


OPTIONS: dict[str, tuple[str, list[str]]] = {name: (number, words) for number, name, *words in entries("options")}
"""The option tables by name: the number, and a ``slot:kind:name`` word for each field that is written."""


@cache
def option_fields(name: str) -> OptionFields:
    """The option table of this name in OPTIONS."""
    number, words = OPTIONS[name]
    fields = [word.split(":") for word in words if word.count(":") == 2]
    return OptionFields(int(number), {field: Field(int(slot), kind) for slot, kind, field in fields})


_FIRST_VERSION = {"BROADCAST_TO": 2}

OPERATORS: dict[str, Operator] = {
    name: Operator(number, written[0].removeprefix("-"), _FIRST_VERSION.get(name, 1))
    for number, (name, *written) in enumerate(entries("operators"))
    if written
}
"""The operators that the lowering emits."""
