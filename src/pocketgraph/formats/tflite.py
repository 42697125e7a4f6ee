"""LiteRT (TensorFlow Lite) files as graphs to look at: a node an operator, a constant a weight, signatures by name.

    x = Placeholder(dtype=float, shape=[?, 224, 224, 3])
    y = tfl.conv_2d(x, weights, bias)

Such a graph runs in a session as a whole, by LiteRT itself; rewriting rules do not know its operators. Source of slots
and numbers: schema.fbs of the LiteRT project, version 3.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph.errors import AGAIN, FormatError, GraphError
from pocketgraph.formats.flatbuffers import Table
from pocketgraph.formats.tflite_schema import entries
from pocketgraph.graph import DType, Graph, Node, Shape, Tensor
from pocketgraph.graph.dtype import NOT_NUMBERS, UINT8
from pocketgraph.graph.edit import claim_name
from pocketgraph.graph.graph import DEFAULT_SIGNATURE, Signature
from pocketgraph.graph.model_file_graph import PREFIX, SCALES, SHAPES, TYPES, ZERO_POINTS
from pocketgraph.protobuf.wire import Buffer

METADATA = "TFLITE_METADATA"
CUSTOM = 32
MOST_NODES = 1 << 20  # operators of a file
SUBGRAPHS, TENSORS, OPEN_SHAPE = 2, 0, 7
"""Slots of the model, of a subgraph, of a tensor."""

ELEMENTS = (
    "float", "half", "int32", "uint8", "int64", "string", "bool", "int16", "complex64", "int8", "double", "complex128",
    "uint64", "resource", "variant", "uint32", "uint16", "int4", "bfloat16", "int2", "uint4",
)  # fmt: skip
"""TensorFlow's name of each TensorType."""

OPERATORS = tuple(name for name, *_ in entries("operators"))
"""The builtin operators by their number; newer ones go by theirs."""


@dataclass(frozen=True)
class DeclaredTensor:
    """An input or output of a file.

    Attributes:
        name: of the tensor.
        dtype: TensorFlow's name of its type.
        shape: the sizes; None where one is open.
        scale, zero_point: a code stands for ``scale * (code - zero_point)``; scale 0 for plain numbers.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    scale: float = 0.0
    zero_point: int = 0


@dataclass(frozen=True)
class ModelFacts:
    """What a file says of itself.

    Attributes:
        signatures: the inputs and outputs of each, by public name; of a file without signatures ``serving_default``.
        has_signatures: whether the file names them.
        description: who wrote it.
        metadata: the names of its metadata and their bytes.
    """

    signatures: Mapping[str, tuple[Mapping[str, DeclaredTensor], Mapping[str, DeclaredTensor]]]
    has_signatures: bool
    description: str
    metadata: Mapping[str, bytes]


class _File:
    """A file's root table and what its tables point to."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.root = Table.root(buffer)
        self.codes = [_op(table) for table in self.root.tables(1)]
        self.buffers = self.root.tables(4)
        self.subgraphs = [_SubgraphTable(table) for table in self.root.tables(2)]
        if not self.subgraphs:
            raise FormatError("it has no subgraph")

    def content(self, number: int) -> Any:
        """The bytes of a buffer; None for one without."""
        if not 0 <= number < len(self.buffers):
            raise FormatError(f"there is no buffer {number}")
        table = self.buffers[number]
        offset, size = table.number(1, "u64"), table.number(2, "u64")
        if offset > 1:
            if offset + size > len(self.buffer):
                raise FormatError("a buffer ends outside of it")
            return self.buffer[offset : offset + size]
        data = table.data(0)
        return data if data is not None and len(data) else None


class _SubgraphTable:
    def __init__(self, table: Table) -> None:
        self.tensors = table.tables(0)
        self.inputs = table.numbers(1, "i32")
        self.outputs = table.numbers(2, "i32")
        self.operators = table.tables(3)
        self.name = table.text(4)
        if any(not 0 <= number < len(self.tensors) for number in (*self.inputs, *self.outputs)):
            raise FormatError("an input or output is no tensor")

    def tensor(self, number: int) -> Table:
        if not 0 <= number < len(self.tensors):
            raise FormatError(f"there is no tensor {number}")
        return self.tensors[number]


def _op(table: Table) -> str:
    number = max(table.number(0, "i8"), table.number(3, "i32"))
    if number == CUSTOM:
        return f"{PREFIX}custom.{plain_name(table.text(1)) or 'unnamed'}"
    return PREFIX + (OPERATORS[number].lower() if 0 <= number < len(OPERATORS) else f"operator_{number}")


