"""Writes memory-mapped packages as convert_graphdef_memmapped_format did.

Source: tensorflow/contrib/util/convert_graphdef_memmapped_format_lib.cc and core/util/memmapped_file_system_writer.cc.
"""

from __future__ import annotations

import string
import struct
import sys
from collections.abc import Iterator

import numpy as np

from pocketgraph.errors import FormatError, UsageError
from pocketgraph.formats import graphdef
from pocketgraph.formats.files import PathLike, write_atomically
from pocketgraph.formats.memmapped import GRAPH, OP, PREFIX
from pocketgraph.graph import AttrValue, DType, Graph, Node, Shape, Tensor
from pocketgraph.graph.model_file_graph import refuse_finished
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import Chunk

ALIGNMENT = 64  # bytes; of TensorFlow's allocator since 1.5
MIN_CONVERSION_SIZE = 10_000  # bytes
PLAIN = frozenset(
    (
        "float", "double", "int32", "uint8", "int16", "int8", "complex64", "int64", "bool", "uint16", "complex128",
        "half", "bfloat16", "uint32", "uint64",
    )
)  # fmt: skip
"""The types that go into regions: TensorFlow's TF_CALL_POD_TYPES, which has neither strings nor quantized types."""


PLAIN_BYTES = frozenset((string.ascii_letters + string.digits + "_.").encode())


def save_memmapped(graph: Graph, path: PathLike, min_size: int = MIN_CONVERSION_SIZE) -> int:
    """Writes a graph as a memory-mapped package, whole or not at all.

    Every ``Const`` of the graph itself (not of its functions) whose elements take ``min_size`` bytes or more becomes an
    ``ImmutableConst``, which keeps of its attributes type and shape, and its bytes go into a region of their own.

    Args:
        graph: the graph; weights are read one at a time.
        path: where to.
        min_size: in bytes, 1 or more.

    Returns:
        How many nodes were converted.

    Raises:
        UsageError: ``min_size`` is less than 1, or the graph is that of a LiteRT or ONNX file.
        FormatError: a constant is damaged.
        PocketgraphError: the file cannot be written.
    """
    if min_size < 1:
        raise UsageError("min_conversion_tensor_size must be > 0")
    refuse_finished(graph, "convert_graphdef_memmapped_format")
    taken: set[str] = set()
    converted: dict[str, Node] = {}
    tensors: list[tuple[str, Tensor]] = []
    for node in graph:
        tensor = _convertible(node, min_size)
        if tensor is not None:
            region = region_name(node.name, taken)
            taken.add(region)
            tensors.append((region, tensor))
            converted[node.name] = _immutable(node, tensor, region)
    changed = graph.map_nodes(lambda node: converted.get(node.name, node)) if converted else graph
    write_atomically(path, _package(changed, tensors))
    return len(tensors)


def region_name(node: str, taken: set[str]) -> str:
    """The region of a node: its name with everything but letters, digits, ``_`` and ``.`` replaced, made unique."""
    name = PREFIX + "".join(chr(byte) if byte in PLAIN_BYTES else "_" for byte in node.encode())
    while name in taken or name == GRAPH:
        name += "_"
    return name


def _convertible(node: Node, min_size: int) -> Tensor | None:
    if node.op != "Const":
        return None
    dtype = node.attr("dtype")
    value = node.attr("value")
    if not isinstance(dtype, DType) or dtype.name not in PLAIN or not isinstance(value, Tensor):
        return None
    if value.dtype is not dtype:
        raise FormatError(
            f"Cannot parse tensor from proto: it is {value.dtype.name}, the node {dtype.name}", where=f"'{node.name}'"
        )
    return value if value.nbytes >= min_size else None


def _immutable(node: Node, tensor: Tensor, region: str) -> Node:
    attrs: dict[str, AttrValue] = {
        "dtype": tensor.dtype,
        "shape": Shape(tensor.shape),
        "memory_region_name": region.encode(),
    }
    return node.replace(op=OP, attrs=attrs)


def _package(graph: Graph, tensors: list[tuple[str, Tensor]]) -> Iterator[Chunk]:
    """The pieces of the file."""
    at = 0
    directory = b""
    for region, tensor in tensors:
        if at % ALIGNMENT:
            padding = ALIGNMENT - at % ALIGNMENT
            yield bytes(padding)
            at += padding
        directory += _entry(at, region, tensor.nbytes)
        flat = np.ascontiguousarray(tensor.numpy()).reshape(-1)
        flat = flat if sys.byteorder == "little" else flat.byteswap()
        yield flat.view(np.uint8).data
        at += tensor.nbytes
    start = at
    for chunk in graphdef.chunks(graph):
        yield chunk
        at += len(chunk)
    if at == start:
        raise FormatError("a graph without nodes cannot be put into a memory-mapped package")
    directory += _entry(start, GRAPH, at - start)
    yield directory + struct.pack("<Q", at)


def _entry(offset: int, name: str, length: int) -> bytes:
    """A directory entry; the length is what TensorFlow 2.4 and later write, older readers skip it."""
    parts = wire.number_field(1, offset) if offset else b""
    return wire.bytes_field(1, parts + wire.bytes_field(2, name) + wire.number_field(3, length))
