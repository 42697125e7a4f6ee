"""Turns programs into the bytes of a LiteRT model file, one weight at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from pocketgraph.graph.record import Record
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.constants_ahead import computed
from pocketgraph.litert.native.watched_holes import PAGE
from pocketgraph.litert.program import Operation, Program, Quantization, Value, with_own_memory, with_own_outputs
from pocketgraph.litert.writing import flatbuffer, schema

HEAD_OF_A_BUFFER = 512  # bytes: of a file's structure, that there are at most for each constant, but for rare files
READ_AHEAD = 16 << 20  # bytes: more than systems read beyond what is asked for
LIMIT = 2**31 - 2**20  # a FlatBuffer points with 31 bits; bytes beyond are referred to by file offset


class EntrySignature(Record):
    """A named way into a file: which tensors of a program go in and out under which names.

    Attributes:
        key: its name.
        inputs: the program's inputs by their public names.
        outputs: its outputs likewise.
    """

    key: str
    inputs: Mapping[str, Value]
    outputs: Mapping[str, Value]


class Contents(Record):
    """What a file holds beside operators' numbers.

    Attributes:
        programs: one a subgraph; the first is the one that runs when no signature is named. Behind them come the
            programs that their operations run.
        names: of the subgraphs.
        signatures: the signature of each program, in order; perhaps none.
        metadata: named bytes.
        unnamed: values whose names are left out of the file.
        open_shapes: the shape of values with open sizes, -1 for each.
        version: the version of an operator; by default the first one that LiteRT still registers.
        description: of the file.
    """

    programs: Sequence[Program]
    names: Sequence[str] = ("main",)
    signatures: Sequence[EntrySignature] = ()
    metadata: Mapping[str, bytes] = MappingProxyType({})
    unnamed: Collection[Value] = ()
    open_shapes: Mapping[Value, tuple[int, ...]] = MappingProxyType({})
    version: Callable[[Operation], int] | None = None
    description: str = "pocketgraph"


def pieces(
    program: Program,
    unnamed: Collection[Value] = (),
    *,
    open_shapes: Mapping[Value, tuple[int, ...]] = MappingProxyType({}),
    passing: bool = False,
    ahead: bool = True,
) -> Iterator[bytes | memoryview]:
    """The bytes of a file with one program, in order; see ``file_pieces``.

    Args:
        program: what the file holds.
        unnamed: values whose names are left out of the file.
        open_shapes: as for Contents.
        passing, ahead: as for ``file_pieces``.
    """
    return file_pieces(Contents([program], unnamed=unnamed, open_shapes=open_shapes), passing=passing, ahead=ahead)


def file_pieces(contents: Contents, *, passing: bool = False, ahead: bool = True) -> Iterator[bytes | memoryview]:
    """The file's bytes in order. Each constant is computed when its turn comes and let go afterwards.

    Args:
        contents: what the file holds.
        passing: whether whoever asks for the next piece is done with the one before, whose memory is used again.
        ahead: whether another thread makes constants, where they are large.
    """
    layout = _FileLayout(contents)
    outside = sum(constant.nbytes + flatbuffer.Blob.ALIGNMENT for constant in layout.constants) > LIMIT
    blobs = [flatbuffer.Blob(constant.nbytes) for constant in layout.constants]
    if outside:
        head = _layout_outside(layout, blobs, range(len(blobs)))
    else:
        buffers: list[flatbuffer.Table] = [(), *(((0, "blob", blob),) for blob in blobs)]
        head, blobs, _ = flatbuffer.layout(layout.model(buffers), schema.IDENTIFIER)
    yield from _written(head, list(zip(blobs, layout.constants, strict=True)), outside, passing, ahead)


class WeightlessFile:
    """A file of one program at whose end there is room for some constants, in which nothing is written.

    Args:
        program: what the file holds.
        left_out: those constants.

    Attributes:
        first: where the room for constants begins.
        size: of the file with that room, in bytes.
    """

    def __init__(self, program: Program, left_out: Collection[Value]) -> None:
        self._layout = _FileLayout(Contents([program]))
        holes = {self.place(value) for value in left_out}
        blobs = [flatbuffer.Blob(constant.nbytes) for constant in self._layout.constants]
        order = sorted(range(len(blobs)), key=lambda at: at + 1 in holes)
        self._head = _layout_outside(self._layout, blobs, order, len(blobs) - len(holes))
        kept = [at for at in order if at + 1 not in holes]
        self._kept = [(blobs[at], self._layout.constants[at]) for at in kept]
        self.first = min((blobs[at - 1].position for at in holes), default=0)
        end = max((blob.position + blob.size for blob in blobs), default=len(self._head))
        self.size = (-(-end // PAGE) + 1) * PAGE  # the last page is a witness (see WatchedHoles)

    def place(self, value: Value) -> int:
        """The number of a constant's buffer in the file."""
        return self._layout.buffer_of[value]

    def pieces(self, *, ahead: bool = True) -> Iterator[bytes | memoryview]:
        """The file's bytes up to the room, in order; each piece passes when the next one is asked for.

        Args:
            ahead: as for ``file_pieces``.
        """
        return _written(self._head, self._kept, True, True, ahead)


