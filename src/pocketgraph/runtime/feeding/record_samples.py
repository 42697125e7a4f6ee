"""Made-up records for inputs of strings that a graph takes apart: serialized Examples, and rows of CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pocketgraph.formats import wire
from pocketgraph.freezing.serving_signatures import EXAMPLE_PARSERS
from pocketgraph.graph import DType, Graph, Node, Shape, Tensor, node_name
from pocketgraph.graph.dtype import STRING

PARSERS = EXAMPLE_PARSERS | {"DecodeCSV"}
"""What takes records apart whose fields the node itself names."""
THROUGH = frozenset({"Identity", "Reshape", "ExpandDims", "Squeeze", "PlaceholderWithDefault"})
"""Not a trait: what stands between an input of records and the node that takes them apart."""
MOST_VALUES = 1 << 16  # of one feature
FARTHEST = 4
BYTES, FLOATS, INTS = 1, 2, 3
"""Fields of a Feature (tensorflow/core/example/feature.proto)."""


def parser_of(graph: Graph, name: str) -> Node | None:
    """The node that takes apart the records of the string input ``name``; None without."""
    if graph[node_name(name)].attr("dtype", None) is not STRING:
        return None
    waiting = [node_name(name)]
    for _ in range(FARTHEST):
        users = [user for place in waiting for user in graph.consumers.get(place, ())]
        for user in users:
            if user.op in PARSERS and node_name(user.data_inputs[0]) in waiting:
                return user
        waiting = [user.name for user in users if user.op in THROUGH]
    return None


def record_sample(graph: Graph, parser: Node, rng: np.random.Generator) -> bytes:
    """A record that ``parser`` reads, with noise for each feature that it insists on: floats in [-1, 1), integers in
    [0, 10), empty strings."""
    if parser.op == "DecodeCSV":
        return ",".join(_field(dtype, rng) for dtype in _types(parser, "OUT_TYPE")).encode()
    features = [
        wire.message_field(1, [wire.bytes_field(1, key), *wire.message_field(2, _feature(dtype, size, rng))])
        for key, dtype, size in _dense(graph, parser)
    ]
    return wire.joined(wire.message_field(1, [chunk for feature in features for chunk in feature]))


def _field(dtype: DType, rng: np.random.Generator) -> str:
    if dtype is STRING:
        return "a"
    return f"{rng.uniform(-1, 1):.6f}" if dtype.is_floating else str(rng.integers(0, 10))


def _feature(dtype: DType, size: int, rng: np.random.Generator) -> list[bytes]:
    if dtype is STRING:
        listed = [wire.bytes_field(1, b"")] * size
        return [wire.joined(wire.message_field(BYTES, listed))]
    if dtype.is_floating:
        packed = rng.uniform(-1, 1, size).astype("<f4").tobytes()
        return [wire.joined(wire.message_field(FLOATS, [wire.bytes_field(1, packed)]))]
    packed = b"".join(wire.varint(int(value)) for value in rng.integers(0, 10, size))
    return [wire.joined(wire.message_field(INTS, [wire.bytes_field(1, packed)]))]


def _dense(graph: Graph, parser: Node) -> Iterator[tuple[bytes, DType, int]]:
    """Key, type and number of values of each feature of a fixed shape."""
    types = _types(parser, "Tdense")
    shapes = parser.attr("dense_shapes", ())
    sizes = [
        min(MOST_VALUES, shape.elements or 1) if isinstance(shape, Shape) else 1
        for shape in (shapes if isinstance(shapes, tuple) else ())
    ]
    yield from zip(_keys(graph, parser), types, sizes, strict=False)


def _keys(graph: Graph, parser: Node) -> list[bytes]:
    inputs = parser.data_inputs
    if parser.op == "ParseSingleExample":
        keys = parser.attr("dense_keys", ())
        listed = keys if isinstance(keys, tuple) else ()
        return [key for key in listed if isinstance(key, bytes)]
    if parser.op == "ParseExampleV2":
        return _strings(graph.constant(inputs[3])) if len(inputs) > 3 else []
    sparse, dense = (int(parser.attr(name, 0)) for name in ("Nsparse", "Ndense"))
    refs = inputs[2 + sparse : 2 + sparse + dense]
    return [key for ref in refs for key in (_strings(graph.constant(ref)) or [b""])[:1]]


def _strings(value: Tensor | None) -> list[bytes]:
    return [item for item in value.numpy().reshape(-1).tolist() if isinstance(item, bytes)] if value is not None else []


def _types(node: Node, attr: str) -> Sequence[DType]:
    found = node.attr(attr, ())
    return [dtype for dtype in found if isinstance(dtype, DType)] if isinstance(found, tuple) else []
