"""Models of TensorFlow.js: a GraphDef or layers of Keras in JSON, and beside it files ("shards") with their values.

Source: tensorflow/tfjs: tfjs-converter/python/tensorflowjs/{read_weights,quantization}.py and
tfjs-core/src/io/io_utils.ts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from math import isfinite, prod
from typing import Any

import numpy as np

from pocketgraph.errors import AGAIN, FormatError, GraphError
from pocketgraph.formats import graphdef
from pocketgraph.formats.files import mapped, path_below
from pocketgraph.formats.keras.topology import parse as keras_model
from pocketgraph.formats.protos import message
from pocketgraph.formats.tensorflow_js_ops import with_plain_ops
from pocketgraph.graph import DType, Graph
from pocketgraph.graph.graph import DEFAULT_SIGNATURE, Signature
from pocketgraph.graph.node import node_name
from pocketgraph.graph.op_traits import PLACEHOLDERS, TABLE_FILLERS
from pocketgraph.graph.tensor import Array
from pocketgraph.protobuf.wire import Buffer

ELEMENTS = {
    "float32": "<f4", "int32": "<i4", "bool": "u1", "complex64": "<c8",
    "float16": "<f2", "uint16": "<u2", "uint8": "u1",
}  # fmt: skip
"""How a shard holds the elements of each type; strings come with their lengths."""
LENGTH = 4  # bytes of a string's length


def parse(buffer: Buffer, where: str) -> Graph:
    """The graph of a ``model.json``, in TensorFlow's own ops, with the values of the shards beside it.

    What fills its lookup tables (``modelInitializer``) is part of the graph, and what reads them waits for it.

    Raises:
        FormatError: it is damaged, its shards are missing or too short, or it describes layers of Keras, no graph.
    """
    described = _json(buffer, where)
    topology = described.get("modelTopology")
    if not isinstance(topology, dict):
        raise FormatError("this is a JSON file without a model", where=where)
    if "node" not in topology:
        if described.get("format") == "graph-model":
            raise FormatError("this graph model of TensorFlow.js has no nodes", where=where, hint=AGAIN)
        return keras_model(topology, _weights(described.get("weightsManifest", []), where), where)
    made = _graph_def(topology, where)
    initializer = described.get("modelInitializer")
    if isinstance(initializer, dict):
        _fill_tables(made, _graph_def(initializer, where))
    values = _weights(described.get("weightsManifest", []), where)
    for nodes in (made.node, *(function.node_def for function in made.library.function)):
        for node in nodes:
            if node.op == "Const":
                _put_value(node, values, where)
    graph = with_plain_ops(graphdef.parse(made.SerializeToString(deterministic=True), where))
    return _with_signature(graph, described.get("signature") or described.get("userDefinedMetadata"))


def _json(buffer: Buffer, where: str) -> dict[str, Any]:
    try:
        found = json.loads(bytes(buffer))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the JSON is damaged: {str(error)[:200]}", where=where) from None
    if not isinstance(found, dict):
        raise FormatError("this is a JSON file without a model", where=where)
    return found


def _graph_def(topology: dict[str, Any], where: str) -> Any:
    """The message that the JSON stands for; fields of a newer TensorFlow are left out."""
    from google.protobuf import json_format

    made = message("tensorflow.GraphDef")()
    try:
        json_format.ParseDict(topology, made, ignore_unknown_fields=True)
    except (json_format.ParseError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError(f"the topology is no GraphDef: {str(error)[:200]}", where=where) from None
    return made


def _fill_tables(graph: Any, initializer: Any) -> None:
    """Adds what fills the tables of a GraphDef, if any of its nodes reads one."""
    fillers = {
        node.input[0]: f"^{node.name}" for node in initializer.node if node.op.startswith(TABLE_FILLERS) and node.input
    }
    readers = [node for node in graph.node if not fillers.keys().isdisjoint(node.input)]
    for node in readers:
        node.input.extend([fillers[table] for table in node.input if table in fillers])
    if readers:
        there = {node.name for node in graph.node}
        graph.node.extend(node for node in initializer.node if node.name not in there)


def _weights(manifest: object, where: str) -> dict[str, Array]:
    """The values of all groups by name; strings are objects of type bytes."""
    found: dict[str, Array] = {}
    try:
        for group in manifest if isinstance(manifest, list) else ():
            data = b"".join(bytes(mapped(path)) for path in shards([group], where))
            position = 0
            for weight in group["weights"]:
                found[weight["name"]], position = _weight(weight, data, position, where)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise FormatError(
            f"the manifest of weights is damaged: {type(error).__name__} {str(error)[:200]}", where=where
        ) from None
    return found


def shards_of(buffer: Buffer, where: str) -> list[str]:
    """The paths of the files of weights of a ``model.json``.

    Raises:
        FormatError: it is damaged, or one is not there, or elsewhere than below the model's folder.
    """
    try:
        return shards(_json(buffer, where).get("weightsManifest", []), where)
    except (KeyError, TypeError) as error:
        raise FormatError(f"the manifest of weights is damaged: {type(error).__name__} {error}", where=where) from None


def shards(groups: object, where: str) -> list[str]:
    """The paths of the files that groups of a manifest are in, in their order.

    Raises:
        KeyError, TypeError: a group has none.
        FormatError: one is no text, is not there, or elsewhere than below the model's folder.
    """
    return [_shard(path, where) for group in (groups if isinstance(groups, list) else ()) for path in group["paths"]]


def _shard(name: object, where: str) -> str:
    """A shard's path; it lies in the model's folder or below it.

    Raises:
        FormatError: it is no text, is not there, or elsewhere.
    """
    if not isinstance(name, str):
        raise FormatError(f"the manifest of weights names {name!r:.80} as a file", where=where)
    path = path_below(where, name)
    if not path:
        raise FormatError(f"weights are to be in '{name}', which is no file beside it", where=where)
    if not os.path.isfile(path):
        raise FormatError(
            f"weights are to be in '{name}', which is not there", where=where,
            hint=f"put the model's .bin files into {os.path.dirname(where) or 'the same folder'}",
        )  # fmt: skip
    return path


def _weight(weight: Mapping[str, Any], data: bytes, start: int, where: str) -> tuple[Array, int]:
    """One weight, and where the next begins."""
    name, kind, shape = weight["name"], weight["dtype"], [int(size) for size in weight["shape"]]
    coded = weight.get("quantization") or {}
    count = prod(shape)
    if min(shape, default=0) < 0:
        raise ValueError(f"'{name}' has the shape {shape}")
    if kind == "string":
        texts, stop = _strings(data, start, count, name, where)
        return texts.reshape(shape), stop
    element = np.dtype(ELEMENTS[coded.get("dtype", kind)])
    if start + count * element.itemsize > len(data):
        raise _too_short(name, where)
    values = np.frombuffer(data, element, count, start).reshape(shape)
    stop = start + count * element.itemsize
    if "scale" in coded:
        scale, least = float(coded["scale"]), float(coded["min"])
        if not isfinite(scale) or not isfinite(least):
            raise ValueError(f"'{name}' has the scale {scale} from {least}")
        exact = values * scale + least
        values = np.floor(exact + 0.5) if kind == "int32" else exact  # as Math.round does
    return values.astype(bool if kind == "bool" else ELEMENTS[kind]), stop


def _strings(data: bytes, position: int, count: int, name: str, where: str) -> tuple[Array, int]:
    """Strings, each behind its length, and where the next weight begins."""
    found: list[bytes] = []
    while len(found) < count:
        start = position + LENGTH
        position = start + int.from_bytes(data[position:start], "little")
        if max(start, position) > len(data):
            raise _too_short(name, where)
        found.append(data[start:position])
    array = np.empty(count, object)
    array[:] = found
    return array, position


def _too_short(name: str, where: str) -> FormatError:
    """The error of shards that end before a weight does."""
    return FormatError(
        f"the files of weights end within '{name}'", where=where, hint="copy or download the .bin files again"
    )


def _put_value(node: Any, values: Mapping[str, Array], where: str) -> None:
    """Gives a Const its value, in the type that the node declares: whole numbers of 64 bits are kept in 32."""
    proto = node.attr["value"].tensor
    found = values.get(node.name)
    if found is None:
        is_empty = not any(field.name.endswith(("_val", "_content")) for field, _ in proto.ListFields())
        if is_empty and prod(dim.size for dim in proto.tensor_shape.dim):
            raise FormatError(f"no weights are stored for the constant '{node.name}'", where=where)
        return
    try:
        dtype = DType.of(node.attr["dtype"].type)
        numbers = found if found.dtype == object else found.astype(dtype.numpy)
    except (GraphError, TypeError, ValueError) as error:
        raise FormatError(f"the constant '{node.name}' cannot be read: {error}", where=where) from None
    if found.dtype != object and (found.dtype.kind == "f") != (dtype.numpy.kind in "fV"):  # bfloat16's kind is V
        raise FormatError(
            f"the constant '{node.name}' is {dtype.name}, and its weights are stored as {found.dtype}",
            where=where,
            hint="download model.json and the .bin files of one model again",
        )
    proto.Clear()
    proto.dtype = dtype.number
    proto.tensor_shape.SetInParent()
    for size in found.shape:
        proto.tensor_shape.dim.add(size=size)
    if found.dtype == object:
        proto.string_val.extend(found.ravel().tolist())
    else:
        proto.tensor_content = numbers.tobytes()


def _with_signature(graph: Graph, stored: Any) -> Graph:
    """The graph with the signature that the file tells, which older files keep among their user's data.

    Converters leave the inputs out, or name tensors of the graph before it was optimized; then all placeholders are
    meant.
    """
    stored = stored.get("signature", stored) if isinstance(stored, dict) else None
    sides: list[dict[str, str]] = []
    for side in ("inputs", "outputs"):
        listed = stored.get(side) if isinstance(stored, dict) else None
        entries = listed.items() if isinstance(listed, dict) else ()
        names = {key: str(entry.get("name", "")) for key, entry in entries if isinstance(entry, dict)}
        sides.append(names if all(node_name(name) in graph for name in names.values()) else {})
    inputs = sides[0] or {node.name: f"{node.name}:0" for node in graph if node.op in PLACEHOLDERS}
    if not sides[1]:
        return graph
    return graph.replace(
        inputs=inputs.values(), outputs=sides[1].values(), signatures={DEFAULT_SIGNATURE: Signature(inputs, sides[1])}
    )
