"""GraphDef: a model file as a Graph, and back, without copying its weights.

Source: tensorflow/core/framework/{graph,node_def,function,versions}.proto. Reading finds each node's name, op, inputs
and device; its attributes are decoded when somebody asks. A node that nobody changed is written as the file had it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pocketgraph.errors import AGAIN, FormatError, GraphError
from pocketgraph.formats.attr_value import encode_attr_map
from pocketgraph.formats.file_node import FileNode, Origin
from pocketgraph.formats.files import check_length
from pocketgraph.graph import Function, Graph, Node, Versions
from pocketgraph.graph.garbage_collection import collector_paused
from pocketgraph.graph.model_file_graph import check_graph_def_form
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import LEN, VARINT, Buffer, Chunk, Chunks, WireError

NODE, LIBRARY, VERSIONS = 1, 2, 4
STEP = 48 << 20  # bytes walked before the pages that were touched on the way are given back
WINDOW = 384  # bytes of a node looked at in one piece; few names and inputs take more
WIDE = 1 << 13  # bytes looked at when those did not suffice
MOST_RUNS = 1 << 14  # runs of attributes that are remembered
SHORT_RUN = 160  # bytes of attributes that are remembered once they were found to be well-formed


class GraphDefReader:
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
        self._runs: set[bytes] = set()  # short runs of attributes that were found to be well-formed
        self._origin = Origin(file)

    def read(self, start: int, stop: int) -> Graph:
        """The graph in ``buffer[start:stop]``.

        Raises:
            WireError: it is not a GraphDef.
            FormatError: two nodes share a name.
        """
        position = start
        while position < stop:
            position = self._usual_nodes(position, stop)
            if position < stop:
                position = self._field(position, stop)
        try:
            return Graph(
                self.nodes,
                functions=self.functions,
                versions=Versions(self.producer, self.min_consumer, tuple(self.bad_consumers)),
                extra=b"".join(self.extra),
            )
        except GraphError as error:
            raise FormatError(error.what, where=f"{self.file}: {error.where}") from None

    def _usual_nodes(self, position: int, stop: int) -> int:
        """Reads nodes for as long as they are as writers leave them; says where the first other field begins.

        This loop is most of the time that loading takes. It looks at the beginning of each node in one piece, goes by
        one-byte tags (0x0A is field 1, length-delimited, and so on) in the order in which they are written, and
        leaves whatever is different to ``_field``.
        """
        buffer, texts, runs, origin, nodes = self.buffer, self._texts, self._runs, self._origin, self.nodes
        known, append = texts.get, nodes.append
        released, window = position, WINDOW
        while position < stop:
            head = buffer[position : position + window]
            try:
                size, at = head[1], 2
                if size >= 0x80:
                    more = head[2]
                    if more < 0x80:
                        size, at = size & 0x7F | more << 7, 3
                    else:
                        size, at = wire.read_varint(head, 1, window)
                length = at + size
                end = position + length
                if end > stop or head[0] != 0x0A or head[at] != 0x0A:
                    return position
                size, at_text = head[at + 1], at + 2
                if size >= 0x80:
                    size, at_text = wire.read_varint(head, at + 1, window)
                here = at_text + size
                if head[here] != 0x12:
                    return position
                raw = head[at_text:here]
                name = texts[raw] = raw.decode()
                size, at_text = head[here + 1], here + 2
                if size >= 0x80:
                    return position
                here = at_text + size
                raw = head[at_text:here]
                op = known(raw)
                if op is None:
                    op = texts[raw] = raw.decode()
                inputs: list[str] = []
                while here < length and head[here] == 0x1A:
                    size, at_text = head[here + 1], here + 2
                    if size >= 0x80:
                        size, at_text = wire.read_varint(head, here + 1, window)
                    here = at_text + size
                    raw = head[at_text:here]
                    text = known(raw)
                    if text is None:
                        text = texts[raw] = raw.decode()
                    inputs.append(text)
                device = ""
                if here < length and head[here] == 0x22:
                    size, at_text = head[here + 1], here + 2
                    if size >= 0x80:
                        return position
                    here = at_text + size
                    raw = head[at_text:here]
                    device = known(raw) or texts.setdefault(raw, raw.decode())
                first = here
                while here < length:
                    if length - here < SHORT_RUN:  # the rest is short and most likely known
                        begin = position + here
                        run = head[here:length] if length <= window else buffer[begin:end]
                        if run not in runs:
                            if attributes_end(buffer, begin, end) != end:
                                return position
                            if len(runs) < MOST_RUNS:
                                runs.add(run)
                        here = length
                    elif head[here] == 0x2A:
                        size, here = head[here + 1], here + 2
                        if size >= 0x80:
                            more = head[here]
                            if more < 0x80:
                                size, here = size & 0x7F | more << 7, here + 1
                            else:
                                size, here = wire.read_varint(head, here - 1, window)
                        here += size
                    else:
                        return position
                if here != length or first > window or not name or not op:
                    return position
            except IndexError:
                if window == WINDOW and len(head) == WINDOW:
                    window = WIDE
                    continue
                return position
            except (WireError, UnicodeDecodeError):
                return position
            start, first = end - length + at, position + first
            append(FileNode(name, op, tuple(inputs), device, buffer, start, end, first, origin, is_usual=True))
            window = WINDOW
            position = end
            if end - released > STEP:
                released = wire.release(buffer, released, end)
        return position

    def _field(self, start: int, stop: int) -> int:
        """Reads one field of the GraphDef, whatever it is, and says where it ends.

        Raises:
            WireError: it is malformed.
        """
        at, number, kind, value, end = next(wire.fields(self.buffer, start, stop))
        try:
            if number == NODE and kind == LEN:
                self.nodes.append(self._node(value, end))
            elif number == LIBRARY and kind == LEN:
                self._library(value, end)
            elif number == VERSIONS and kind == LEN:
                self._versions(value, end)
            else:
                self.extra.append(self.buffer[at:end])
        except WireError as error:
            error.past = None  # the field itself ends in time, so that the file is not cut short
            raise
        return end

    def _node(self, start: int, stop: int) -> Node:
        """Walks a NodeDef whose fields may come in any order."""
        name = op = device = ""
        inputs: list[str] = []
        first = 0
        is_usual = True
        for at, number, kind, value, end in wire.fields(self.buffer, start, stop):
            is_usual = is_usual and kind == LEN and number <= 5
            if kind != LEN:
                continue
            if number == 5:
                first = first or at
            elif number == 3:
                inputs.append(self._text(value, end))
            elif number == 1:
                name = self._text(value, end)
            elif number == 2:
                op = self._text(value, end)
            elif number == 4:
                device = self._text(value, end)
        if not name or not op:
            raise WireError(start, f"a node has no {'op' if name else 'name'}")
        first = first or stop
        return FileNode(name, op, tuple(inputs), device, self.buffer, start, stop, first, self._origin, is_usual)

    def _text(self, start: int, stop: int) -> str:
        raw = self.buffer[start:stop]
        text = self._texts.get(raw)
        if text is None:
            text = self._texts[raw] = wire.text(self.buffer, start, stop)
        return text

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


def attributes_end(buffer: Buffer, position: int, stop: int) -> int:
    """Where a run of a node's attributes ends: ``stop``, or where a field of another kind begins.

    Raises:
        WireError: an attribute's length is malformed.
    """
    while position < stop and buffer[position] == 0x2A:
        size, position = wire.read_varint(buffer, position + 1, stop)
        position += size
    return position


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
    try:
        with collector_paused():
            return GraphDefReader(buffer, file).read(start, end)
    except WireError as error:
        raise corrupt(error, file, len(buffer)) from None


def corrupt(error: WireError, file: str, end: int) -> FormatError:
    """The error for a file that is damaged, or cut short where a field runs past its ``end``."""
    if error.past == end:
        return FormatError(
            f"the file is cut short: it ends at byte {end:,}, within the field that begins at byte {error.position:,}",
            where=file,
            hint=AGAIN,
        )
    return FormatError(f"the file is corrupt at byte {error.position:,}: {error}", where=file)


def chunks(graph: Graph) -> Iterator[Chunk]:
    """The GraphDef of a graph in pieces; a run of untouched neighbours is one piece of the file they came from."""
    check_graph_def_form(graph)
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
    """The nodes as fields of this number. Raises FormatError where their file has become shorter."""
    buffer: Buffer | None = None
    start = stop = 0
    for node in nodes:
        if isinstance(node, FileNode):
            head = wire.header(number, node.stop - node.start)
            begin = node.start - len(head)
            if node.buffer is buffer and begin == stop:
                stop = node.stop
                continue
            if buffer is not None:
                yield wire.view(buffer, start, stop)
                buffer = None
            check_length(node.buffer, len(node.buffer), node.file)
            if begin >= 0 and node.buffer[begin : node.start] == head:
                buffer, start, stop = node.buffer, begin, node.stop
            else:
                yield head
                yield wire.view(node.buffer, node.start, node.stop)
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
    """A VersionDef message; fields that are zero are left out, as protobuf does."""
    parts = b""
    if versions.producer:
        parts += wire.number_field(1, versions.producer)
    if versions.min_consumer:
        parts += wire.number_field(2, versions.min_consumer)
    if versions.bad_consumers:
        parts += wire.bytes_field(3, b"".join(map(wire.varint, versions.bad_consumers)))
    return parts
