"""The table of file forms: how a graph is written in each, and read from each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from pocketgraph.errors import FormatError, UsageError
from pocketgraph.formats import graphdef
from pocketgraph.formats.content import Kind
from pocketgraph.formats.files import PathLike, write_atomically
from pocketgraph.graph import Graph
from pocketgraph.graph.model_file_graph import is_litert_file, is_model_file
from pocketgraph.graph.record import Record
from pocketgraph.protobuf.wire import Buffer

if TYPE_CHECKING:
    from pocketgraph.formats.meta_graph import MetaGraph

Writer: TypeAlias = Callable[[Graph, PathLike], None]
"""Writes a graph to a path, whole or not at all."""
Tags: TypeAlias = "str | Iterable[str] | None"
Reader: TypeAlias = Callable[[Buffer, str, Tags, "str | None"], Graph]
"""The graph of a file's content; the file's name, the tags and the signature that are asked for."""


class FileForm(Record):
    """One form of model files.

    Attributes:
        name: what ``save`` and ``convert`` call it.
        write: how a graph is written in it; None where it is only read.
        read: how a graph is read from it; None where it is only written.
        suffixes: the endings of file names that mean this form when none is said.
        kinds: what ``content.of_content`` says of such files.
        magic: how such files begin, where ``of_content`` does not know the form.
    """

    name: str
    write: Writer | None = None
    read: Reader | None = None
    suffixes: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    magic: bytes = b""


FORMS: dict[str, FileForm] = {}
"""The forms by name."""


def add_form(form: FileForm) -> None:
    """Adds a form.

    Raises:
        UsageError: there is one of this name, or one for the same endings or files.
    """
    for other in FORMS.values():
        shared = {*form.suffixes, *form.kinds} & {*other.suffixes, *other.kinds}
        if other.name == form.name or shared or (form.magic and form.magic == other.magic):
            raise UsageError(f"the form '{form.name}' is the form '{other.name}' of the table, or has files like it")
    FORMS[form.name] = form


def form_for(suffix: str) -> str:
    """The name of the form that files of this ending have when none is said."""
    return next((form.name for form in FORMS.values() if suffix in form.suffixes), "graphdef")


def writer(name: str) -> Writer:
    """How a graph is written in the form of this name.

    Raises:
        UsageError: there is no such form.
    """
    form = FORMS.get(name)
    if form is None or form.write is None:
        *first, last = (form.name for form in FORMS.values() if form.write is not None)
        raise UsageError(f"there is no form '{name}'", hint=f"there are {', '.join(first)} and {last}")
    return form.write


def reader(kind: Kind, head: bytes) -> Reader | None:
    """How a graph is read from a file of this kind that begins so; None when that is no model."""
    for form in FORMS.values():
        if form.read is not None and (kind in form.kinds or (form.magic and head.startswith(form.magic))):
            return form.read
    return None


def _binary(buffer: Buffer, message: str, name: str) -> bytes:
    from pocketgraph.formats.graphdef_text import binary_of

    return binary_of(buffer, message, name)


def _plain(tags: Tags, signature: str | None, kind: Kind, name: str) -> None:
    """Makes sure that nobody asks a form that has neither for tags or a signature.

    Raises:
        UsageError: somebody does.
    """
    if tags is not None or signature is not None:
        raise UsageError(
            f"{kind.value[0]} has no {'signatures' if tags is None else 'tags'}", where=name,
            hint="leave that argument out",
        )  # fmt: skip


def _read_graphdef(buffer: Buffer, name: str, tags: Tags, signature: str | None) -> Graph:
    _plain(tags, signature, Kind.GRAPH_DEF, name)
    return graphdef.parse(buffer, name)


def _write_graphdef(graph: Graph, path: PathLike) -> None:
    write_atomically(path, graphdef.chunks(graph))


def _read_text(buffer: Buffer, name: str, tags: Tags, signature: str | None) -> Graph:
    _plain(tags, signature, Kind.GRAPH_DEF_TEXT, name)
    return graphdef.parse(_binary(buffer, "tensorflow.GraphDef", name), name)


def _write_text(graph: Graph, path: PathLike) -> None:
    from pocketgraph.formats.graphdef_text import print_graph_def

    write_atomically(path, print_graph_def(graph).encode())


def _read_memmapped(buffer: Buffer, name: str, tags: Tags, signature: str | None) -> Graph:
    from pocketgraph.formats import memmapped

    _plain(tags, signature, Kind.MEMMAPPED, name)
    return memmapped.read(buffer, name)


def _write_memmapped(graph: Graph, path: PathLike) -> None:
    from pocketgraph.formats.memmapped_writer import save_memmapped

    save_memmapped(graph, path)


def _read_saved_model(buffer: Buffer, name: str, tags: Tags, signature: str | None) -> Graph:
    from pocketgraph.formats import meta_graph

    return of_saved_model(meta_graph.parse_saved_model(buffer, name), name, tags, signature)


def _read_saved_model_text(buffer: Buffer, name: str, tags: Tags, signature: str | None) -> Graph:
    return _read_saved_model(_binary(buffer, "tensorflow.SavedModel", name), name, tags, signature)


def of_saved_model(graphs: list[MetaGraph], name: str, tags: Tags, signature: str | None) -> Graph:
    """The one of a SavedModel's graphs that the tags and the signature mean.

    Raises:
        FormatError: it holds none.
        UsageError: it has no such tags or signature.
    """
    from pocketgraph.formats import meta_graph

    if not graphs:
        raise FormatError("the SavedModel holds no graph", where=name)
    return meta_graph.with_signature(meta_graph.with_tags(graphs, tags, name).graph, signature, name)


def _write_saved_model(graph: Graph, path: PathLike) -> None:
    from pocketgraph.formats import meta_graph_writer

    meta_graph_writer.save_saved_model(graph, path)


def _read_meta(buffer: Buffer, name: str, tags: Tags, signature: str | None) -> Graph:
    from pocketgraph.formats import meta_graph

    chosen = meta_graph.parse(buffer, name)
    if tags is not None:
        chosen = meta_graph.with_tags([chosen], tags, name)
    return meta_graph.with_signature(chosen.graph, signature, name)


def _read_meta_text(buffer: Buffer, name: str, tags: Tags, signature: str | None) -> Graph:
    return _read_meta(_binary(buffer, "tensorflow.MetaGraphDef", name), name, tags, signature)


def _read_tflite(buffer: Buffer, name: str, tags: Tags, signature: str | None) -> Graph:
    from pocketgraph.formats import tflite

    return tflite.parse(buffer, name)


def _write_tflite(graph: Graph, path: PathLike) -> None:
    """The bytes of the LiteRT file that the graph was read from."""
    if not is_litert_file(graph):
        raise UsageError("a graph is written as .tflite by exporting it", hint="pocketgraph.export(graph, path)")
    write_atomically(path, graph.extra)


def _read_onnx(buffer: Buffer, name: str, tags: Tags, signature: str | None) -> Graph:
    from pocketgraph.formats import onnx_file

    return onnx_file.parse(buffer, name)


def _write_onnx(graph: Graph, path: PathLike) -> None:
    """The bytes of the ONNX file that the graph was read from."""
    if not is_model_file(graph) or is_litert_file(graph):
        raise UsageError("a graph is written as .onnx by exporting it", hint="pocketgraph.export(graph, path)")
    write_atomically(path, graph.extra[8:])


def _read_tensorflow_js(buffer: Buffer, name: str, tags: Tags, signature: str | None) -> Graph:
    from pocketgraph.formats import meta_graph, tensorflow_js

    _plain(tags, None, Kind.TENSORFLOW_JS, name)
    return meta_graph.with_signature(tensorflow_js.parse(buffer, name), signature, name)


def _read_keras(kind: Kind, buffer: Buffer, name: str, tags: Tags, signature: str | None) -> Graph:
    from pocketgraph.formats import meta_graph
    from pocketgraph.formats.keras import model_files

    _plain(tags, None, kind, name)
    parse = {
        Kind.HDF5: model_files.parse_hdf5,
        Kind.KERAS: model_files.parse_archive,
        Kind.KERAS_JSON: model_files.parse_architecture,
    }[kind]
    return meta_graph.with_signature(parse(buffer, name), signature, name)


def _write_meta(graph: Graph, path: PathLike) -> None:
    from pocketgraph.formats import meta_graph_writer

    meta_graph_writer.save_meta_graph(graph, path)


for _form in (
    FileForm("graphdef", _write_graphdef, _read_graphdef, kinds=(Kind.GRAPH_DEF,)),
    FileForm("text", _write_text, _read_text, (".pbtxt",), (Kind.GRAPH_DEF_TEXT,)),
    FileForm("memmapped", _write_memmapped, _read_memmapped, kinds=(Kind.MEMMAPPED,)),
    FileForm("saved_model", _write_saved_model, _read_saved_model, kinds=(Kind.SAVED_MODEL_FILE,)),
    FileForm("saved_model_text", None, _read_saved_model_text, kinds=(Kind.SAVED_MODEL_TEXT,)),
    FileForm("meta", _write_meta, _read_meta, (".meta",), (Kind.META_GRAPH,)),
    FileForm("tflite", _write_tflite, _read_tflite, kinds=(Kind.TFLITE,)),
    FileForm("onnx", _write_onnx, _read_onnx, kinds=(Kind.ONNX,)),
    FileForm("tensorflow_js", None, _read_tensorflow_js, kinds=(Kind.TENSORFLOW_JS, Kind.TENSORFLOW_JS_LAYERS)),
    FileForm("keras_hdf5", None, partial(_read_keras, Kind.HDF5), kinds=(Kind.HDF5,)),
    FileForm("keras_json", None, partial(_read_keras, Kind.KERAS_JSON), kinds=(Kind.KERAS_JSON,)),
    FileForm("keras", None, partial(_read_keras, Kind.KERAS), kinds=(Kind.KERAS,)),
    FileForm("meta_text", None, _read_meta_text, kinds=(Kind.META_GRAPH_TEXT,)),
):
    add_form(_form)
