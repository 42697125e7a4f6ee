"""MetaGraphDef and SavedModel: graphs that come with tags and signatures.

Source: tensorflow/core/protobuf/{meta_graph,saved_model}.proto.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pocketgraph.errors import FormatError, UsageError, did_you_mean
from pocketgraph.formats import graphdef
from pocketgraph.formats.files import PathLike, mapped
from pocketgraph.graph import Graph, Signature, node_name
from pocketgraph.graph.graph import DEFAULT_SIGNATURE
from pocketgraph.graph.groups import by_key
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import LEN, Buffer, WireError, damage_told

META_INFO, GRAPH_DEF, COLLECTION_DEF, SIGNATURE_DEF, ASSET_FILE_DEF = 1, 2, 4, 5, 6
ASSETS = (ASSET_FILE_DEF, LEN)
ASSET_COLLECTION = "saved_model_assets"
INIT_SIGNATURE = "__saved_model_init_op"
INIT_COLLECTIONS = ("saved_model_main_op", "legacy_init_op")


@dataclass(frozen=True)
class MetaGraph:
    """One MetaGraphDef.

    Attributes:
        graph: its graph, with the signatures.
        tags: what it is for, such as ``serve``.
        version: the TensorFlow version that wrote it, "" when it does not say.
        encoded: the MetaGraphDef without its graph_def; a valid message of the collections, saver and so on.
    """

    graph: Graph
    tags: tuple[str, ...]
    version: str
    encoded: bytes


def parse(buffer: Buffer, file: str, start: int = 0, stop: int | None = None) -> MetaGraph:
    """The MetaGraphDef in a buffer; tensors stay in the buffer.

    Raises:
        FormatError: it is not one.
    """
    end = len(buffer) if stop is None else stop
    graph = Graph()
    signatures: dict[str, Signature] = {}
    tags: list[str] = []
    version = ""
    rest = []
    try:
        for at, number, kind, value, after in wire.fields(buffer, start, end):
            if (number, kind) == (GRAPH_DEF, LEN):
                graph = graphdef.parse(buffer, file, value, after)
                continue
            rest.append(buffer[at:after])
            if (number, kind) == (META_INFO, LEN):
                strings = list(_strings(buffer, value, after))
                tags = [buffer_text for field, buffer_text in strings if field == 4]
                version = next((buffer_text for field, buffer_text in strings if field == 5), "")
            elif (number, kind) == (SIGNATURE_DEF, LEN):
                name, span = _entry(buffer, value, after)
                signatures[name] = _signature(buffer, *span)
    except WireError as error:
        raise graphdef.corrupt(error, file, len(buffer)) from None
    graph, encoded = graph.replace(signatures=dict(sorted(signatures.items()))), b"".join(rest)
    if graph.functions and not graph.public_signatures:
        from pocketgraph.formats.callable_functions import with_callable_functions

        graph = with_callable_functions(graph, encoded)
    return MetaGraph(graph, tuple(tags), version, encoded)


def asset_files(meta_graph: MetaGraph) -> dict[str, str]:
    """Which file of a SavedModel's ``assets`` directory each asset tensor names, by the tensor's name.

    Source: meta_graph.proto (asset_file_def) and, for what TensorFlow 1 wrote, the collection saved_model_assets.

    Raises:
        FormatError: the list is damaged, or a file's name leads out of the directory.
    """
    data = meta_graph.encoded
    found: dict[str, str] = {}
    with damage_told("the list of assets is damaged"):
        spans = [(a, b) for _, number, kind, a, b in wire.fields(data, 0, len(data)) if (number, kind) == ASSETS]
        for span in _collections(data).get(ASSET_COLLECTION, ()):
            spans += [
                packed
                for listed in _parts(data, span, 5)
                for item in _parts(data, listed, 1)
                for packed in _parts(data, item, 2)
            ]  # any_list, its values, and what is packed in each
        for span in spans:
            names = [part for info in _parts(data, span, 1) for part in _parts(data, info, 1)]
            tensor = wire.text(data, *names[0]) if names else ""
            file = next((wire.text(data, *part) for part in _parts(data, span, 2)), "")
            if os.path.isabs(file) or ".." in file.replace("\\", "/").split("/"):
                raise FormatError(f"the asset '{file}' is outside of the model's directory", where="asset_file_def")
            found[tensor] = file
    return found


def init_op(meta_graph: MetaGraph) -> str | None:
    """The name of the node that the loader of a SavedModel runs after restoring the variables, to fill its tables.

    Source: tensorflow/python/saved_model/constants.py and cc/saved_model/loader.cc.

    Raises:
        FormatError: the collections are damaged.
    """
    signature = meta_graph.graph.signatures.get(INIT_SIGNATURE)
    if signature is not None:
        return next((node_name(tensor) for tensor in signature.outputs.values()), None)
    data = meta_graph.encoded
    with damage_told("the collections are damaged"):
        found = _collections(data)
        for name in INIT_COLLECTIONS:
            for listed in (part for span in found.get(name, ()) for part in _parts(data, span, 1)):  # node_list
                for value in _parts(data, listed, 1):
                    return node_name(wire.text(data, *value))
    return None


def _collections(data: Buffer) -> dict[str, list[tuple[int, int]]]:
    """Where each collection of a MetaGraphDef lies."""
    fields = wire.fields(data, 0, len(data))
    return by_key(_entry(data, a, b) for _, number, kind, a, b in fields if (number, kind) == (COLLECTION_DEF, LEN))


def _parts(data: Buffer, span: tuple[int, int], number: int) -> list[tuple[int, int]]:
    """Where the messages or strings of one field lie."""
    return [(a, b) for _, n, kind, a, b in wire.fields(data, *span) if (n, kind) == (number, LEN)]


def parse_saved_model(buffer: Buffer, file: str) -> list[MetaGraph]:
    """The MetaGraphDefs of a ``saved_model.pb``; FormatError when it is not one."""
    try:
        return [
            parse(buffer, file, value, stop)
            for _, number, kind, value, stop in wire.fields(buffer, 0, len(buffer))
            if (number, kind) == (2, LEN)
        ]
    except WireError as error:
        raise graphdef.corrupt(error, file, len(buffer)) from None


def saved_model_file(folder: PathLike) -> str | None:
    """The ``saved_model.pb`` of a directory, else its ``saved_model.pbtxt``, else None."""
    for name in ("saved_model.pb", "saved_model.pbtxt"):
        path = os.path.join(os.fspath(folder), name)
        if os.path.isfile(path):
            return path
    return None


def read_saved_model(path: PathLike) -> list[MetaGraph]:
    """All graphs of a SavedModel, given as its directory or its file, binary or text.

    Raises:
        FormatError: it is not one, or it has no graph.
    """
    name = os.fspath(path)
    file = saved_model_file(name) if os.path.isdir(name) else name
    if file is None:
        raise FormatError("the directory has no saved_model.pb or saved_model.pbtxt", where=name)
    buffer: Buffer = mapped(file)
    if file.endswith(".pbtxt"):
        from pocketgraph.formats.graphdef_text import binary_of

        buffer = binary_of(buffer, "tensorflow.SavedModel", file)
    graphs = parse_saved_model(buffer, file)
    if not graphs:
        raise FormatError("the SavedModel holds no graph", where=file)
    return graphs


def with_tags(graphs: list[MetaGraph], tags: str | Iterable[str] | None, where: str) -> MetaGraph:
    """The graph whose tags are exactly these; without tags the one for serving, else the only one that is not for
    training or evaluation: a module of TensorFlow Hub has one without tags beside it.

    Raises:
        UsageError: there is none, or several fit.
    """
    have = " or ".join("'" + ",".join(graph.tags) + "'" for graph in graphs)
    if tags is None:
        serving = [graph for graph in graphs if set(graph.tags) == {"serve"}]
        chosen = serving or [graph for graph in graphs if not {"train", "eval"} & set(graph.tags)] or graphs
        if len(chosen) > 1:
            raise UsageError("several graphs are stored here", where=where, hint=f"give the tags {have}")
        return chosen[0]
    wanted = {tag.strip() for tag in (tags.split(",") if isinstance(tags, str) else tags)} - {""}
    for graph in graphs:
        if set(graph.tags) == wanted:
            return graph
    raise UsageError(f"no graph has the tags '{','.join(sorted(wanted))}'", where=where, hint=f"there is {have}")


def main_signature(graph: Graph) -> str | None:
    """The key of the signature that is taken when none is named: ``serving_default``, or the only one, as which several
    of the same inputs and outputs count, such as TensorFlow Hub's; None where that is not clear."""
    found = graph.public_signatures
    if DEFAULT_SIGNATURE in found:
        return DEFAULT_SIGNATURE
    uses = [(one.inputs, one.outputs) for one in found.values()]
    return min(found) if uses and uses.count(uses[0]) == len(uses) else None


