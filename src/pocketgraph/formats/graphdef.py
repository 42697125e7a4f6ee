"""GraphDef: a model file as a Graph, and back, without copying its weights.

Source: tensorflow/core/framework/{graph,node_def,function,versions}.proto. Reading finds each node's name, op, inputs
and device; its attributes are decoded when somebody asks. A node that nobody changed is written as the file had it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping

from pocketgraph.errors import FormatError, GraphError
from pocketgraph.formats import wire
from pocketgraph.formats.attr_value import decode_entry, encode_attr_map
from pocketgraph.formats.wire import LEN, VARINT, Buffer, Chunk, Chunks, WireError
from pocketgraph.graph import AttrValue, Func, Function, Graph, Node, Tensor, Versions

NODE, LIBRARY, VERSIONS = 1, 2, 4
SHORT = 48  # bytes of an attribute that is worth looking up instead of decoding
MOST_ENTRIES = 1 << 14
LARGE = 1 << 17  # bytes of a node from which giving back its pages pays
STEP = 48 << 20  # bytes walked before the pages that were touched on the way are given back


class Origin:
    """What the nodes of one file share.

    Attributes:
        file: its name, for error messages.
        entries: the attributes met so far that take few bytes; a file says ``T: float`` thousands of times.
    """

    __slots__ = ("entries", "file")

    def __init__(self, file: str) -> None:
        self.file = file
        self.entries: dict[bytes, tuple[str, AttrValue]] = {}


class StoredNode:
    """A NodeDef in a buffer: what ``Node.source`` is for nodes that came from a GraphDef."""

    __slots__ = ("_first", "_name", "_origin", "buffer", "start", "stop")

    def __init__(self, buffer: Buffer, start: int, stop: int, name: str, origin: Origin, first: int) -> None:
        """``first`` is where the first attribute begins, ``stop`` when there is none."""
        self.buffer = buffer
        self.start = start
        self.stop = stop
        self._name = name
        self._origin = origin
        self._first = first

    def attrs(self) -> Mapping[str, AttrValue]:
        """Decodes the attributes; tensors stay in the buffer.

        Raises:
            FormatError: they are corrupt.
        """
        where = f"{self._origin.file}: node '{self._name}'"
        table: dict[str, AttrValue] = {}
        buffer, position, end = self.buffer, self._first, self.stop
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
                    key, decoded = self._entry(begin, position, where)
                    table[key] = decoded
        except WireError as error:
            raise FormatError(f"an attribute is corrupt at byte {error.position}: {error}", where=where) from None
        if self.stop - self.start > LARGE:
            wire.release(self.buffer, self.start, self.stop)
        return table

    def _entry(self, start: int, stop: int, where: str) -> tuple[str, AttrValue]:
        if stop - start > SHORT:
            return decode_entry(self.buffer, start, stop, where)
        entries = self._origin.entries
        raw = self.buffer[start:stop]
        entry = entries.get(raw)
        if entry is None:
            entry = decode_entry(self.buffer, start, stop, where)
            value = entry[1]
            first = value[0] if isinstance(value, tuple) and value else value
            if not isinstance(first, Tensor | Func) and len(entries) < MOST_ENTRIES:  # a tensor knows its node
                entries[raw] = entry
        return entry

    def extra(self) -> bytes:
        """The fields that Node has no place for."""
        return b"".join(
            self.buffer[at:stop]
            for at, number, kind, _, stop in wire.fields(self.buffer, self.start, self.stop)
            if number > 5 or kind != LEN
        )


class Reader:
    """Reads one GraphDef out of a buffer."""

    def __init__(self, buffer: Buffer, file: str) -> None:
        self.buffer = buffer
        self.file = file
        self.nodes: list[Node] = []
        self.functions: dict[str, Function] = {}
        self.producer = self.min_consumer = 0
        self.bad_consumers: list[int] = []
        self.extra: list[bytes] = []
        self._texts: dict[bytes, str] = {}
        self._origin = Origin(file)

    def read(self, start: int, stop: int) -> Graph:
        """The graph in ``buffer[start:stop]``.

        Raises:
            WireError: it is not a GraphDef.
            FormatError: two nodes share a name.
        """
        buffer, nodes, read_node = self.buffer, self.nodes, self._node
        released = start
        for at, number, kind, value, end in wire.fields(buffer, start, stop):
            try:
                if number == NODE and kind == LEN:
                    nodes.append(read_node(value, end))
                    if end - released > STEP:
                        released = wire.release(buffer, released, end)
                elif number == LIBRARY and kind == LEN:
                    self._library(value, end)
                elif number == VERSIONS and kind == LEN:
                    self._versions(value, end)
                else:
                    self.extra.append(buffer[at:end])
            except WireError as error:
                error.past = None  # the field itself ends in time, so that the file is not cut short
                raise
            except IndexError:  # a tag is the last byte of the buffer
                raise WireError(end, "a field is cut off") from None
        try:
            return Graph(
                nodes,
                functions=self.functions,
                versions=Versions(self.producer, self.min_consumer, tuple(self.bad_consumers)),
                extra=b"".join(self.extra),
            )
        except GraphError as error:
            raise FormatError(error.what, where=f"{self.file}: {error.where}") from None

    def _node(self, start: int, stop: int) -> Node:
        """Walks a NodeDef. This loop is most of the time that loading takes, so it steps over the common fields by
        their one-byte tags (0x0A is field 1, length-delimited, and so on) and leaves the rest to wire.fields."""
        buffer, texts = self.buffer, self._texts
        name = op = device = ""
        inputs: list[str] = []
        position = start
        first = 0
        while position < stop:
            tag = buffer[position]
            if tag not in COMMON:
                _, _, _, _, position = next(wire.fields(buffer, position, stop))
                continue
            size = buffer[position + 1]
            begin = position + 2
            if size >= 0x80:
                size, begin = wire.read_varint(buffer, position + 1, stop)
            end = begin + size
            if end > stop:
                raise WireError(position, f"a field of {size:,} bytes begins where {stop - begin:,} are left", stop)
            if tag == 0x2A:
                first = first or position
                position = end
                continue
            position = end
            raw = buffer[begin:end]
            text = texts.get(raw)
            if text is None:
                try:
                    text = texts[raw] = raw.decode()
                except UnicodeDecodeError:
                    raise WireError(begin, "a string is not valid UTF-8") from None
            if tag == 0x1A:
                inputs.append(text)
            elif tag == 0x0A:
                name = text
            elif tag == 0x12:
                op = text
            else:
                device = text
        if not name or not op:
            raise WireError(start, f"a node has no {'op' if name else 'name'}")
        return Node(
            name, op, inputs, None, device, source=StoredNode(buffer, start, stop, name, self._origin, first or stop)
        )

    def _library(self, start: int, stop: int) -> None:
        """Functions are taken apart; gradients and what else the library holds is kept as a library of its own."""
        rest = []
        for at, number, kind, value, end in wire.fields(self.buffer, start, stop):
            if number == 1 and kind == LEN:
                self._function(value, end)
            else:
                rest.append(self.buffer[at:end])
        if rest or start == stop:
            self.extra.append(wire.bytes_field(LIBRARY, b"".join(rest)))

    def _function(self, start: int, stop: int) -> None:
        name = ""
        nodes = []
        for _, number, kind, value, end in wire.fields(self.buffer, start, stop):
            if number == 1 and kind == LEN:
                for _, inner, inner_kind, inner_value, inner_end in wire.fields(self.buffer, value, end):
                    if inner == 1 and inner_kind == LEN:
                        name = wire.text(self.buffer, inner_value, inner_end)
            elif number == 3 and kind == LEN:
                nodes.append(self._node(value, end))
        if name in self.functions:
            raise FormatError("two functions have this name", where=f"{self.file}: function '{name}'")
        self.functions[name] = Function(name, tuple(nodes), self.buffer[start:stop])

    def _versions(self, start: int, stop: int) -> None:
        rest = []
        for at, number, kind, value, end in wire.fields(self.buffer, start, stop):
            if number == 1 and kind == VARINT:
                self.producer = wire.int32(value)
            elif number == 2 and kind == VARINT:
                self.min_consumer = wire.int32(value)
            elif number == 3 and kind == VARINT:
                self.bad_consumers.append(wire.int32(value))
            elif number == 3 and kind == LEN:
                self.bad_consumers += map(wire.int32, wire.packed_varints(self.buffer, value, end).tolist())
            else:
                rest.append(self.buffer[at:end])
        if rest or not (self.producer or self.min_consumer or self.bad_consumers):
            self.extra.append(wire.bytes_field(VERSIONS, b"".join(rest)))


COMMON = frozenset((0x0A, 0x12, 0x1A, 0x22, 0x2A))


def parse(buffer: Buffer, file: str, start: int = 0, stop: int | None = None) -> Graph:
    """The GraphDef in a buffer as a Graph whose tensors stay in the buffer.

    Args:
        buffer: a mapped file or bytes.
        file: its name, for error messages.
        start, stop: where the GraphDef lies in it; the whole buffer by default.

    Raises:
        FormatError: it is not a GraphDef; the message says at which byte that shows.
    """
    end = len(buffer) if stop is None else stop
    collecting = gc.isenabled()
    gc.disable()  # thousands of objects that all stay would be looked at again and again
    try:
        return Reader(buffer, file).read(start, end)
    except WireError as error:
        raise corrupt(error, file, len(buffer)) from None
    finally:
        if collecting:
            gc.enable()


def corrupt(error: WireError, file: str, end: int) -> FormatError:
    """The error for a file that is damaged, or cut short where a field runs past its ``end``."""
    if error.past == end:
        return FormatError(
            f"the file is cut short: it ends at byte {end:,}, within the field that begins at byte {error.position:,}",
            where=file,
            hint="copy, download or write it again",
        )
    return FormatError(f"the file is corrupt at byte {error.position:,}: {error}", where=file)


def chunks(graph: Graph) -> Iterator[Chunk]:
    """The GraphDef of a graph in pieces; a run of untouched neighbours is one piece of the file they came from."""
    rest: dict[int, list[bytes]] = {LIBRARY: [], VERSIONS: []}
    others: list[bytes] = []
    for at, number, kind, value, end in wire.fields(graph.extra, 0, len(graph.extra)):
        if number in rest and kind == LEN:
            rest[number].append(graph.extra[value:end])
        else:
            others.append(graph.extra[at:end])
    yield from node_chunks(graph.nodes.values())
    library: Chunks = []
    for function in graph.functions.values():
        library += wire.message_field(1, encode_function(function))
    if library or rest[LIBRARY]:
        yield from wire.message_field(LIBRARY, library + list(rest[LIBRARY]))
    versions = encode_versions(graph.versions)
    if versions or rest[VERSIONS]:
        yield wire.bytes_field(VERSIONS, versions + b"".join(rest[VERSIONS]))
    yield from others


def node_chunks(nodes: Iterable[Node], number: int = NODE) -> Iterator[Chunk]:
    """The nodes as fields of this number."""
    buffer: Buffer | None = None
    start = stop = 0
    for node in nodes:
        source = node.source
        if isinstance(source, StoredNode):
            head = wire.header(number, source.stop - source.start)
            begin = source.start - len(head)
            if source.buffer is buffer and begin == stop:
                stop = source.stop
                continue
            if buffer is not None:
                yield wire.view(buffer, start, stop)
                buffer = None
            if begin >= 0 and source.buffer[begin : source.start] == head:
                buffer, start, stop = source.buffer, begin, source.stop
            else:
                yield head
                yield wire.view(source.buffer, source.start, source.stop)
            continue
        if buffer is not None:
            yield wire.view(buffer, start, stop)
            buffer = None
        yield from wire.message_field(number, encode_node(node))
    if buffer is not None:
        yield wire.view(buffer, start, stop)


def encode_node(node: Node) -> Chunks:
    """The NodeDef of a node that is new or changed.

    Raises:
        GraphError: an attribute has a value that no file can hold.
    """
    parts: Chunks = [wire.bytes_field(1, node.name), wire.bytes_field(2, node.op)]
    parts += [wire.bytes_field(3, name) for name in node.inputs]
    if node.device:
        parts.append(wire.bytes_field(4, node.device))
    try:
        parts += encode_attr_map(5, node.attrs)
    except GraphError as error:
        raise GraphError(error.what, where=f"node '{node.name}'") from None
    if node.extra:
        parts.append(node.extra)
    return parts


def encode_function(function: Function) -> Chunks:
    """The FunctionDef of a function: what its file said, with its nodes as they are now.

    Raises:
        GraphError: it came from no file, so that nobody knows its arguments and results.
    """
    if not function.encoded:
        raise GraphError("the function has no definition to write", where=f"function '{function.name}'")
    parts: Chunks = []
    written = False
    for at, number, kind, _, stop in wire.fields(function.encoded, 0, len(function.encoded)):
        if number == 3 and kind == LEN:
            if not written:
                parts += node_chunks(function.nodes, 3)
            written = True
        else:
            parts.append(function.encoded[at:stop])
    return parts if written else [*parts, *node_chunks(function.nodes, 3)]


def encode_versions(versions: Versions) -> bytes:
    parts = b""
    if versions.producer:
        parts += wire.number_field(1, versions.producer)
    if versions.min_consumer:
        parts += wire.number_field(2, versions.min_consumer)
    if versions.bad_consumers:
        parts += wire.bytes_field(3, b"".join(map(wire.varint, versions.bad_consumers)))
    return parts
