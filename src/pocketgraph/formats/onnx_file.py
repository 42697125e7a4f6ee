"""ONNX files as graphs to look at and to run as a whole: a node a node, a constant an initializer.

    x = Placeholder(dtype=float, shape=[?, 3, 224, 224])
    y = onnx.Conv(x, weights, bias)

A session runs such a graph by ONNX Runtime, where that is installed. Source of field numbers: onnx.proto of the ONNX
project.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

from pocketgraph.errors import AGAIN, FormatError, GraphError
from pocketgraph.formats.files import path_below
from pocketgraph.formats.tflite import plain_name
from pocketgraph.graph import DType, Graph, Node, Shape, Tensor
from pocketgraph.graph.edit import claim_name
from pocketgraph.graph.graph import DEFAULT_SIGNATURE, Signature
from pocketgraph.graph.model_file_graph import ONNX, ONNX_PREFIX, SHAPES, TYPES
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import LEN, VARINT, Buffer, WireError, damage_told

ELEMENTS = {
    1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
    10: "half", 11: "double", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
}  # fmt: skip
"""TensorFlow's name of each TensorProto.DataType."""
EXTERNAL = 1  # a tensor's data_location
DEEPEST = 100
RUNTIME_DOMAINS = frozenset((
    "", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "com.microsoft", "com.microsoft.nchwc",
    "com.microsoft.experimental", "com.ms.internal.nhwc", "org.pytorch.aten",
))  # fmt: skip
"""Of operators that ONNX Runtime has (onnxruntime/core/graph/constants.h); names of others here begin with theirs."""
FOLDER = "_folder"
"""The attribute of a constant whose elements lie in another file: the folder of the ONNX file."""


def parse(buffer: Buffer, where: str = "") -> Graph:
    """The graph of a file. Its content stays in ``extra``, which is what a session runs.

    Raises:
        FormatError: it is damaged, or the file beside it that has its weights is.
    """
    with damage_told("the ONNX file is damaged", where, AGAIN):
        span = next(((value, stop) for number, value, stop in _parts(buffer, 0, len(buffer)) if number == 7), None)
        if span is None:
            raise FormatError("the ONNX file has no graph", where=where)
        own = {
            (*_texts(buffer, value, stop, 10), *_texts(buffer, value, stop, 1))
            for number, value, stop in _parts(buffer, 0, len(buffer)) if number == 25
        }  # fmt: skip
        return _graph(buffer, *span, where, own)


def description(buffer: Buffer, where: str = "") -> str:
    """What a file says of itself: the versions of its operators and of the format, and who wrote it.

    Raises:
        FormatError: it is damaged.
    """
    with damage_told("the ONNX file is damaged", where, AGAIN):
        return _description(buffer)


def _description(buffer: Buffer) -> str:
    parts, versions = list(_parts(buffer, 0, len(buffer))), []
    for number, value, stop in parts:
        if number == 8:
            domain = "".join(_texts(buffer, value, stop, 1))
            opset = wire.numbers(buffer, value, stop).get(2, 0)
            versions.append(f"opset {opset}" + f" of {domain}" * (domain not in ("", "ai.onnx")))
    ir = wire.numbers(buffer, 0, len(buffer)).get(1, 0)
    wrote = " ".join(_texts(buffer, 0, len(buffer), 2) + _texts(buffer, 0, len(buffer), 3)).strip()
    return ", ".join([*versions, *([f"ir_version {ir}"] if ir else []), *([f"by {wrote}"] if wrote else [])])


