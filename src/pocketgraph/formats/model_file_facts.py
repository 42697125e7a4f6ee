"""What is known of a model file without reading its weights: for ``pocketgraph identify``."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pocketgraph.errors import FormatError, MissingExtraError, path_of
from pocketgraph.formats import load, meta_graph, object_graph, onnx_file, tflite
from pocketgraph.formats.checkpoints import checkpoint, checkpoint_base
from pocketgraph.formats.checkpoints.bundle_proto import BundleEntry
from pocketgraph.formats.checkpoints.checkpoint_state import STATE_FILE, find_prefix, prefixes
from pocketgraph.formats.detect import CHECKPOINTS, Identity, Kind, identify
from pocketgraph.formats.files import PathLike, mapped
from pocketgraph.formats.tflite import DeclaredTensor, ModelFacts
from pocketgraph.formats.tflite_metadata import Metadata, metadata
from pocketgraph.graph import DType, Graph, Tensor
from pocketgraph.graph.graph import DEFAULT_SIGNATURE
from pocketgraph.graph.model_file_graph import ONNX_PREFIX, SHAPES, TYPES
from pocketgraph.graph.node import Ref, parse_ref
from pocketgraph.graph.op_traits import VARIABLES
from pocketgraph.pages.quantities import counted

GRAPHS = frozenset(
    (
        Kind.GRAPH_DEF, Kind.GRAPH_DEF_TEXT, Kind.META_GRAPH, Kind.META_GRAPH_TEXT, Kind.MEMMAPPED, Kind.TENSORFLOW_JS,
        Kind.TENSORFLOW_JS_LAYERS, Kind.HDF5, Kind.KERAS, Kind.KERAS_JSON,
    )
)  # fmt: skip
SAVED_MODELS = frozenset((Kind.SAVED_MODEL, Kind.SAVED_MODEL_FILE, Kind.SAVED_MODEL_TEXT))


@dataclass(frozen=True)
class GraphFacts:
    """One graph of a file.

    Attributes:
        version: the TensorFlow that wrote it, "" when the file does not say.
        producer: the number of the GraphDef version; 0 when the file does not say.
        nodes, functions, variables, constants: how many there are.
        const_bytes: of all constants' elements but strings.
        signatures: their names.
        tags: of a SavedModel's or MetaGraphDef's graph.
    """

    version: str
    producer: int
    nodes: int
    functions: int
    variables: int
    constants: int
    const_bytes: int
    signatures: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileFacts:
    """What lies at a path.

    Attributes:
        identity: what it is, and what to type next.
        bytes: of the file and of those beside it that have its weights, or of all in the directory or checkpoint.
        graphs: the graphs in it.
        tensors: of a checkpoint, how many; None for other kinds.
        tensor_bytes: of these, without strings.
        variables: each of these, or of a SavedModel's, in the order of their names.
        prefix: of the checkpoint.
        damage: why it cannot be read, "" when it can.
        model: the signatures of a LiteRT or ONNX file; None for other kinds.
        metadata: what a LiteRT file tells the task libraries, where it does.
    """

    identity: Identity
    bytes: int
    graphs: tuple[GraphFacts, ...] = ()
    tensors: int | None = None
    tensor_bytes: int = 0
    prefix: str = ""
    damage: str = ""
    model: ModelFacts | None = None
    metadata: Metadata | None = None
    variables: tuple[DeclaredTensor, ...] = ()


def facts(path: PathLike) -> FileFacts:
    """What is known of a file, directory or checkpoint; a damaged one gives what is known nevertheless.

    Raises:
        FormatError: it cannot be opened.
    """
    name = path_of(path)
    identity = identify(name)
    size = bytes_of(name)
    found = FileFacts(identity, size)
    try:
        if identity.kind in GRAPHS:
            graphs = tuple(graphs_of(name, identity.kind))
            return FileFacts(identity, size + _bytes_beside(identity), graphs)
        if identity.kind in SAVED_MODELS:
            metas = meta_graph.read_saved_model(name)
            found = FileFacts(identity, size, tuple(of_meta(meta) for meta in metas))
            return dataclasses.replace(found, variables=_of_saved_model(name))
        if identity.kind is Kind.TFLITE:
            return of_litert(identity, size)
        if identity.kind is Kind.ONNX:
            return of_onnx(identity, size)
        if identity.kind in CHECKPOINTS:
            return of_checkpoint(identity)
    except (FormatError, MissingExtraError) as error:
        return dataclasses.replace(found, damage=str(error).removeprefix(f"{name}: "))
    return found


def of_litert(identity: Identity, size: int) -> FileFacts:
    """The facts of a LiteRT file."""
    buffer = mapped(identity.path)
    model = tflite.facts(buffer, identity.path)
    graph = of_graph(tflite.parse(buffer, identity.path), model.description)
    return FileFacts(identity, size, (graph,), model=model, metadata=metadata(buffer, identity.path))


def of_onnx(identity: Identity, size: int) -> FileFacts:
    """The facts of an ONNX file."""
    buffer = mapped(identity.path)
    graph = onnx_file.parse(buffer, identity.path)
    size += _bytes_beside(identity)
    entry = graph.signatures[DEFAULT_SIGNATURE]

    def details(names: Mapping[str, str]) -> dict[str, DeclaredTensor]:
        return {name: _details(name, graph, parse_ref(ref)) for name, ref in names.items()}

    described = onnx_file.description(buffer, identity.path)
    model = ModelFacts({"": (details(entry.inputs), details(entry.outputs))}, False, described, {})
    made = [node for node in graph if node.op not in ("Placeholder", f"{ONNX_PREFIX}initializer")]
    constants = len(graph) - len(made) - len(entry.inputs)
    return FileFacts(identity, size, (GraphFacts(model.description, 0, len(made), 0, 0, constants, 0),), model=model)


def _details(name: str, graph: Graph, ref: Ref) -> DeclaredTensor:
    attrs: Mapping[str, Any] = graph[ref.name].attrs
    if "shape" in attrs:  # a Placeholder
        dtype, shape = attrs["dtype"], attrs["shape"]
    elif TYPES in attrs:
        dtype, shape = attrs[TYPES][ref.port], attrs[SHAPES][ref.port]
    else:
        return DeclaredTensor(name, "?", ())
    return DeclaredTensor(name, dtype.name, shape.dims or ())


def graphs_of(name: str, kind: Kind) -> list[GraphFacts]:
    """The one graph of a GraphDef, package, MetaGraphDef or graph model of TensorFlow.js."""
    if kind is Kind.META_GRAPH:
        return [of_meta(meta_graph.parse(mapped(name), name))]
    return [of_graph(load(name))]


def of_meta(meta: meta_graph.MetaGraph) -> GraphFacts:
    """The facts of a MetaGraphDef."""
    return of_graph(meta.graph, meta.version, meta.tags)


def of_graph(graph: Graph, version: str = "", tags: tuple[str, ...] = ()) -> GraphFacts:
    """The facts of a graph, with the version and tags that its file told."""
    constants = [value for node in graph if node.op == "Const" and isinstance(value := node.attr("value"), Tensor)]
    return GraphFacts(
        version,
        graph.versions.producer,
        len(graph),
        len(graph.functions),
        sum(node.op in VARIABLES for node in graph),
        len(constants),
        sum(tensor.size * tensor.dtype.size for tensor in constants),
        tuple(graph.public_signatures),
        tags,
    )


def of_checkpoint(identity: Identity) -> FileFacts:
    """How many tensors a checkpoint has; reads its index. Of several in a directory somebody has to name one."""
    several = prefixes(identity.path) if identity.kind is Kind.CHECKPOINT_DIRECTORY else []
    if len(several) > 1 and not os.path.isfile(os.path.join(identity.path, STATE_FILE)):
        try:
            find_prefix(identity.path)
        except FormatError:
            one = os.path.join(identity.path, several[0])
            call: str = identity.kind.value[1]
            step = f"{counted(len(several), 'checkpoint')}; name one, such as: {call.format(one)}"
            return FileFacts(dataclasses.replace(identity, next=step), bytes_of(identity.path))
    store = checkpoint.open_checkpoint(identity.path)
    entries: Mapping[str, BundleEntry] = {name: store.entry(name) for name in store}
    total, damage = 0, ""
    for name, entry in entries.items():
        count = checkpoint_base.elements_of(entry.shape)
        total += count * (DType.of(entry.dtype).size if entry.dtype in KNOWN else 0)
        if not damage and entry.dtype in KNOWN:
            try:
                store[name]  # its place in the data is looked at, and not what is there
            except FormatError as error:
                damage = str(error)
    return FileFacts(
        identity, bytes_of(store.prefix), tensors=len(store), tensor_bytes=total, prefix=store.prefix,
        damage=damage, variables=_declared(entries),
    )  # fmt: skip


def _of_saved_model(name: str) -> tuple[DeclaredTensor, ...]:
    """The variables of a SavedModel; none where its files with values are elsewhere."""
    folder = name if os.path.isdir(name) else os.path.dirname(name)
    prefix = os.path.join(folder, "variables", "variables")
    if not os.path.exists(f"{prefix}.index"):
        return ()
    store = checkpoint.open_checkpoint(prefix)
    return _declared({key: store.entry(key) for key in store})


def _declared(entries: Mapping[str, BundleEntry]) -> tuple[DeclaredTensor, ...]:
    return tuple(
        DeclaredTensor(
            name, DType.of(entry.dtype).name if entry.dtype in KNOWN or entry.dtype == STRING else "?", entry.shape
        )
        for name, entry in entries.items()
        if name != object_graph.KEY
    )


KNOWN = frozenset((*range(1, 7), *range(8, 20), 22, 23))
"""Numbers of the types whose elements have a size."""
STRING = 7  # the number of the type whose elements have none


def model_bytes(path: str) -> int:
    """The size of a model's file with those beside it that hold its weights; 0 where there is no such file.

    Raises:
        FormatError: it is damaged.
    """
    return os.path.getsize(path) + _bytes_beside(identify(path)) if os.path.isfile(path) else 0


def _bytes_beside(identity: Identity) -> int:
    """The size of the files beside a model's that hold its weights."""
    path, files = identity.path, set[str]()
    if identity.kind in (Kind.TENSORFLOW_JS, Kind.TENSORFLOW_JS_LAYERS):
        from pocketgraph.formats import tensorflow_js

        files.update(tensorflow_js.shards_of(mapped(path), path))
    elif identity.kind is Kind.KERAS_JSON:
        from pocketgraph.formats.keras.model_files import weights_beside

        files.add(weights_beside(path))
    elif identity.kind is Kind.ONNX:
        files.update(onnx_file.files_beside(mapped(path), path))
    return sum(map(os.path.getsize, files))


def bytes_of(path: str) -> int:
    """The size of a file, of everything in a directory, or of the files that begin with a prefix."""
    if os.path.isfile(path):
        return os.path.getsize(path)
    total = 0
    if os.path.isdir(path):
        for folder, _, names in os.walk(path):
            for name in names:
                full = os.path.join(folder, name)
                total += os.path.getsize(full) if os.path.isfile(full) else 0
        return total
    folder, prefix = os.path.split(path)
    try:
        names = [name for name in os.listdir(folder or ".") if name.startswith((prefix + ".", prefix + "-"))]
    except OSError:
        return 0
    parts = [name for name in names if not name.endswith(".meta") and os.path.isfile(os.path.join(folder, name))]
    return sum(os.path.getsize(os.path.join(folder, name)) for name in parts)
