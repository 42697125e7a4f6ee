"""A node that lies in a file: it decodes its attributes when somebody asks, and is written back as it was read.

Source: tensorflow/core/framework/node_def.proto.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pocketgraph.errors import FormatError
from pocketgraph.formats.attr_value import decode_entry
from pocketgraph.formats.files import check_length
from pocketgraph.formats.tensor_proto import usual_value
from pocketgraph.graph import AttrValue, Func, Node, Tensor
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import LEN, Buffer, WireError

SHORT = 48  # bytes of an attribute that is worth looking up instead of decoding
SHORT_TABLE = 160  # bytes of all of a node's attributes that are
MOST_ENTRIES = 1 << 14  # encoded nodes that are remembered
LARGE = 1 << 17  # bytes of a node from which giving back its pages pays
PATIENCE = 32  # such nodes whose pages are given back together
COMMON = frozenset((0x0A, 0x12, 0x1A, 0x22, 0x2A))


class Origin:
    """What the nodes of one file share.

    Attributes:
        file: its name, for error messages.
        entries: the attributes met so far that take few bytes; a file says ``T: float`` thousands of times.
        tables: all the attributes of a node, likewise.
    """

    __slots__ = ("_first", "_last", "_touched", "entries", "file", "tables")

    def __init__(self, file: str) -> None:
        self.file = file
        self.entries: dict[bytes, tuple[str, AttrValue]] = {}
        self.tables: dict[bytes, Mapping[str, AttrValue]] = {}
        self._touched = self._first = self._last = 0

    def touched(self, buffer: Buffer, start: int, stop: int) -> None:
        """Notes that pages of a large node were looked at, and gives back those of many such nodes at once."""
        if not self._touched:
            self._first, self._last = start, stop
        self._touched += 1
        self._first, self._last = min(self._first, start), max(self._last, stop)
        if self._touched == PATIENCE:
            wire.release(buffer, self._first, self._last)
            self._touched = 0


class FileNode(Node):
    """A NodeDef in a buffer.

    Attributes:
        buffer, start, stop: where it lies.
        origin: what it shares with the file's other nodes.
        first: where its first attribute begins; ``stop`` when it has none.
        is_usual: whether it is known to have no fields but those that Node has a place for.
    """

    __slots__ = ("buffer", "first", "is_usual", "origin", "start", "stop")

    def __init__(
        self,
        name: str,
        op: str,
        inputs: tuple[str, ...],
        device: str,
        buffer: Buffer,
        start: int,
        stop: int,
        first: int,
        origin: Origin,
        is_usual: bool = False,
    ) -> None:
        """A reader makes thousands of these, so that this takes the parts as they will be kept."""
        self.name = name
        self.op = op
        self.inputs = inputs
        self.device = device
        self._attrs = None
        self.buffer = buffer
        self.start = start
        self.stop = stop
        self.first = first
        self.origin = origin
        self.is_usual = is_usual

    @property
    def file(self) -> str:
        """The file's name."""
        return self.origin.file

    @property
    def extra(self) -> bytes:
        """The fields that Node has no place for."""
        if self.is_usual:
            return b""
        return b"".join(
            self.buffer[at:stop]
            for at, number, kind, _, stop in wire.fields(self.buffer, self.start, self.stop)
            if number > 5 or kind != LEN
        )

    def decoded(self) -> Mapping[str, AttrValue]:
        """Decodes the attributes; tensors stay in the buffer.

        Raises:
            FormatError: they are corrupt.
        """
        tables, buffer, position, end = self.origin.tables, self.buffer, self.first, self.stop
        raw = b""
        if end - position <= SHORT_TABLE:
            raw = buffer[position:end]
            known = tables.get(raw)
            if known is not None:
                return known
        where = f"{self.origin.file}: node '{self.name}'"
        if not raw:
            check_length(buffer, end, where)
        table: dict[str, AttrValue] = {}
        shared = bool(raw)
        try:
            while position < end:
                tag = buffer[position]
                if tag not in COMMON:
                    _, _, _, _, position = next(wire.fields(buffer, position, end))
                    continue
                size, begin = buffer[position + 1], position + 2  # the reader has made sure of the fields' sizes
                if size >= 0x80:
                    size, begin = wire.read_varint(buffer, position + 1, end)
                position = begin + size
                if tag == 0x2A:
                    if size > SHORT and (tensor := usual_value(buffer, begin, position, where)) is not None:
                        table["value"] = tensor
                        shared = False
                        continue
                    key, decoded, known_entry = self._entry(begin, position, where)
                    shared = shared and known_entry
                    table[key] = decoded
        except WireError as error:
            raise FormatError(f"an attribute is corrupt at byte {error.position}: {error}", where=where) from None
        if self.stop - self.start > LARGE:
            self.origin.touched(buffer, self.start, self.stop)
        result = MappingProxyType(table)
        if shared and len(tables) < MOST_ENTRIES:
            tables[raw] = result
        return result

    def _entry(self, start: int, stop: int, where: str) -> tuple[str, AttrValue, bool]:
        """An attribute's name and value, and whether other nodes may have the same one."""
        if stop - start > SHORT:
            return (*decode_entry(self.buffer, start, stop, where), False)
        entries = self.origin.entries
        raw = self.buffer[start:stop]
        entry = entries.get(raw)
        if entry is None:
            entry = decode_entry(self.buffer, start, stop, where)
            value = entry[1]
            first = value[0] if isinstance(value, tuple) and value else value
            if isinstance(first, Tensor | Func):
                return (*entry, False)  # a tensor knows its node
            if len(entries) < MOST_ENTRIES:
                entries[raw] = entry
        return (*entry, True)