def _parts(buffer: Buffer, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(number, start, end) of the fields of a message that are messages, texts or bytes."""
    for _, number, kind, value, stop in wire.fields(buffer, start, end):
        if kind == LEN:
            yield number, value, stop


def _texts(buffer: Buffer, start: int, end: int, number: int) -> list[str]:
    parts = _parts(buffer, start, end)
    return [bytes(buffer[value:stop]).decode("utf-8", "replace") for field, value, stop in parts if field == number]


def _graph(buffer: Buffer, start: int, end: int, where: str, own: Collection[tuple[str, ...]]) -> Graph:
    """The graph of a span; ``own`` are domain and name of each function that the file itself defines."""
    parts = list(_parts(buffer, start, end))
    nodes: list[Node] = []
    taken: set[str] = set()
    names: dict[str, str] = {}
    for number, value, stop in parts:
        if number == 5:
            _add_constant(buffer, value, stop, nodes, taken, names, where)
    typed = dict(_typed(buffer, value, stop) for number, value, stop in parts if number in (11, 12, 13))
    inputs = {}
    for number, value, stop in parts:
        name = _typed(buffer, value, stop)[0] if number == 11 else ""
        if name and name not in names:
            dtype, shape = typed[name]
            node = claim_name(plain_name(name), taken)
            nodes.append(Node(node, "Placeholder", (), {"dtype": dtype, "shape": shape}))
            names[name] = inputs[name] = f"{node}:0"
    for number, value, stop in parts:
        if number == 1:
            _add_node(buffer, value, stop, typed, nodes, taken, names, own)
    outputs = [_typed(buffer, value, stop)[0] for number, value, stop in parts if number == 12]
    missing = next((name for name in outputs if name not in names), None)
    if missing is not None or not outputs:
        raise FormatError(f"the ONNX file is damaged: nothing makes its output '{missing}'", where=where)
    made = {name: names[name] for name in outputs}
    return Graph(
        nodes,
        inputs=list(inputs.values()),
        outputs=list(made.values()),
        signatures={DEFAULT_SIGNATURE: Signature(inputs, made)},
        extra=bytes(4) + ONNX + bytes(buffer),
    )


def _typed(buffer: Buffer, start: int, end: int) -> tuple[str, tuple[DType, Shape]]:
    """The name of a ValueInfo, its type and its shape."""
    (name, *_) = _texts(buffer, start, end, 1) or [""]
    dtype, shape = DType.named("float"), Shape(None)
    for number, value, stop in _parts(buffer, start, end):
        for kind, inner, outer in _parts(buffer, value, stop) if number == 2 else ():
            if kind == 1:
                dtype = _dtype(wire.numbers(buffer, inner, outer).get(1, 0))
                for field, at, to in _parts(buffer, inner, outer):
                    if field == 2:
                        shape = Shape(_sizes(buffer, at, to))
    return name, (dtype, shape)


def _sizes(buffer: Buffer, start: int, end: int) -> tuple[int | None, ...]:
    found = [
        wire.numbers(buffer, value, stop).get(1) for number, value, stop in _parts(buffer, start, end) if number == 1
    ]
    return tuple(size if size is not None and size < 1 << 62 else None for size in found)


def _dtype(number: int) -> DType:
    try:
        return DType.named(ELEMENTS.get(number, "uint8"))
    except GraphError:
        return DType.named("uint8")


def _add_constant(
    buffer: Buffer, start: int, end: int, nodes: list[Node], taken: set[str], names: dict[str, str], where: str,
    name: str = "",
) -> None:  # fmt: skip
    numbers = wire.numbers(buffer, start, end)
    name = name or next(iter(_texts(buffer, start, end, 8)), "")
    dims = [value for _, number, kind, value, _ in wire.fields(buffer, start, end) if (number, kind) == (1, VARINT)]
    for number, value, stop in _parts(buffer, start, end):
        if number == 1:
            while value < stop:
                size, value = wire.read_varint(buffer, value, stop)
                dims.append(size)
    dtype = _dtype(numbers.get(2, 0))
    raw = next((buffer[value:stop] for number, value, stop in _parts(buffer, start, end) if number == 9), None)
    node = claim_name(plain_name(name) or "constant", taken)
    count = int(np.prod(dims, dtype=np.int64))
    if numbers.get(14) == EXTERNAL:
        read = _beside(where, _external(buffer, start, end), count * dtype.size)
        elements = Tensor(dtype, tuple(dims), read=lambda: read().view(dtype.numpy).reshape(dims))
        nodes.append(
            Node(node, "Const", (), {"dtype": dtype, "value": elements, FOLDER: os.path.dirname(where).encode()})
        )
    elif raw is not None and dtype.size and len(raw) == count * dtype.size:
        tensor = Tensor.from_numpy(np.frombuffer(raw, dtype.numpy).reshape(dims), dtype)
        nodes.append(Node(node, "Const", (), {"dtype": dtype, "value": tensor}))
    else:
        nodes.append(Node(node, f"{ONNX_PREFIX}initializer", (), {TYPES: (dtype,), SHAPES: (Shape(dims),)}))
    names[name] = f"{node}:0"


def _external(buffer: Buffer, start: int, end: int) -> dict[str, str]:
    """Where a constant's bytes are, as it says: the location beside the file, the offset and the length."""
    entries = [_texts(buffer, value, stop, 1) + _texts(buffer, value, stop, 2)
               for number, value, stop in _parts(buffer, start, end) if number == 13]  # fmt: skip
    return {entry[0]: entry[1] for entry in entries if len(entry) == 2}


def files_beside(buffer: Buffer, where: str) -> set[str]:
    """The paths of the files of weights that an ONNX file names; see ``parse`` for those that are missing."""
    with damage_told("the ONNX file is damaged", where, AGAIN):
        graphs = [(value, stop) for number, value, stop in _parts(buffer, 0, len(buffer)) if number == 7]
        constants = [(value, stop) for graph in graphs for number, value, stop in _parts(buffer, *graph) if number == 5]
        names = {_external(buffer, *constant).get("location", "") for constant in constants} - {""}
    return {os.path.join(os.path.dirname(where), name) for name in names}


def _beside(where: str, facts: Mapping[str, str], size: int) -> Callable[[], np.ndarray[Any, Any]]:
    """What reads the bytes of a constant from the file beside ``where`` that ``facts`` name.

    Raises:
        FormatError: there is no such file, it is too short, or lies elsewhere.
    """
    name = facts.get("location", "")
    path = path_below(where, name) if where else ""
    if not path:
        raise FormatError(f"the ONNX file keeps weights in '{name}', which is no file beside it", where=where)
    try:
        offset, length, whole = int(facts.get("offset", 0)), int(facts.get("length", size)), os.path.getsize(path)
    except (OSError, ValueError):
        raise FormatError(
            f"the ONNX file keeps weights in '{name}', which cannot be read", where=where, hint="put it beside the file"
        ) from None
    if length != size or offset < 0 or offset + size > whole:
        raise FormatError(f"weights of the ONNX file are to be in '{name}', which is too short", where=where)
    return lambda: np.memmap(path, np.uint8, "r", offset, (size,)) if size else np.empty(0, np.uint8)


def _add_node(
    buffer: Buffer,
    start: int,
    end: int,
    typed: dict[str, tuple[DType, Shape]],
    nodes: list[Node],
    taken: set[str],
    names: dict[str, str],
    own: Collection[tuple[str, ...]],
) -> None:
    (op, *_) = _texts(buffer, start, end, 4) or ["unnamed"]
    (domain, *_) = _texts(buffer, start, end, 7) or [""]
    if op == "Constant" and not domain and _added_value(buffer, start, end, nodes, taken, names):
        return
    if domain not in RUNTIME_DOMAINS and (domain, op) not in own:
        op = f"{domain}.{op}"
    made = _texts(buffer, start, end, 2)
    read = list(dict.fromkeys(names[name].removesuffix(":0") for name in _read(buffer, start, end) if name in names))
    node = claim_name(plain_name(next(iter(made), "")) or op, taken)
    attrs: dict[str, Any] = {}
    if made and all(name in typed for name in made):
        attrs = {TYPES: tuple(typed[name][0] for name in made), SHAPES: tuple(typed[name][1] for name in made)}
    nodes.append(Node(node, ONNX_PREFIX + op, read, attrs))
    names.update({name: f"{node}:{port}" for port, name in enumerate(made)})


def _added_value(
    buffer: Buffer, start: int, end: int, nodes: list[Node], taken: set[str], names: dict[str, str]
) -> bool:
    """Whether a node's attribute ``value`` has a constant's elements in it; then they are a node ``Const``."""
    made = _texts(buffer, start, end, 2)
    for number, attribute, stop in _parts(buffer, start, end):
        for kind, at, to in _parts(buffer, attribute, stop) if number == 5 else ():
            if kind == 5 and len(made) == 1 and _texts(buffer, attribute, stop, 1) == ["value"]:
                _add_constant(buffer, at, to, nodes, taken, names, "", made[0])
                return True
    return False


def _read(buffer: Buffer, start: int, end: int, depth: int = 0) -> Iterator[str]:
    """What a node reads, by itself or in the graphs that it holds: branches, the body of a loop."""
    if depth > DEEPEST:
        raise WireError(start, f"graphs lie in graphs more than {DEEPEST} deep")
    yield from _texts(buffer, start, end, 1)
    for number, attribute, stop in _parts(buffer, start, end):
        for kind, at, to in _parts(buffer, attribute, stop) if number == 5 else ():
            for field, inner, outer in _parts(buffer, at, to) if kind in (6, 11) else ():
                if field == 1:
                    yield from _read(buffer, inner, outer, depth + 1)
                elif field == 12:
                    yield from _texts(buffer, inner, outer, 1)
