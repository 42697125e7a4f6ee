"""Made-up records for inputs of strings that a graph takes apart: serialized Examples, and rows of CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pocketgraph.formats.example_writer import RecordFeature, serialized
from pocketgraph.graph import DType, Graph, Node, Shape, Tensor, node_name
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.op_traits import SAME_ELEMENTS, ops_with

PARSERS = ops_with("example_parser") | {"DecodeCSV"}
"""What takes records apart whose fields the node itself names."""
THROUGH = SAME_ELEMENTS | {"PlaceholderWithDefault"}
"""What stands between an input of records and the node that takes them apart."""
MOST_VALUES = 1 << 16  # of one feature
FARTHEST = 4


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


def records_shape(parser: Node) -> tuple[int, ...]:
    """The shape of one record, as ``parser`` takes them: most take several at once."""
    return () if parser.op.startswith("ParseSingle") else (1,)


def record_sample(graph: Graph, parser: Node, rng: np.random.Generator) -> bytes:
    """A record that ``parser`` reads, with noise for each feature that it insists on: floats in [-1, 1), integers in
    [0, 10), empty strings."""
    if parser.op == "DecodeCSV":
        return ",".join(_field(dtype, rng) for dtype in _types(parser, "OUT_TYPE")).encode()
    return serialized(
        (feature, _noise(feature, rng)) for feature in features_of(graph, parser) if feature.size is not None
    )


def features_of(graph: Graph, parser: Node) -> list[RecordFeature]:
    """The features that ``parser`` takes out of an Example: those of a fixed shape, then those of any number of
    values; none of DecodeCSV."""
    if parser.op == "DecodeCSV":
        return []
    dense = [RecordFeature(key, dtype, size) for key, dtype, size in _dense(graph, parser)]
    types = _types(parser, "sparse_types") or _types(parser, "Tsparse")
    return [
        *dense,
        *(RecordFeature(key, dtype, None) for key, dtype in zip(_keys(graph, parser, "sparse"), types, strict=False)),
    ]


def _field(dtype: DType, rng: np.random.Generator) -> str:
    if dtype is STRING:
        return "a"
    return f"{rng.uniform(-1, 1):.6f}" if dtype.is_floating else str(rng.integers(0, 10))


def _noise(feature: RecordFeature, rng: np.random.Generator) -> Sequence[Any]:
    size = feature.size or 0
    if feature.dtype is STRING:
        return [b""] * size
    made = rng.uniform(-1, 1, size) if feature.dtype.is_floating else rng.integers(0, 10, size)
    return list(made)


def _dense(graph: Graph, parser: Node) -> Iterator[tuple[bytes, DType, int]]:
    """Key, type and number of values of each feature of a fixed shape."""
    types = _types(parser, "Tdense")
    shapes = parser.attr("dense_shapes", ())
    sizes = [
        min(MOST_VALUES, shape.elements or 1) if isinstance(shape, Shape) else 1
        for shape in (shapes if isinstance(shapes, tuple) else ())
    ]
    yield from zip(_keys(graph, parser, "dense"), types, sizes, strict=False)


def _keys(graph: Graph, parser: Node, kind: str) -> list[bytes]:
    """The keys of the features of a kind, ``sparse`` or ``dense``."""
    inputs = parser.data_inputs
    if parser.op == "ParseSingleExample":
        keys = parser.attr(f"{kind}_keys", ())
        return [key for key in (keys if isinstance(keys, tuple) else ()) if isinstance(key, bytes)]
    if parser.op == "ParseExampleV2":
        place = 2 if kind == "sparse" else 3
        return _strings(graph.constant(inputs[place])) if len(inputs) > place else []
    start = 2 if kind == "sparse" else 2 + int(parser.attr("Nsparse", 0))
    refs = inputs[start : start + int(parser.attr(f"N{kind}", 0))]
    return [key for ref in refs for key in (_strings(graph.constant(ref)) or [b""])[:1]]


def _strings(value: Tensor | None) -> list[bytes]:
    return [item for item in value.numpy().reshape(-1).tolist() if isinstance(item, bytes)] if value is not None else []


def _types(node: Node, attr: str) -> Sequence[DType]:
    found = node.attr(attr, ())
    return [dtype for dtype in found if isinstance(dtype, DType)] if isinstance(found, tuple) else []