def with_signature(graph: Graph, name: str | None, where: str) -> Graph:
    """The graph with the inputs and outputs of one signature; by default the main one.

    Raises:
        UsageError: there is no such signature.
    """
    visible = graph.public_signatures
    if name is None:
        name = main_signature(graph)
        if name is None:
            return graph
    if name not in graph.signatures:
        known = f"it has {', '.join(sorted(visible))}" if visible else "it has none"
        raise UsageError(f"there is no signature '{name}'", where=where, hint=did_you_mean(name, visible) or known)
    chosen = graph.signatures[name]
    return graph.replace(inputs=chosen.inputs.values(), outputs=chosen.outputs.values())


def _strings(buffer: Buffer, start: int, stop: int) -> Iterator[tuple[int, str]]:
    """The string fields of a MetaInfoDef: 1 is its version, 4 a tag, 5 TensorFlow's version."""
    for _, number, kind, value, end in wire.fields(buffer, start, stop):
        if number in (4, 5) and kind == LEN:
            yield number, wire.text(buffer, value, end)


def _entry(buffer: Buffer, start: int, stop: int) -> tuple[str, tuple[int, int]]:
    """A map entry: its key, and where its value lies."""
    key, span = "", (start, start)
    for _, number, kind, value, end in wire.fields(buffer, start, stop):
        if (number, kind) == (1, LEN):
            key = wire.text(buffer, value, end)
        elif (number, kind) == (2, LEN):
            span = (value, end)
    return key, span


def _signature(buffer: Buffer, start: int, stop: int) -> Signature:
    sides: tuple[dict[str, str], dict[str, str]] = ({}, {})
    method = ""
    for _, number, kind, value, end in wire.fields(buffer, start, stop):
        if kind != LEN:
            continue
        if number in (1, 2):
            key, span = _entry(buffer, value, end)
            for _, inner, inner_kind, inner_value, inner_end in wire.fields(buffer, *span):
                if (inner, inner_kind) == (1, LEN):  # sparse and composite tensors have no single name
                    sides[number - 1][key] = wire.text(buffer, inner_value, inner_end)
        elif number == 3:
            method = wire.text(buffer, value, end)
    inputs, outputs = (dict(sorted(side.items())) for side in sides)  # files keep them in no order
    return Signature(inputs, outputs, method)


def field_numbers(encoded: bytes) -> set[int]:
    """Which fields a message has."""
    return {number for _, number, _, _, _ in wire.fields(encoded, 0, len(encoded))}
