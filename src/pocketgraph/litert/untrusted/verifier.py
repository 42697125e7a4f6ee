"""Verifies a .tflite file before native code maps it: LiteRT's interpreter follows every offset and index unseen.

Verified are the bounds of every table, vector, string and buffer, the sizes of constants against their shapes, the
indices of tensors, buffers, operator codes and subgraphs, that a tensor is computed before it is read, that constants
are not written to, that subgraphs do not call themselves, the options that kernels divide by, and what else single
kernels take on trust (operand_checks.py). What only values of a run tell is theirs to say; see isolated.py.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import NamedTuple

from pocketgraph.errors import FormatError
from pocketgraph.formats.flatbuffers import FlatBufferReader, Table
from pocketgraph.litert.untrusted.file_tables import (
    BITS,
    CASE,
    DILATIONS,
    EXPECTED,
    OPTIONS,
    OPTIONS_2,
    POSITIVE,
    RESOURCE,
    STRING,
    SUBGRAPHS,
    SUBGRAPHS_2,
    TABLES,
    VARIANT,
)
from pocketgraph.litert.untrusted.operand_checks import LARGEST, UntrustedOperator, verify_operands
from pocketgraph.litert.writing import schema

SHORTEST = 8  # bytes: where the root is, and the identifier
INTEGERS = {2: ("i", 4), 4: ("q", 8)}
"""By TensorType number: how integers that say how to compute are stored, and their bytes."""


class _VerifiedTensor(NamedTuple):
    """What is verified of a tensor: its sizes, the same with -1 where they are open, TensorType number, buffer number,
    and whether it is a variable."""

    shape: tuple[int, ...]
    declared: tuple[int, ...]
    kind: int
    buffer: int
    is_variable: bool

    @property
    def size(self) -> int:
        """How many elements."""
        return math.prod(self.shape)


def verify_file(path: str | os.PathLike[str]) -> None:
    """Verifies a .tflite file.

    Raises:
        FormatError: native code could not read it without harm; the message says what is wrong where.
        OSError: it cannot be read.
    """
    name = os.fspath(path)
    with open(name, "rb") as file:
        if os.fstat(file.fileno()).st_size < SHORTEST:
            raise FormatError("LiteRT cannot run this file, it is too short for a model", where=name)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            problem = fault(mapped)
    if problem:
        raise FormatError(
            f"LiteRT cannot run this file, it is damaged: {problem}", where=name, hint="get it anew from where it came"
        )


def fault(data: bytes | mmap.mmap) -> str:
    """What is wrong with the bytes of a .tflite file; empty when nothing is."""
    with memoryview(data) as view:
        try:
            _Model(view).verify()
        except FormatError as error:
            return str(error)
    return ""


class _Model:
    """A model file being verified, from the buffers to the operators that read them."""

    def __init__(self, data: memoryview) -> None:
        self.reader = FlatBufferReader(data, TABLES)
        if len(data) < SHORTEST or bytes(data[4:8]) != schema.IDENTIFIER:
            raise FormatError("it does not begin as LiteRT models do")
        self.root = self.reader.table(self.reader.target(0), "Model")
        if self.root.number(0, "u32") != schema.VERSION:
            raise FormatError(f"its schema is version {self.root.number(0, 'u32')}, not {schema.VERSION}")
        if self.root.place(8) or self.root.place(9):
            raise FormatError("its weights are in other files, which are not opened")
        self.codes = [_code(table) for table in self.root.tables(1, "OperatorCode")]
        self.buffers = [self._buffer(table) for table in self.root.tables(4, "Buffer")]
        self.calls: list[set[int]] = []

    def verify(self) -> None:
        graphs = self.root.tables(2, "SubGraph")
        if not graphs:
            raise FormatError("it has no subgraph")
        tensors = [[self._tensor(table) for table in graph.tables(0, "Tensor")] for graph in graphs]
        for number, graph in enumerate(graphs):
            self.calls.append(set())
            try:
                self._subgraph(graph, tensors[number], len(graphs))
            except FormatError as error:
                raise FormatError(f"subgraph {number}: {error}") from None
        self._no_recursion()
        for table in self.root.tables(6, "Metadata"):
            if not table.number(1, "u32") < len(self.buffers):
                raise FormatError("metadata in a buffer that is not there")
        for signature in self.root.tables(7, "SignatureDef"):
            number = signature.number(4, "u32")
            if not number < len(graphs):
                raise FormatError("a signature of a subgraph that is not there")
            for entry in (*signature.tables(0, "TensorMap"), *signature.tables(1, "TensorMap")):
                if not entry.number(1, "u32") < len(tensors[number]) or not entry.place(0):
                    raise FormatError("a signature names a tensor that is not there")
            if not signature.place(2):
                raise FormatError("a signature without a name")

    def _buffer(self, table: Table) -> tuple[int, int]:
        """(where the bytes of a buffer are, how many)."""
        place, reader = table.place(0), self.reader
        inside = reader.vector(place, 1) if place else (0, 0)
        start, size = table.number(1, "u64"), table.number(2, "u64")
        if start <= 1:  # 0 and 1 stand for data inside
            return inside
        if start + size > reader.end:
            raise FormatError(f"a buffer of {size} bytes at byte {start} ends outside of the file")
        return start, size

    def _tensor(self, table: Table) -> _VerifiedTensor:
        shape = table.numbers(0)
        found = _VerifiedTensor(
            shape,
            table.numbers(7) or shape,
            table.number(1, "i8"),
            table.number(2, "u32"),
            bool(table.number(5, "bool")),
        )
        self._verify_tensor(found, table)
        return found

    def _verify_tensor(self, tensor: _VerifiedTensor, table: Table) -> None:
        shape, reader = tensor.shape, self.reader
        bits = BITS.get(tensor.kind)
        if bits is None and tensor.kind not in (STRING, RESOURCE, VARIANT):
            raise FormatError(f"a tensor of the unknown type {tensor.kind}")
        if any(size < 0 for size in shape):
            raise FormatError(f"a tensor of the shape {list(shape)}")
        needed = (tensor.size * (bits or 8) + 7) // 8
        if needed > LARGEST:
            raise FormatError(f"a tensor of {needed} bytes")
        if len(tensor.declared) != len(shape) or any(size < -1 for size in tensor.declared):
            raise FormatError(f"a tensor of the shape {list(shape)} is declared as {list(tensor.declared)}")
        if not tensor.buffer < len(self.buffers) and (tensor.buffer or self.buffers):
            raise FormatError(f"a tensor in buffer {tensor.buffer} of {len(self.buffers)}")
        start, held = self._held(tensor)
        is_sparse = bool(table.place(6))
        if is_sparse:
            self._verify_sparsity(reader.table(reader.target(table.place(6)), "Sparsity"), shape, held)
        elif held and bits is not None and held != needed:
            raise FormatError(f"a constant of {needed} bytes has {held}")
        elif held and tensor.kind == STRING:
            self._verify_strings(start, held, tensor.size)
        if table.place(4):
            self._verify_quantization(reader.table(reader.target(table.place(4)), "Quantization"), shape)
        for part in table.tables(9, "VariantSubType"):
            if any(size < -1 for size in part.numbers(0)):
                raise FormatError("a variant of negative sizes")

    def _held(self, tensor: _VerifiedTensor) -> tuple[int, int]:
        return self.buffers[tensor.buffer] if self.buffers else (0, 0)

    def _verify_strings(self, start: int, held: int, count: int) -> None:
        """A string tensor: the count, where each string begins, where the last one ends, the bytes."""
        reader = self.reader
        if held < 8 or reader.scalar(start, "i32") != count or held < 4 * (count + 2):
            raise FormatError(f"a constant of {count} strings does not have as many")
        reader.spend(count)
        offsets = struct.unpack_from(f"<{count + 1}i", reader.data, start + 4)
        if offsets[0] < 4 * (count + 2) or offsets[-1] > held or any(a > b for a, b in pairwise(offsets)):
            raise FormatError("strings of a constant overlap or lie outside of it")

    def _verify_sparsity(self, table: Table, shape: tuple[int, ...], held: int) -> None:
        """The dimensions of a sparse constant; the indices themselves are verified as far as they are bounds."""
        order, blocks = table.numbers(0), table.numbers(1)
        dimensions = table.tables(2, "DimensionMetadata")
        if sorted(order) != list(range(len(order))) or len(order) != len(shape) + len(blocks):
            raise FormatError("a sparse constant whose order of dimensions is none")
        if len(dimensions) != len(order) or any(not 0 <= block < len(shape) for block in blocks):
            raise FormatError("a sparse constant without all of its dimensions")
        for dimension in dimensions:
            if dimension.number(0, "i8") == 0:
                if dimension.number(1, "i32") < 0:
                    raise FormatError("a sparse constant of a negative size")
                continue
            segments, indices = self._index_vector(dimension, 2), self._index_vector(dimension, 4)
            rising = all(a <= b for a, b in pairwise(segments))
            if not segments or segments[0] < 0 or not rising or segments[-1] > len(indices):
                raise FormatError("a sparse constant whose segments do not rise")
            if indices and (min(indices) < 0 or max(indices) >= max(shape, default=1)):
                raise FormatError("a sparse constant with an index outside")
        if not held:
            raise FormatError("a sparse constant without data")

    def _index_vector(self, dimension: Table, slot: int) -> tuple[int, ...]:
        kind = {1: "i32", 2: "u16", 3: "u8"}.get(dimension.number(slot, "u8"))
        place = dimension.place(slot + 1)
        if kind is None or not place:
            raise FormatError("a sparse constant without its indices")
        inner = self.reader.table(self.reader.target(place)).place(0)
        if not inner:
            return ()
        return self.reader.scalars(inner, kind)

    def _verify_quantization(self, table: Table, shape: tuple[int, ...]) -> None:
        scales, zeros = self._count(table, 2, 4), self._count(table, 3, 8)
        axis = table.number(6, "i32")
        if table.number(4, "u8"):
            if not table.place(5):
                raise FormatError("a tensor whose quantization has no details")
            self.reader.table(self.reader.target(table.place(5)))
            return
        if scales > 1 and not (0 <= axis < len(shape) and scales == shape[axis]):
            raise FormatError(f"a tensor of the shape {list(shape)} has {scales} scales along its axis {axis}")
        if zeros not in (0, scales):
            raise FormatError(f"a tensor has {scales} scales and {zeros} zero points")

    def _count(self, table: Table, slot: int, size: int) -> int:
        place = table.place(slot)
        return self.reader.vector(place, size)[1] if place else 0

    def _subgraph(self, graph: Table, tensors: Sequence[_VerifiedTensor], graphs: int) -> None:
        inputs, outputs = graph.numbers(1), graph.numbers(2)
        for number in (*inputs, *outputs):
            if not 0 <= number < len(tensors):
                raise FormatError(f"its input or output {number} is no tensor")
        held = [self._held(tensor)[1] > 0 for tensor in tensors]
        if any(held[number] for number in inputs):
            raise FormatError("an input is a constant")
        ready = [
            is_held or tensor.is_variable or not tensor.size for is_held, tensor in zip(held, tensors, strict=True)
        ]
        for number in inputs:
            ready[number] = True
        for place, operator in enumerate(graph.tables(3, "Operator")):
            try:
                self._operator(operator, tensors, held, ready, graphs)
            except FormatError as error:
                raise FormatError(f"operator {place}: {error}") from None
        if not all(ready[number] for number in outputs):
            raise FormatError("an output is never computed")

    def _operator(
        self, operator: Table, tensors: Sequence[_VerifiedTensor], held: list[bool], ready: list[bool], graphs: int
    ) -> None:
        code = operator.number(0, "u32")
        if not code < len(self.codes):
            raise FormatError(f"its code {code} is none of {len(self.codes)}")
        read, written, between = operator.numbers(1), operator.numbers(2), operator.numbers(8)
        for number in (*read, *between):
            if not -1 <= number < len(tensors):
                raise FormatError(f"its input {number} is no tensor")
        for number in read:
            if number >= 0 and not ready[number]:
                raise FormatError(f"its input {number} is not computed before")
        for number in written:
            if not 0 <= number < len(tensors):
                raise FormatError(f"its output {number} is no tensor")
            if held[number]:
                raise FormatError(f"its output {number} is a constant")
            ready[number] = True
        start, size = operator.number(9, "u64"), operator.number(10, "u64")
        if start > 1 and start + size > self.reader.end:
            raise FormatError("its options end outside of the file")
        newer = self._verify_newer_options(operator, graphs)
        options = self._verify_options(operator, self.codes[code], graphs)
        operands = [tensors[number] if number >= 0 else None for number in read]
        verify_operands(
            UntrustedOperator(
                self.codes[code],
                [None if tensor is None else tensor.declared for tensor in operands],
                lambda place: self._integers(operands[place]) if place < len(operands) else None,
                len(written),
                lambda slot: options.number(slot, "i32") if options is not None else 0,
                newer,
            )
        )

    def _integers(self, tensor: _VerifiedTensor | None) -> tuple[int, ...] | None:
        """The numbers of a constant of integers."""
        start, held = self._held(tensor) if tensor is not None else (0, 0)
        if tensor is None or not held or tensor.kind not in INTEGERS:
            return None
        code, size = INTEGERS[tensor.kind]
        self.reader.spend(held // size)
        return struct.unpack_from(f"<{held // size}{code}", self.reader.data, start)

    def _verify_options(self, operator: Table, code: int, graphs: int) -> Table | None:
        reader, number = self.reader, operator.number(3, "u8")
        expected = EXPECTED.get(code)
        if expected is not None and (number != expected or not operator.place(4)):
            raise FormatError("its options are missing or another operator's")
        if not operator.place(4):
            return None
        kinds = OPTIONS.get(number, {})
        options = reader.fields(reader.target(operator.place(4)), kinds, f"options {number}")
        for slot in POSITIVE.get(number, ()):
            default = 1 if slot in DILATIONS.get(number, ()) else 0
            if options.number(slot, "i32", default) < 1:
                raise FormatError("a stride, a dilation, a window or a block of its options is not positive")
        for slot in SUBGRAPHS.get(number, ()):
            self._call(options.number(slot, "i32"), graphs)
        return options

    def _verify_newer_options(self, operator: Table, graphs: int) -> Table | None:
        number, place = operator.number(11, "u8"), operator.place(12)
        if not place:
            if number:
                raise FormatError("its options are missing")
            return None
        kinds = OPTIONS_2.get(number, {})
        options = self.reader.fields(self.reader.target(place), kinds, f"newer options {number}")
        for slot in SUBGRAPHS_2.get(number, ()):
            self._call(options.number(slot, "i32"), graphs)
        for called in options.numbers(0) if number == CASE else ():
            self._call(called, graphs)
        return options

    def _call(self, called: int, graphs: int) -> None:
        if not 0 <= called < graphs:
            raise FormatError(f"it calls subgraph {called} of {graphs}")
        self.calls[-1].add(called)

    def _no_recursion(self) -> None:
        """Refuses subgraphs that call themselves: native code would do so until its stack is full."""
        try:
            TopologicalSorter(dict(enumerate(self.calls))).prepare()
        except CycleError:
            raise FormatError("a subgraph calls itself") from None


def _code(table: Table) -> int:
    """The builtin operator of an operator code: files before 2020 have it in a byte."""
    return int(max(table.number(0, "i8"), table.number(3, "i32")))
