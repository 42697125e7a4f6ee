"""Files to Graph and back: the only floor that knows what a model looks like on a disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from pocketgraph.errors import FormatError, UsageError
from pocketgraph.formats import graphdef, meta_graph
from pocketgraph.formats.content import Kind, of_content
from pocketgraph.formats.detect import Identity, identify
from pocketgraph.formats.files import PathLike, mapped, write_atomically
from pocketgraph.formats.wire import Buffer
from pocketgraph.graph import Graph, Tensor

__all__ = ["Identity", "Kind", "from_bytes", "identify", "load", "open_checkpoint", "save", "to_bytes"]

FIRST_BYTE = 0x0A  # of a GraphDef that begins with a node
STUMP = 64  # bytes; what a cut left of a GraphDef may look like text when it is shorter


def load(path: PathLike, tags: str | Iterable[str] | None = None, signature: str | None = None) -> Graph:
    """Reads a model file; its content tells what it is, not its name.

    Takes a GraphDef or MetaGraphDef, binary or text, and a SavedModel without variables. Nothing of the weights is read
    until somebody asks for them: tensors stay in the file, which must not be changed in place meanwhile (``save`` never
    does that). Unlike TensorFlow's tools, which take an empty file for an empty graph, this refuses one.

    Args:
        path: a file, or a SavedModel's directory.
        tags: which graph of a SavedModel, as in ``"serve"`` or ``("serve", "gpu")``.
        signature: which of the file's signatures gives the graph its inputs and outputs.

    Raises:
        FormatError: there is no such file, it is damaged, or it is something else; the message says what.
        UsageError: the file has no such tags or signature.
    """
    name = os.fspath(path)
    if not os.path.exists(name) or os.path.isdir(name):
        identity = identify(name)
        if identity.kind is not Kind.SAVED_MODEL:
            raise identity.refusal()
        return _frozen(identity, tags, signature)
    buffer = mapped(name)
    kind = of_content(buffer, name)
    if kind in (Kind.SAVED_MODEL_FILE, Kind.SAVED_MODEL_TEXT):
        return _frozen(identify(name), tags, signature)
    if kind in (Kind.META_GRAPH, Kind.META_GRAPH_TEXT):
        if kind is Kind.META_GRAPH_TEXT:
            buffer = _binary(buffer, "tensorflow.MetaGraphDef", name)
        chosen = meta_graph.parse(buffer, name)
        if tags is not None:
            chosen = meta_graph.with_tags([chosen], tags, name)
        return meta_graph.with_signature(chosen.graph, signature, name)
    if kind not in (Kind.GRAPH_DEF, Kind.GRAPH_DEF_TEXT):
        return _undetected(buffer, name)
    if tags is not None or signature is not None:
        raise UsageError(
            f"a GraphDef has no {'signatures' if tags is None else 'tags'}", where=name, hint="leave that argument out"
        )
    if kind is Kind.GRAPH_DEF_TEXT:
        buffer = _binary(buffer, "tensorflow.GraphDef", name)
    return graphdef.parse(buffer, name)


def from_bytes(data: bytes | bytearray | memoryview, name: str = "<bytes>") -> Graph:
    """The graph of an encoded GraphDef; tensors stay in ``data`` when that is ``bytes``, else in a copy.

    No bytes are the encoding of an empty graph.

    Args:
        data: the GraphDef.
        name: what to call it in error messages.

    Raises:
        FormatError: it is not one.
    """
    return graphdef.parse(data if isinstance(data, bytes) else bytes(data), name)


def save(graph: Graph, path: PathLike, text: bool = False) -> None:
    """Writes a graph as a GraphDef, whole or not at all; nodes that nobody changed as their file had them.

    The path may be the file that the graph was loaded from. What is written does not depend on anything but the graph.

    Args:
        graph: the graph; it may be larger than 2 GB.
        path: where to; an existing file is replaced.
        text: write the text form instead.

    Raises:
        PocketgraphError: the directory does not exist or the file cannot be written.
        FormatError: the graph holds what the text form cannot carry.
        GraphError: an attribute has a value that no file can hold.
    """
    if text:
        from pocketgraph.formats.graphdef_text import print_graph_def

        write_atomically(path, print_graph_def(graph).encode())
    else:
        write_atomically(path, graphdef.chunks(graph))


def to_bytes(graph: Graph) -> bytes:
    """The encoded GraphDef; errors as for ``save``."""
    return b"".join(graphdef.chunks(graph))


def open_checkpoint(path: PathLike) -> Mapping[str, Tensor]:
    """The variables of a checkpoint by name; see ``checkpoint_v2.open_checkpoint``."""
    from pocketgraph.formats import checkpoint_v2

    return checkpoint_v2.open_checkpoint(path)


def _binary(buffer: Buffer, message: str, name: str) -> bytes:
    from pocketgraph.formats.graphdef_text import binary_of

    return binary_of(buffer, message, name)


def _frozen(identity: Identity, tags: str | Iterable[str] | None, signature: str | None) -> Graph:
    """The graph of a SavedModel that needs no variables."""
    graphs = meta_graph.read_saved_model(identity.path)
    chosen = meta_graph.with_tags(graphs, tags, identity.path)
    if chosen.has_variables:
        folder = identity.path if identity.kind is Kind.SAVED_MODEL else os.path.dirname(identity.path) or "."
        raise FormatError(
            "this is a SavedModel whose variables are not frozen into its graph",
            where=identity.path,
            hint=f"pocketgraph freeze_graph --input_saved_model_dir={folder}",
        )
    return meta_graph.with_signature(chosen.graph, signature, identity.path)


def _undetected(buffer: Buffer, name: str) -> Graph:
    """A graph that does not look like one at its beginning; mostly the error that says what is there instead.

    Raises:
        FormatError: what the file is, or where reading it as the GraphDef that it seems to be fails.
    """
    identity = identify(name)
    if identity.kind is Kind.TEXT and name.endswith(".pbtxt"):
        return graphdef.parse(_binary(buffer, "tensorflow.GraphDef", name), name)
    stump = identity.kind is Kind.TEXT and len(buffer) < STUMP
    if (identity.kind is Kind.UNKNOWN or stump) and buffer[0] == FIRST_BYTE:
        graph = graphdef.parse(buffer, name)
        if len(graph):
            return graph
    raise identity.refusal()