def _facts(tensor: Table) -> DeclaredTensor:
    shape, declared = tensor.numbers(0, "i32"), tensor.numbers(7, "i32")
    sizes = declared if len(declared) == len(shape) else shape
    quantization = tensor.table(4)
    scales = quantization.numbers(2, "f32") if quantization is not None else ()
    zeros = quantization.numbers(3, "i64") if quantization is not None else ()
    kind = tensor.number(1, "i8")
    return DeclaredTensor(
        tensor.text(3),
        ELEMENTS[kind] if 0 <= kind < len(ELEMENTS) else f"type {kind}",
        tuple(None if size < 0 else size for size in sizes),
        scales[0] if len(scales) == 1 else 0.0,
        zeros[0] if len(zeros) == 1 else 0,
    )


def facts(buffer: Buffer, where: str = "") -> ModelFacts:
    """What a file says of itself: inputs, outputs, signatures and metadata.

    Raises:
        FormatError: it is damaged.
    """
    try:
        file = _File(buffer)
        signatures = {
            key: tuple({name: _facts(file.subgraphs[at].tensor(n)) for name, n in side.items()} for side in sides)
            for key, (at, *sides) in _signatures(file).items()
        }
        metadata = {}
        for table in file.root.tables(6):
            content = file.content(table.number(1, "u32"))
            metadata[table.text(0)] = b"" if content is None else bytes(content)
    except FormatError as error:
        raise FormatError(f"the file is damaged: {error.what}", where=where, hint=AGAIN) from None
    return ModelFacts(signatures, bool(file.root.tables(7)), file.root.text(3), metadata)  # type: ignore[arg-type]


def _signatures(file: _File) -> dict[str, tuple[int, dict[str, int], dict[str, int]]]:
    """Of each signature the subgraph, and the tensors that go in and out by their public names."""
    found = {}
    for table in file.root.tables(7):
        at = table.number(4, "u32")
        if not at < len(file.subgraphs):
            raise FormatError(f"there is no subgraph {at}")
        sides = [{item.text(0): int(item.number(1, "u32")) for item in table.tables(side)} for side in (0, 1)]
        found[table.text(2)] = (at, sides[0], sides[1])
    if found:
        return found
    graph = file.subgraphs[0]
    named = [_by_name(graph, numbers) for numbers in (graph.inputs, graph.outputs)]
    return {DEFAULT_SIGNATURE: (0, named[0], named[1])}


def _by_name(graph: _SubgraphTable, numbers: tuple[int, ...]) -> dict[str, int]:
    """Tensors by name, as LiteRT's interpreter tells them apart: later ones of a name have their number behind it."""
    found: dict[str, int] = {}
    for number in numbers:
        name = graph.tensor(number).text(3)
        found[name if name not in found else f"{name}#{number}"] = number
    return found


def parse(buffer: Buffer, where: str = "") -> Graph:
    """The graph of a file. Its content stays in ``extra``, which is what a session runs.

    Raises:
        FormatError: it is damaged.
    """
    try:
        file = _File(buffer)
        signatures = _signatures(file)
        nodes: list[Node] = []
        names: list[dict[int, str]] = []
        taken: set[str] = set()
        keys = {at: key for key, (at, _, _) in reversed(signatures.items())}
        for at, subgraph in enumerate(file.subgraphs):
            prefix = "" if len(file.subgraphs) == 1 else f"{plain_name(keys.get(at, subgraph.name)) or at}/"
            names.append(_nodes(file, subgraph, "Placeholder" if at in keys else "_Arg", prefix, nodes, taken))
    except FormatError as error:
        raise FormatError(f"the file is damaged: {error.what}", where=where, hint=AGAIN) from None
    made = {}
    for key, (at, inputs, outputs) in signatures.items():
        tensors = names[at]
        if any(number not in tensors for number in (*inputs.values(), *outputs.values())):
            raise FormatError(f"the file is damaged: '{key}' names a tensor that nothing makes", where=where)
        made[key] = Signature(
            {name: tensors[number] for name, number in inputs.items()},
            {name: tensors[number] for name, number in outputs.items()},
        )
    main = made.get(DEFAULT_SIGNATURE) or next(iter(made.values()))
    return Graph(
        nodes,
        inputs=list(main.inputs.values()),
        outputs=list(main.outputs.values()),
        signatures=made,
        extra=bytes(buffer),
    )


def with_fixed_sizes(content: bytes) -> bytes:
    """A file whose tensors have the sizes that it stores for those that are left open, such as a batch of 1.

    Where they are open, LiteRT's C interface does not tell how large inputs are. Layouts of tables lose the slot of the
    open shape in place.

    Raises:
        FormatError: it is damaged.
    """
    fixed = bytearray(content)
    root = Table.root(content)
    for subgraph in root.tables(SUBGRAPHS):
        for tensor in subgraph.tables(TENSORS):
            if tensor.place(OPEN_SHAPE):
                layout = tensor.at - int(tensor.reader.scalar(tensor.at, "i32"))
                fixed[layout + 4 + 2 * OPEN_SHAPE : layout + 6 + 2 * OPEN_SHAPE] = bytes(2)
    return bytes(fixed)


