"""Memory-mapped packages: a graph whose large constants lie in the file as they lie in memory.

The file is tensor regions, then the GraphDef, then a directory of where each begins, and in the last eight bytes where
the directory begins. Source: tensorflow/core/util/memmapped_file_system.{cc,proto}.

A graph from a package has ordinary ``Const`` nodes, whose values stay in the mapping: every rule and both engines take
them, and saving writes a GraphDef that needs no package. Converting it again gives the same package.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from pocketgraph.errors import FormatError
from pocketgraph.formats import graphdef
from pocketgraph.formats.file_node import FileNode
from pocketgraph.formats.files import check_length
from pocketgraph.graph import AttrValue, DType, Graph, Node, Shape, Tensor
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import LEN, VARINT, Buffer, WireError

PREFIX = "memmapped_package://"
GRAPH = PREFIX + "."
OFFSET_BYTES = 8  # of the number at the end of the file
OP = "ImmutableConst"


def regions(buffer: Buffer, file: str) -> dict[str, range]:
    """The directory of a package, the bytes of the file that each region takes; a
    region that does not state its length ends where the next one begins.

    Raises:
        FormatError: the directory is damaged. Texts as in TensorFlow.
    """
    size = len(buffer)
    if size <= OFFSET_BYTES:
        raise corrupted("Invalid package size", file)
    (directory,) = struct.unpack("<Q", buffer[size - OFFSET_BYTES :])
    if directory > size - OFFSET_BYTES:
        raise corrupted("Invalid directory offset", file)
    try:
        elements = [
            _element(buffer, value, stop)
            for _, number, kind, value, stop in wire.fields(buffer, directory, size - OFFSET_BYTES)
            if (number, kind) == (1, LEN)
        ]
    except WireError:
        raise corrupted("Can't parse its internal directory", file) from None
    found: dict[str, range] = {}
    end = directory
    for offset, name, length in reversed(elements):
        if offset >= end:
            raise corrupted("Invalid offset of internal component", file)
        if name in found:
            raise corrupted(f"Duplicate name of internal component {name}", file)
        found[name] = range(offset, offset + length if 0 < length <= end - offset else end)
        end = offset
    return dict(reversed(found.items()))


def corrupted(what: str, file: str) -> FormatError:
    """The error of a damaged package, to be raised."""
    return FormatError(f"Corrupted memmapped model file: {what}", where=file, hint="copy or convert it again")


def read(buffer: Buffer, file: str) -> Graph:
    """The graph of a package; its tensors stay in the buffer.

    Raises:
        FormatError: the package is damaged, or holds no graph.
    """
    table = regions(buffer, file)
    if GRAPH not in table:
        raise FormatError(
            f"MappedRegion {GRAPH} is not found", where=file, hint="the package holds tensors but no graph"
        )
    graph = graphdef.parse(buffer, file, table[GRAPH].start, table[GRAPH].stop)
    return graph.map_nodes(lambda node: _mapped(node, table, file))


class _RegionNode(Node):
    """An ImmutableConst in a package, seen as a Const.

    Attributes:
        buffer, start, stop: where its NodeDef lies.
        file: the package's name.
    """

    __slots__ = ("_node", "_regions", "buffer", "file", "start", "stop")

    def __init__(self, node: FileNode, table: Mapping[str, range], file: str) -> None:
        super().__init__(node.name, "Const", node.inputs, None, node.device)
        self._attrs = None
        self.buffer, self.start, self.stop = node.buffer, node.start, node.stop
        self.file = file
        self._node, self._regions = node, table

    def decoded(self) -> Mapping[str, AttrValue]:
        """``dtype`` and ``value``.

        Raises:
            FormatError: the region is missing, or too small for the tensor.
        """
        attrs = self._node.attrs
        dtype, shape, name = attrs.get("dtype"), attrs.get("shape"), attrs.get("memory_region_name")
        where = f"{self.file}: node '{self.name}'"
        dims = shape.dims if isinstance(shape, Shape) else None
        if not isinstance(dtype, DType) or dims is None or not isinstance(name, bytes):
            raise FormatError("an ImmutableConst lacks its type, its shape or its region's name", where=where)
        sizes = tuple(-1 if size is None else size for size in dims)
        if any(size < 0 for size in sizes):
            raise FormatError(f"an ImmutableConst has the shape {Shape(dims)}", where=where)
        if not dtype.size:
            raise FormatError(f"Sorry, {dtype.name} is not currently supported for ImmutableConstOp.", where=where)
        key = name.decode("utf-8", "replace")
        region = self._regions.get(key)
        if region is None:
            raise FormatError(f"MappedRegion {key} is not found", where=where)
        count = 1
        for size in sizes:
            count *= size
        needed = count * dtype.numpy.itemsize
        if region.stop - region.start < needed:
            raise FormatError(
                f"Readonly memory region has wrong length ({region.stop - region.start}) when allocating {needed}",
                where=where,
            )
        if region.start % dtype.numpy.itemsize:
            raise FormatError("Readonly memory region has wrong alignment", where=where)
        buffer, start = self.buffer, region.start

        def view() -> np.ndarray[Any, Any]:
            check_length(buffer, start + needed, where)
            raw = np.frombuffer(buffer, np.uint8, needed, start)
            values = raw != 0 if dtype.name == "bool" else raw.view(dtype.numpy)
            values = values if sys.byteorder == "little" else values.byteswap()
            return values.reshape(sizes)

        return MappingProxyType({"dtype": dtype, "value": Tensor(dtype, sizes, read=view)})

    @property
    def extra(self) -> bytes:
        """The fields that this version does not know, as they came."""
        return self._node.extra


def _mapped(node: Node, table: Mapping[str, range], file: str) -> Node:
    """A Const for an ImmutableConst of this package; one that names another file stays, and is never opened."""
    region = node.attr("memory_region_name") if node.op == OP else None
    if not isinstance(region, bytes) or not region.startswith(PREFIX.encode()):
        return node
    assert isinstance(node, FileNode)
    return _RegionNode(node, table, file)


def _element(buffer: Buffer, start: int, stop: int) -> tuple[int, str, int]:
    """One entry of the directory: offset, name, length (0 where it is not stated)."""
    offset = length = 0
    name = ""
    for _, number, kind, value, end in wire.fields(buffer, start, stop):
        if (number, kind) == (1, VARINT):
            offset = value
        elif (number, kind) == (2, LEN):
            name = wire.text(buffer, value, end)
        elif (number, kind) == (3, VARINT):
            length = value
    return offset, name, length