def _written(
    head: bytes, constants: Sequence[tuple[flatbuffer.Blob, Constant]], outside: bool, passing: bool, ahead: bool
) -> Iterator[bytes | memoryview]:
    """A file's head, and the constants behind it in their places."""
    yield head
    position = len(head)
    parts = [constant.in_parts() for _, constant in constants]
    made = computed([part for each in parts for part in each], passing=passing, ahead=ahead)
    for (blob, _), each in zip(constants, parts, strict=True):
        yield bytes(blob.position - position) if outside else flatbuffer.prefix(blob, position)
        for _ in each:
            yield np.ascontiguousarray(next(made)).reshape(-1).view(np.uint8).data
        position = blob.position + blob.size


def _layout_outside(
    layout: _FileLayout, blobs: Sequence[flatbuffer.Blob], order: Sequence[int], room: int | None = None
) -> bytes:
    """The head of a file whose constants lie behind the FlatBuffer; sets the blobs' positions.

    Args:
        layout: of the file.
        blobs: its constants.
        order: in which order they lie there.
        room: how many of them, in that order, lie so far before the others that reading them reads nothing of those.
    """

    def head(start: int) -> bytes:
        position = start
        buffers: list[flatbuffer.Table] = [(), *[()] * len(blobs)]
        for number, at in enumerate(order):
            blob = blobs[at]
            alignment = flatbuffer.Blob.ALIGNMENT
            if number == room:
                position, alignment = position + READ_AHEAD, PAGE
            blob.position = position = -(-position // alignment) * alignment
            buffers[at + 1] = ((1, "u64", position), (2, "u64", blob.size))
            position += blob.size
        return flatbuffer.layout(layout.model(buffers), schema.IDENTIFIER)[0]

    start, made = 0, b""
    while not made or len(made) > start:
        start = max(len(made), HEAD_OF_A_BUFFER * len(blobs))
        made = head(start)
    return made + bytes(start - len(made))


class _FileLayout:
    """Where everything of a file stands: its tensors, buffers and operator codes.

    Attributes:
        constants: the content of the buffers, from the second one on.
        buffer_of: the number of each value's buffer.
    """

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.constants: list[Constant] = []
        inner = [body for program in contents.programs for body in program.programs()[1:]]
        self.programs = [with_own_memory(each) for each in (*contents.programs, *map(with_own_outputs, inner))]
        self.names = [*contents.names, *(f"body_{number}" for number in range(len(inner)))]
        self._places = {id(body): number for number, body in enumerate(inner, len(contents.programs))}
        self.values = [_values(program) for program in self.programs]
        self._buffers: dict[int, int] = {}
        """The buffer of each constant by its identity; only those of several programs share buffers."""
        self.buffer_of: dict[Value, int] = {}
        shares = len(self.programs) > 1
        for values in self.values:
            for value in values:
                if value.constant is None or not value.constant.nbytes or value in self.buffer_of:
                    continue
                known = self._buffers.get(id(value.constant)) if shares else None
                self.buffer_of[value] = known if known is not None else self._buffer(value.constant)
        self._metadata = [
            (name, self._buffer(Constant.of(np.frombuffer(data, np.uint8)))) for name, data in contents.metadata.items()
        ]

    def _buffer(self, constant: Constant) -> int:
        self.constants.append(constant)
        self._buffers[id(constant)] = len(self.constants)
        return len(self.constants)

    def model(self, buffers: list[flatbuffer.Table]) -> flatbuffer.Table:
        """The root table."""
        codes: dict[tuple[str, int], int] = {}
        version = self.contents.version
        for program in self.programs:
            for operation in program.operations:
                codes.setdefault(_code(operation, version), len(codes))
        index = [{value: number for number, value in enumerate(values)} for values in self.values]
        subgraphs = [
            (
                (0, "[table]", [self._tensor(value) for value in values]),
                (1, "[i32]", [places[value] for value in program.inputs]),
                (2, "[i32]", [places[value] for value in program.outputs]),
                (3, "[table]", [self._operator(operation, codes, places) for operation in program.operations]),
                (4, "string", name),
            )
            for program, name, values, places in zip(self.programs, self.names, self.values, index, strict=True)
        ]
        model: list[flatbuffer.Entry] = [
            (0, "u32", schema.VERSION),
            (1, "[table]", [_operator_code(code, number) for code, number in codes]),
            (2, "[table]", subgraphs),
            (3, "string", self.contents.description),
            (4, "[table]", buffers),
        ]
        if self._metadata:
            model.append((6, "[table]", [((0, "string", name), (1, "u32", buffer)) for name, buffer in self._metadata]))
        if self.contents.signatures:
            signatures = [_signature(item, index[at], at) for at, item in enumerate(self.contents.signatures)]
            model.append((7, "[table]", signatures))
        return model

    def _tensor(self, value: Value) -> flatbuffer.Table:
        fields: list[flatbuffer.Entry] = [
            (0, "=[i32]", value.shape),
            (1, "i8", schema.TENSOR_TYPES[value.dtype.name]),
            (8, "bool", True),
        ]
        if value.name and value not in self.contents.unnamed:
            fields.append((3, "string", value.name))
        if value in self.buffer_of:
            fields.append((2, "u32", self.buffer_of[value]))
        if value.quantization is not None:
            fields.append((4, "=table", _quantization(value.quantization)))
        if value in self.contents.open_shapes:
            fields.append((7, "=[i32]", self.contents.open_shapes[value]))
        return fields

    def _operator(
        self, operation: Operation, codes: dict[tuple[str, int], int], index: dict[Value, int]
    ) -> flatbuffer.Table:
        fields: list[flatbuffer.Entry] = [
            (0, "u32", codes[_code(operation, self.contents.version)]),
            (1, "[i32]", [-1 if value is None else index[value] for value in operation.inputs]),
            (2, "[i32]", [index[value] for value in operation.outputs]),
        ]
        if operation.code.startswith(CUSTOM):
            return (*fields, (5, "[u8]", operation.options["custom"]), (6, "i8", 0))
        name = schema.OPERATORS[operation.code].options
        if name:
            options = schema.option_fields(name)
            given = dict(zip(options.by_name, (self._places[id(body)] for body in operation.bodies), strict=False))
            table = tuple(
                [
                    (options.by_name[key].slot, options.by_name[key].kind, _number(key, value))
                    for key, value in (given or operation.options).items()
                ]
            )
            # Equal floats may be a zero and its negative.
            kind = "table" if any(entry[1] == "f32" for entry in table) else "=table"
            fields += [(3, "u8", options.number), (4, kind, table)]
        return fields


CUSTOM = "custom:"
"""Before the name of an operator that is no builtin one, in an operation's code."""
CUSTOM_NUMBER = 32


def _values(program: Program) -> list[Value]:
    found = dict.fromkeys(program.inputs)
    for operation in program.operations:
        found.update(dict.fromkeys(value for value in operation.inputs if value is not None))
        found.update(dict.fromkeys(operation.outputs))
    found.update(dict.fromkeys(program.outputs))
    return list(found)


def _code(operation: Operation, version: Callable[[Operation], int] | None) -> tuple[str, int]:
    if operation.code.startswith(CUSTOM):
        return operation.code, 1
    return operation.code, version(operation) if version is not None else schema.OPERATORS[operation.code].version


def _operator_code(code: str, version: int) -> flatbuffer.Table:
    if code.startswith(CUSTOM):
        name = code.removeprefix(CUSTOM)
        return (0, "i8", CUSTOM_NUMBER), (1, "string", name), (2, "i32", version), (3, "i32", CUSTOM_NUMBER)
    number = schema.OPERATORS[code].number
    return (0, "i8", min(number, 127)), (2, "i32", version), (3, "i32", number)


def _signature(signature: EntrySignature, index: dict[Value, int], subgraph: int) -> flatbuffer.Table:
    def named(values: Mapping[str, Value]) -> list[flatbuffer.Table]:
        return [((0, "string", name), (1, "u32", index[value])) for name, value in sorted(values.items())]

    return (
        (0, "[table]", named(signature.inputs)),
        (1, "[table]", named(signature.outputs)),
        (2, "string", signature.key),
        (4, "u32", subgraph),
    )


def _quantization(quantization: Quantization) -> flatbuffer.Table:
    """What codes stand for, once in the file for all tensors that share them; no scale is 0, which has two forms."""
    table = (2, "=[f32]", quantization.scales), (3, "=[i64]", quantization.zero_points)
    return (*table, (6, "i32", quantization.axis)) if len(quantization.scales) > 1 else table


def _number(key: str, value: Any) -> Any:
    return schema.CHOICES[key][value] if key in schema.CHOICES else value