def _nodes(
    file: _File, subgraph: _SubgraphTable, input_op: str, prefix: str, nodes: list[Node], taken: set[str]
) -> dict[int, str]:
    """Adds the nodes of a subgraph, and gives the name of each tensor that is made, by its number.

    Args:
        input_op: the op of its inputs: a loop feeds those of its body itself.
    """
    names: dict[int, str] = {}
    for number in subgraph.inputs:
        fact = _facts(subgraph.tensor(number))
        name = claim_name(prefix + plain_name(fact.name or f"input_{number}"), taken)
        attrs: dict[str, Any] = {"dtype": _dtype(fact), "shape": Shape(fact.shape)}
        if fact.scale:
            attrs |= {SCALES: (fact.scale,), ZERO_POINTS: (fact.zero_point,)}
        nodes.append(Node(name, input_op, (), attrs))
        names[number] = f"{name}:0"
    first_made = {made[0] for operator in subgraph.operators if (made := operator.numbers(2, "i32"))}
    own_names = {  # what is named like an output in front of it, such as its codes, gives way
        number: claim_name(prefix + name, taken)
        for number in dict.fromkeys(subgraph.outputs)
        if number in first_made and (name := plain_name(_facts(subgraph.tensor(number)).name))
    }
    for at, operator in enumerate(subgraph.operators):
        code = operator.number(0, "u32")
        if not code < len(file.codes) or len(nodes) > MOST_NODES:
            raise FormatError(f"there is no operator {code}")
        read, made = operator.numbers(1, "i32"), operator.numbers(2, "i32")
        inputs = []
        for number in read:
            if number >= 0 and number not in names:
                _add_constant(file, subgraph, number, prefix, nodes, taken, names)
            if number >= 0:
                inputs.append(names[number].removesuffix(":0"))
        facts_of = [_facts(subgraph.tensor(number)) for number in made]
        own = plain_name(facts_of[0].name) if facts_of else ""
        name = own_names.pop(made[0], "") if made else ""
        name = name or claim_name(prefix + (own or f"{file.codes[code].removeprefix(PREFIX)}_{at}"), taken)
        attrs = {TYPES: tuple(_dtype(fact) for fact in facts_of), SHAPES: tuple(Shape(fact.shape) for fact in facts_of)}
        if any(fact.scale for fact in facts_of):
            attrs |= {
                SCALES: tuple(fact.scale for fact in facts_of),
                ZERO_POINTS: tuple(fact.zero_point for fact in facts_of),
            }
        nodes.append(Node(name, file.codes[code], inputs, attrs))
        names.update({number: f"{name}:{port}" for port, number in enumerate(made)})
    for number in subgraph.outputs:
        if number not in names:
            _add_constant(file, subgraph, number, prefix, nodes, taken, names)
    return names


def _add_constant(
    file: _File,
    subgraph: _SubgraphTable,
    number: int,
    prefix: str,
    nodes: list[Node],
    taken: set[str],
    names: dict[int, str],
) -> None:
    """A constant, or a variable of an operator's own, as a node."""
    table = subgraph.tensor(number)
    fact = _facts(table)
    name = claim_name(prefix + (plain_name(fact.name) or f"constant_{number}"), taken)
    content = file.content(table.number(2, "u32")) if file.buffers else None
    shape = tuple(size or 0 for size in fact.shape)
    dtype = _dtype(fact)
    if content is None or fact.dtype in NOT_NUMBERS:
        nodes.append(Node(name, f"{PREFIX}pseudo_const", (), {"dtype": dtype, "shape": Shape(shape)}))
    else:
        if dtype.size * math.prod(shape) != len(content):
            dtype, shape = UINT8, (len(content),)  # less than a byte an element, or sparse
        tensor = Tensor.from_numpy(np.frombuffer(content, dtype.numpy).reshape(shape), dtype)
        nodes.append(Node(name, "Const", (), {"dtype": dtype, "value": tensor}))
    names[number] = f"{name}:0"


def _dtype(fact: DeclaredTensor) -> DType:
    try:
        return DType.named(fact.dtype)
    except GraphError:  # a type that TensorFlow has not
        return UINT8


def plain_name(name: str) -> str:
    """A tensor's name as a node may have it: the first one of a fused operator's, without the port."""
    text = re.sub(r":0$", "", name.split(";")[0])
    text = re.sub(r"[^A-Za-z0-9_.\\/>-]", "_", text)
    return text if re.match(r"[A-Za-z0-9.]", text) else f"t{text}" if text else ""
