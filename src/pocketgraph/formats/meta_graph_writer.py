"""Writes graphs as TF1-style SavedModels and MetaGraphDefs, with signatures that TensorFlow's loaders take.

Variables need an operation ``init`` in the graph that gives them their values; loaders run it.

Source: tensorflow/core/protobuf/{meta_graph,saved_model}.proto and tensorflow/python/saved_model/{builder,loader}.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping

from pocketgraph.errors import FormatError, GraphError, PocketgraphError, UsageError, option
from pocketgraph.formats import graphdef
from pocketgraph.formats.files import PathLike, reason, write_atomically
from pocketgraph.formats.tensor_proto import shape_bytes
from pocketgraph.graph import Graph, Shape, Signature, opdefs
from pocketgraph.graph.entry_points import likely_inputs, sole_outputs
from pocketgraph.graph.graph import DEFAULT_SIGNATURE
from pocketgraph.graph.node import canonical, node_name, parse_ref
from pocketgraph.graph.op_traits import VARIABLES
from pocketgraph.graph.order import reachable
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import Chunk

SCHEMA_VERSION = 1
PREDICT = "tensorflow/serving/predict"
INIT, MAIN_OP = "init", "saved_model_main_op"


def save_saved_model(
    graph: Graph, folder: PathLike, tags: Iterable[str] = ("serve",), shapes: Mapping[str, Shape] | None = None
) -> None:
    """Writes a SavedModel: a directory with ``saved_model.pb``, in which all values are.

    Args:
        graph: a frozen graph, or one whose operation ``init`` gives its variables their values. Its signatures are
            written; without any, one is made of its inputs and outputs, or of the ones that stand out (see
            graph.endpoints).
        folder: the directory, which must not exist yet or be empty.
        tags: what the graph is for.
        shapes: of tensors in signatures by name, where known; placeholders say their own.

    Raises:
        FormatError: the graph has variables whose values it does not hold, or no output stands out.
        UsageError: there is something in the directory already.
        PocketgraphError: it cannot be written.
    """
    name = check_new_directory(folder)
    pieces = list(meta_graph_pieces(graph, tags, shapes or {}))
    made = not os.path.isdir(name)
    try:
        os.makedirs(name, exist_ok=True)
    except OSError as error:
        raise PocketgraphError(f"the directory cannot be made: {reason(error)}", where=name) from None
    try:
        head = wire.number_field(1, SCHEMA_VERSION)
        write_atomically(os.path.join(name, "saved_model.pb"), [head, *wire.message_field(2, pieces)])
    except BaseException:
        if made:
            shutil.rmtree(name, ignore_errors=True)
        raise


def check_new_directory(folder: PathLike) -> str:
    """Refuses a directory in which there is something; long work does so before it begins.

    Raises:
        UsageError: there is.
    """
    name = os.fspath(folder)
    if os.path.lexists(name) and (not os.path.isdir(name) or os.listdir(name)):
        raise UsageError("there is something here already, and a SavedModel is a new directory", where=name)
    return name


def save_meta_graph(
    graph: Graph, path: PathLike, tags: Iterable[str] = ("serve",), shapes: Mapping[str, Shape] | None = None
) -> None:
    """Writes a MetaGraphDef; arguments and errors as for ``save_saved_model``, but for the path, which is a file's."""
    write_atomically(path, meta_graph_pieces(graph, tags, shapes or {}))


def meta_graph_pieces(graph: Graph, tags: Iterable[str], shapes: Mapping[str, Shape]) -> Iterator[Chunk]:
    """The MetaGraphDef of a graph, in pieces."""
    variables = [node for node in graph if node.op in VARIABLES]
    begun = reachable(graph, [INIT]) if INIT in graph else set()
    lost = [node.name for node in variables if node.name not in begun]
    if lost:
        raise FormatError(
            f"the graph has {len(lost)} variables, such as '{lost[0]}', whose values would be lost",
            hint="freeze it first: pocketgraph freeze_graph",
        )
    info = b"".join(wire.bytes_field(4, tag) for tag in tags)
    yield wire.bytes_field(1, info)
    yield from wire.message_field(2, graphdef.chunks(graph))
    if variables:
        # Loaders run it. A list of variables beside it would make them look for files with values.
        nodes = wire.bytes_field(1, wire.bytes_field(1, INIT))
        yield wire.bytes_field(4, wire.bytes_field(1, MAIN_OP) + wire.bytes_field(2, nodes))
    for key, signature in sorted(signatures_of(graph).items()):
        parts = b""
        for field, side in ((1, signature.inputs), (2, signature.outputs)):
            for name, tensor in sorted(side.items()):
                described = tensor_info(graph, tensor, shapes)
                parts += wire.bytes_field(field, wire.bytes_field(1, name) + wire.bytes_field(2, described))
        parts += wire.bytes_field(3, signature.method or PREDICT)
        yield wire.bytes_field(5, wire.bytes_field(1, key) + wire.bytes_field(2, parts))


def signatures_of(graph: Graph) -> dict[str, Signature]:
    """The graph's signatures, or one that is made of its inputs and outputs, whose keys are node names.

    Raises:
        FormatError: it has none and no output stands out.
    """
    if kept := graph.public_signatures:
        return kept
    outputs = list(graph.outputs) or list(sole_outputs(graph) or ())
    if not outputs:
        raise FormatError(
            "no output of the graph stands out, so that it has no signature",
            hint=f"name them: {option('outputs')}=NAME",
        )
    inputs = list(graph.inputs) or [name for name, _ in likely_inputs(graph)]
    return {DEFAULT_SIGNATURE: Signature(keyed(inputs), keyed(outputs), PREDICT)}


def keyed(tensors: Iterable[str]) -> dict[str, str]:
    """Tensors by a key each: the node's name, with the port where that is not 0."""
    found = {}
    for tensor in tensors:
        ref = parse_ref(tensor)
        found[ref.name if ref.port == 0 else f"{ref.name}_{ref.port}"] = canonical(tensor)
    return found


def tensor_info(graph: Graph, tensor: str, shapes: Mapping[str, Shape]) -> bytes:
    """The TensorInfo of a tensor: its name, type and shape as far as they are known."""
    name = canonical(tensor)
    node = graph.nodes.get(node_name(name))
    if node is None:
        raise FormatError(f"a signature names the tensor '{name}', which is not in the graph")
    try:
        dtypes = opdefs.output_dtypes(node)
    except GraphError:
        dtypes = ()
    port = parse_ref(name).port
    if port >= len(dtypes):
        raise FormatError(f"a signature names the tensor '{name}', and the {node.op} does not tell its type")
    shape = shapes.get(name) or (node.shape() if node.op.startswith("Placeholder") else None) or Shape(None)
    parts = wire.bytes_field(1, name) + wire.number_field(2, dtypes[port].number)
    return parts + wire.bytes_field(3, shape_bytes(shape.dims))
