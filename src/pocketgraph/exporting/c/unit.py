"""What an operator's emitter is given: places of its operands, kernels, tables and constants to call kernels with."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from pocketgraph.exporting.arena import Buffer, aligned
from pocketgraph.exporting.c.storage import Storage
from pocketgraph.graph import DType
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.program import Operation, Program, Value

MAGIC = b"PGCW"
HEADER = 64  # bytes: the magic, the digest of what follows, zeros
DIGEST = 12  # bytes
SPARE = 64  # bytes at the end: kernels may read whole vectors past a row


class Weights:
    """The constants of a library in one piece of memory, a C array or a mapped file; equal ones are in it once."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = HEADER
        self._places: dict[tuple[bytes, int], int] = {}

    def add(self, array: Array, alignment: int = 16) -> int:
        """Where the array lies, from the beginning."""
        content = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        key = hashlib.sha256(content).digest(), alignment
        if key not in self._places:
            start = aligned(self._size, alignment)
            self._pieces += [bytes(start - self._size), content]
            self._size = start + len(content)
            self._places[key] = start
        return self._places[key]

    def content(self) -> bytes:
        """All bytes, little-endian, a multiple of eight of them."""
        body = b"".join(self._pieces)
        body += bytes(aligned(HEADER + len(body) + SPARE, 8) - HEADER - len(body))
        head = MAGIC + hashlib.sha256(body).digest()[:DIGEST]
        return head + bytes(HEADER - len(head)) + body


C_TYPES = {
    "float": "float", "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "uint16": "uint16_t",
    "int32": "int32_t", "uint32": "uint32_t", "int64": "int64_t", "uint64": "uint64_t", "bool": "uint8_t",
    "double": "double",
}  # fmt: skip
"""The C type of each element type's name."""

LOWEST_INT64 = -(1 << 63)


@dataclass(frozen=True)
class Pointer:
    """A place in a buffer of the arena, ``offset`` bytes from its beginning."""

    buffer: Buffer
    offset: int = 0


@dataclass(frozen=True)
class CConstant:
    """A place in the weights, in bytes."""

    offset: int


Argument: TypeAlias = "Pointer | CConstant | str | int | float"


@dataclass
class KernelCall:
    """One line of the program: a function and what it is called with; or a text, with ``%s`` for each argument."""

    function: str
    arguments: tuple[Argument, ...]
    nodes: tuple[str, ...] = ()
    is_text: bool = False


@dataclass
class Unit:
    """The library in the making.

    Attributes:
        program: what it computes.
        storage: where tensors lie.
        weights: the constants.
        kernels: the kernel files that are needed, in the order in which they were asked for.
        definitions: kernels that macros of those files make, in order.
        tables: the name of each constant structure by its type and content.
        calls: what runs.
        setups: what is made before that, each a call that says whether it went well.
    """

    program: Program
    storage: Storage
    weights: Weights = field(default_factory=Weights)
    kernels: dict[str, None] = field(default_factory=dict)
    definitions: dict[str, None] = field(default_factory=dict)
    tables: dict[tuple[str, str], str] = field(default_factory=dict)
    calls: list[KernelCall] = field(default_factory=list)
    setups: list[KernelCall] = field(default_factory=list)
    operation: Operation | None = None
    step: int = 0

    def use(self, kernel: str) -> None:
        """Takes in a file of kernels."""
        self.kernels[kernel] = None

    def call(self, kernel: str, function: str, *arguments: Argument | Value, definition: str = "") -> None:
        """Calls a function of a kernel file, which ``definition``, a macro call, makes where it is given; tensors are
        given as where they lie."""
        self.use(kernel)
        if definition:
            self.definitions[definition] = None
        nodes = self.operation.nodes if self.operation is not None else ()
        given = tuple([self.at(each) if isinstance(each, Value) else each for each in arguments])
        self.calls.append(KernelCall(function, given, nodes))

    def line(self, text: str, *arguments: Value) -> None:
        """Writes a line of C, with ``%s`` for where each tensor lies."""
        nodes = self.operation.nodes if self.operation is not None else ()
        self.calls.append(KernelCall(text, tuple(map(self.at, arguments)), nodes, is_text=True))

    def set_up(self, kernel: str, function: str, *arguments: Argument) -> None:
        """Calls a function once, when the model is set up."""
        self.use(kernel)
        self.setups.append(KernelCall(function, arguments))

    def at(self, value: Value, offset: int = 0) -> Pointer | CConstant:
        """Where a tensor lies; ``offset`` elements further."""
        buffer = self.storage.buffer(value)
        if buffer is not None:
            return Pointer(buffer, offset * value.dtype.size)
        source = self.storage.constants.get(value, value)
        if source.constant is None:
            raise Unsupported(f"'{value.name}' is nothing that is computed")
        return CConstant(self.constant(source.constant.numpy()).offset + offset * value.dtype.size)

    def constant(self, array: Any, alignment: int = 16) -> CConstant:
        """Where an array of numbers lies among the weights."""
        return CConstant(self.weights.add(np.asarray(array), alignment))

    def scratch(self, size: int) -> Pointer:
        """Memory for this operation only, of ``size`` bytes."""
        return Pointer(self.storage.scratch(size, self.step))

    def table(self, struct: str, fields: Sequence[Any]) -> str:
        """The address of a constant structure; numbers and sequences of numbers are its fields, in order."""
        content = "{" + ", ".join(_field(item) for item in fields) + "}"
        kind = struct.removeprefix("pg_")
        count = sum(1 for other, _ in self.tables if other == struct)
        name = self.tables.setdefault((struct, content), f"{kind}_{count}")
        return f"&{name}"


def _field(item: Any) -> str:
    if isinstance(item, (list, tuple, np.ndarray)):
        return "{" + ", ".join(_field(one) for one in item or [0]) + "}"
    return number(item)


def number(value: Any, kind: Any = np.float32) -> str:
    """A number as C text that reads back to the last bit; one with a point is of ``kind``, float32 or float64."""
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        # C reads -9223372036854775808 as what is one too large for its type, negated.
        return str(int(value)) if int(value) != LOWEST_INT64 else f"({LOWEST_INT64 + 1} - 1)"
    plain = kind(value)
    if np.isinf(plain):
        return "INFINITY" if plain > 0 else "-INFINITY"
    if np.isnan(plain):
        return "NAN"
    text = repr(plain.item()) if plain == 0 else np.format_float_scientific(plain, unique=True)
    text = text if "." in text or "e" in text else f"{text}.0"
    return text if kind is np.float64 else f"{text}F"


def operand(operation: Operation, place: int) -> Value:
    """An operand that must be there.

    Raises:
        Unsupported: it is left out.
    """
    value = operation.inputs[place] if len(operation.inputs) > place else None
    if value is None:
        raise Unsupported(f"{operation.code} without operand {place}")
    return value


def array_of(value: Value | None) -> Array:
    """The elements of an operand that must be known.

    Raises:
        Unsupported: it is computed.
    """
    if value is None or value.constant is None:
        raise Unsupported("an operand must be a constant" if value is None else f"'{value.name}' is computed")
    numbers: Array = value.constant.numpy()
    return numbers


def c_type(dtype: DType) -> str:
    """The C type of an element type.

    Raises:
        Unsupported: C has none that kernels here take.
    """
    if dtype.name not in C_TYPES:
        raise Unsupported(f"elements of the type {dtype.name}")
    return C_TYPES[dtype.name]
