"""Files to Graph and back: the only floor that knows what a model looks like on a disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pocketgraph.errors import UsageError, path_of
from pocketgraph.formats import graphdef
from pocketgraph.graph import Graph, Tensor, check_graph
from pocketgraph.graph.garbage_collection import collector_paused
from pocketgraph.graph.model_file_graph import check_graph_def_form, is_litert_file, is_model_file
from pocketgraph.lazy_members import lazy_members
from pocketgraph.protobuf.wire import Buffer

if TYPE_CHECKING:
    from pocketgraph.formats.content import Kind
    from pocketgraph.formats.detect import Identity, identify
    from pocketgraph.formats.files import PathLike
    from pocketgraph.formats.sealed import Key

__all__ = ["Identity", "Kind", "from_bytes", "identify", "load", "open_checkpoint", "save", "to_bytes"]

__getattr__ = lazy_members(__name__, {"Identity": "detect", "identify": "detect", "Kind": "content"})
"""A session that finds its plan in the cache reads GraphDefs only."""
AS_LOADED: WeakKeyDictionary[Graph, Buffer] = WeakKeyDictionary()
"""The content of the file whose graph this is, as it was read, with whatever main signature it has."""
FIRST_BYTE = 0x0A  # of a GraphDef that begins with a node
HEAD = 64  # bytes by which a form may say that a file is its own
STUMP = 64  # bytes; what a cut left of a GraphDef may look like text when it is shorter


def load(
    path: PathLike,
    tags: str | Iterable[str] | None = None,
    signature: str | None = None,
    *,
    key: Key | None = None,
    decrypt: Callable[[bytes], bytes] | None = None,
) -> Graph:
    """Reads a model file; its content tells what it is, not its name.

    Takes a GraphDef or MetaGraphDef, binary or text, a memory-mapped package, a SavedModel, the ``model.json`` of a
    graph model of TensorFlow.js, and any of these files sealed. Nothing of the weights is read until somebody asks for
    them: tensors stay in the file, which must not be changed in place meanwhile (``save`` never does that). Unlike
    TensorFlow's tools, which take an empty file for an empty graph, this refuses one.

    The graph of a SavedModel is given as it is stored, with its signatures. Values of variables are in the checkpoint
    beside the file or in the directory; the graph remembers where, and ``freeze`` puts them in.

    Args:
        path: a file, or the directory of a SavedModel, of a model of TensorFlow.js, or around an export's only version.
        tags: which graph of a SavedModel, as in ``"serve"`` or ``("serve", "gpu")``.
        signature: which of the file's signatures gives the graph its inputs and outputs.
        key: opens a sealed file; see ``sealed.Key`` for the ways to give it.
        decrypt: your own routine, given the file's bytes; what it returns is read in place of the file. Neither way
            writes to the disk.

    Returns:
        The graph. It does not change; ``graph.replace`` and ``transform`` make changed copies.

    Raises:
        FormatError: there is no such file, it is damaged, or it is something else; the message says what.
        UsageError: it is no path; the file has no such tags or signature; a sealed file comes without a key.
    """
    from pocketgraph.formats.content import SEAL, Kind
    from pocketgraph.formats.files import mapped

    if not isinstance(path, (str, os.PathLike)):
        raise UsageError(
            f"a model is read from a path, not from {type(path).__name__}",
            hint="pocketgraph.formats.from_bytes(data) makes a Graph of an encoded GraphDef",
        )
    name = os.fspath(path)
    if decrypt is not None:
        if key is not None:
            raise UsageError("give a key or a routine that decrypts, not both", where=name)
        return _secret(decrypt(bytes(mapped(name))), name, tags, signature)
    if not os.path.exists(name) or os.path.isdir(name):
        from pocketgraph.formats import meta_graph
        from pocketgraph.formats.detect import identify, model_at
        from pocketgraph.formats.forms import of_saved_model

        meant = model_at(name)
        if meant != name:
            return load(meant, tags=tags, signature=signature)
        identity = identify(name)
        if identity.kind is not Kind.SAVED_MODEL:
            raise identity.refusal()
        return of_saved_model(meta_graph.read_saved_model(name), name, tags, signature).replace(source=name)
    buffer = mapped(name)
    if key is not None or buffer[: len(SEAL)] == SEAL:
        from pocketgraph.formats.sealed import opened

        return _secret(opened(buffer, key, name), name, tags, signature)
    graph = _of_buffer(buffer, name, tags, signature)
    if tags is None and signature is None:
        AS_LOADED[graph] = buffer
    return graph


def _secret(content: object, name: str, tags: str | Iterable[str] | None, signature: str | None) -> Graph:
    """The graph of a decrypted file."""
    if not isinstance(content, bytes | bytearray | memoryview):
        raise UsageError(f"the routine that decrypts gave a {type(content).__name__}, not bytes", where=name)
    return _of_buffer(bytes(content), name, tags, signature).replace(secret=True)


def _of_buffer(buffer: Buffer, name: str, tags: str | Iterable[str] | None, signature: str | None) -> Graph:
    """The graph of a file with this content."""
    from pocketgraph.formats.content import of_content
    from pocketgraph.formats.forms import reader

    kind = of_content(buffer, name)
    read = reader(kind, bytes(buffer[:HEAD]))
    graph = _undetected(buffer, kind, name) if read is None else read(buffer, name, tags, signature)
    return graph.replace(source=name)


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


@collector_paused()
def graph_of(model: Graph | PathLike, caller: str) -> Graph:
    """A graph as it is, or that of a file or a SavedModel as ``load`` reads it.

    Raises:
        UsageError: it is neither; ``caller`` is the function that was given it.
        FormatError: there is no such file, or it is damaged.
    """
    if isinstance(model, (str, os.PathLike)):
        return load(model)
    check_graph(model, caller)
    return model


def save(graph: Graph, path: PathLike, text: bool | None = None, *, form: str = "") -> None:
    """Writes a graph, whole or not at all; nodes that nobody changed as their file had them.

    The path may be the file that the graph was loaded from. What is written does not depend on anything but the graph.

    >>> from pocketgraph.graph.text_format import parse
    >>> save(parse("x = Placeholder(dtype=float)\\ny = Neg(x, T=float)"), "small.pbtxt")
    >>> load("small.pbtxt")["y"]
    y = Neg(x, T=float)

    Args:
        graph: the graph; as a GraphDef it may be larger than 2 GB.
        path: where to; an existing file is replaced.
        text: True is the same as ``form="text"``, False as ``form="graphdef"``; by default the name decides: text for
            ``.pbtxt``, a MetaGraphDef, which keeps the signatures, for ``.meta``, a GraphDef for all others.
        form: ``graphdef``, ``text``, ``memmapped`` (a memory-mapped package), ``saved_model`` (a
            directory that must not exist yet; the graph must be frozen), ``meta`` (a MetaGraphDef).

    Raises:
        PocketgraphError: the directory does not exist or the file cannot be written.
        FormatError: the graph holds what the form cannot carry.
        GraphError: an attribute has a value that no file can hold.
        UsageError: there is no such form, or the path is none, or the graph.
    """
    check_graph(graph, "save")
    from pocketgraph.formats.forms import form_for, writer

    place = path_of(path, "what to write")
    if is_model_file(graph):
        suffix = ".tflite" if is_litert_file(graph) else ".onnx"
        if not place.endswith(suffix) or form or text:
            check_graph_def_form(graph, place)
        writer(suffix[1:])(graph, place)
        return
    named = form_for(os.path.splitext(place)[1]) if text is None else "graphdef"
    writer(form or ("text" if text else named))(graph, place)


def to_bytes(graph: Graph) -> bytes:
    """The graph as an encoded GraphDef; errors as for ``save``."""
    return b"".join(graphdef.chunks(graph))


def open_checkpoint(path: PathLike) -> Mapping[str, Tensor]:
    """The variables of a checkpoint by name; a tensor's values are read when ``numpy()`` asks for them.

    >>> import numpy as np
    >>> from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
    >>> write_checkpoint("model.ckpt-1", {"w": Tensor.from_numpy(np.float32([[1, 2]]))})
    >>> w = open_checkpoint("model.ckpt-1")["w"]
    >>> w.dtype.name, w.shape, w.numpy()
    ('float', (1, 2), array([[1., 2.]], dtype=float32))

    Args:
        path: the prefix (``model.ckpt-1000``), one of its files, or the directory that holds them, for the latest.

    Raises:
        FormatError: there is no such checkpoint, or its index is damaged.
    """
    from pocketgraph.formats.checkpoints import checkpoint

    return checkpoint.open_checkpoint(path)


def _undetected(buffer: Buffer, kind: Kind, name: str) -> Graph:
    """A graph that does not look like one at its beginning; mostly the error that says what is there instead.

    Raises:
        FormatError: what the file is, or where reading it as the GraphDef that it seems to be fails.
    """
    from pocketgraph.formats.content import Kind
    from pocketgraph.formats.detect import identity_of

    if kind is Kind.TEXT and name.endswith(".pbtxt"):
        from pocketgraph.formats.graphdef_text import binary_of

        return graphdef.parse(binary_of(buffer, "tensorflow.GraphDef", name), name)
    stump = kind is Kind.TEXT and len(buffer) < STUMP
    if (kind is Kind.UNKNOWN or stump) and buffer[0] == FIRST_BYTE:
        graph = graphdef.parse(buffer, name)
        if len(graph):
            return graph
    raise identity_of(name, kind).refusal()
