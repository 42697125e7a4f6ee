"""Writes a graph as Model Explorer reads it: nodes with attributes and shapes, and figures of the nodes as overlays.

Source of the form: graph_builder.py and node_data_builder.py of the package ai-edge-model-explorer, version 0.1.34.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from pocketgraph.errors import PocketgraphError, printable
from pocketgraph.formats.files import check_place, write_atomically
from pocketgraph.graph import Graph, Node, Tensor, canonical
from pocketgraph.graph.function_body import called_functions
from pocketgraph.graph.node import parse_ref
from pocketgraph.graph.text_printer import print_attr, print_tensor
from pocketgraph.inspect.flops import count_graph
from pocketgraph.inspect.view.overlay import layers_of_report
from pocketgraph.kernels.shapes import infer
from pocketgraph.runtime import StepTrace
from pocketgraph.runtime.feeding.default_tensors import default_fetches
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_shapes

LONGEST = 400  # letters of an attribute
MAIN = "main"
"""The id of the graph; those of functions are their names."""
CONTROL = "control"
HOT, COLD = "#f28b82", "#e8f0fe"
"""Colours of the most and the least."""
RISING, FALLING = ((0, COLD), (1, HOT)), ((0, HOT), (1, COLD))
OVERLAYS = {
    "time": ("milliseconds", RISING),
    "operations": ("operations", RISING),
    "bytes": ("bytes of results", RISING),
    "weights": ("bytes of weights", RISING),
    "eight_bits": ("eight bits: decibels that are left", FALLING),
}
"""What each overlay is called, and its colours from the least to the most."""


def write_model_explorer(
    graph: Graph, path: str, title: str, trace: StepTrace | None = None, sensitivity: Mapping[str, float] | None = None
) -> list[str]:
    """Writes the graph, and beside it a file for each overlay that there is something to say in.

    Args:
        graph: any graph, that of a LiteRT or ONNX file too.
        path: the graph's file, ``NAME.json``; the overlays are ``NAME.time.json`` and so on.
        title: of the graph.
        trace: a run of it, for times.
        sensitivity: decibels that eight bits leave, by node.

    Returns:
        The files, the graph's first.

    Raises:
        PocketgraphError: a file cannot be written.
    """
    check_place(path)
    written = [path]
    stem = path.removesuffix(".json")
    figures = overlays(graph, trace, sensitivity or {})
    for name, values in figures.items():
        place = f"{stem}.{name}.json"
        write_atomically(place, _json(node_data(name, values)))
        written.append(place)
    write_atomically(path, _json(graph_collection(graph, title)))
    return written


def graph_collection(graph: Graph, title: str) -> dict[str, Any]:
    """The graph and its functions, as Model Explorer's GraphCollection."""
    graphs = [{"id": MAIN, "nodes": _nodes(graph, graph, _shapes(graph))}]
    for name, function in graph.functions.items():
        try:
            body = Graph(function.nodes, functions=graph.functions)
        except PocketgraphError:
            continue  # two nodes of one name
        graphs.append({"id": printable(name), "nodes": _nodes(body, graph, {})})
    return {"label": printable(title), "graphs": graphs}


def overlays(graph: Graph, trace: StepTrace | None, sensitivity: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """The figures of nodes by name of the overlay; without those that say nothing."""
    found: dict[str, dict[str, float]] = {name: {} for name in OVERLAYS}
    for timing in trace.nodes if trace is not None else ():
        if timing.name in graph:
            before = found["time"].get(timing.name, 0.0)
            found["time"][timing.name] = before + timing.duration_us / 1e3
    found["operations"] = dict(_operations(graph))
    shapes = _shapes(graph)
    for node in graph:
        held = node.attrs.get("value")
        if node.op == "Const" and isinstance(held, Tensor):
            found["weights"][node.name] = 0 if held.dtype.base.name == "string" else held.nbytes
        elif sizes := [size for _, _, size in shapes.get(node.name, ()) if size is not None]:
            found["bytes"][node.name] = sum(sizes)
    found["eight_bits"] = {name: value for name, value in sensitivity.items() if name in graph}
    return {name: values for name, values in found.items() if values}


def node_data(name: str, values: Mapping[str, float]) -> dict[str, Any]:
    """One overlay, as Model Explorer's ModelNodeData has it."""
    title, gradient = OVERLAYS[name]
    results = {printable(node): {"value": round(value, 6)} for node, value in values.items()}
    return {
        MAIN: {
            "name": title,
            "results": results,
            "gradient": [{"stop": stop, "bgColor": colour} for stop, colour in gradient],
        }
    }


def sensitivity_of_report(path: str | os.PathLike[str]) -> dict[str, float]:
    """Decibels that eight bits leave, by node, of the report that ``quantize`` writes as JSON.

    Raises:
        FormatError: the file is no such report.
    """

    def decibels(layer: Mapping[str, Any], measure: str) -> float | None:
        return None if layer.get(measure) is None else float(layer[measure])

    return {name: value for name, value in layers_of_report(os.fspath(path), decibels).items() if value is not None}


Shaped = tuple[str, str, "int | None"]
"""Type and shape of an output in words, and its bytes where they are known."""


def _shapes(graph: Graph) -> dict[str, list[Shaped]]:
    try:
        inferred = infer(graph)
    except PocketgraphError:
        return {}  # a broken graph can still be looked at
    found: dict[str, list[Shaped]] = {}
    for node in graph:
        outputs = []
        for port in range(len(inferred.shapes(node.name))):
            tensor = f"{node.name}:{port}"
            dtype, shape = inferred.dtype(tensor), inferred.shape(tensor)
            count = shape.elements
            size = None if dtype is None or count is None else count * dtype.base.size
            outputs.append((dtype.name if dtype else "?", str(shape), size))
        found[node.name] = outputs
    return found


def _operations(graph: Graph) -> Iterable[tuple[str, int]]:
    try:
        feeds = synthetic_shapes(graph, default_fetches(graph))
    except PocketgraphError:
        feeds = {}
    try:
        return count_graph(graph, feeds).by_node.items()
    except PocketgraphError:
        return ()


def _nodes(graph: Graph, library: Graph, shapes: Mapping[str, list[Shaped]]) -> list[dict[str, Any]]:
    return [_node(node, graph, library, shapes.get(node.name, [])) for node in graph]


def _node(node: Node, graph: Graph, library: Graph, outputs: list[Shaped]) -> dict[str, Any]:
    name = printable(node.name)
    made: dict[str, Any] = {"id": name, "label": printable(node.op), "namespace": name.rpartition("/")[0]}
    attrs = [{"key": printable(key), "value": value} for key, value in _attributes(node)]
    if node.device:
        attrs.append({"key": "device", "value": printable(node.device)})
    edges = []
    for place, ref in enumerate(node.inputs):
        source, port, control = parse_ref(ref)
        if source not in graph:
            source = canonical(ref).rpartition(":")[0] if not control else source
            source = source if source in graph else source.partition(":")[0]  # inside a function: node:output:0
        if source in graph:
            edges.append({
                "sourceNodeId": printable(source),
                "sourceNodeOutputId": CONTROL if control else str(max(0, port)),
                "targetNodeInputId": str(place),
            })  # fmt: skip
    made["attrs"] = attrs
    made["incomingEdges"] = edges
    made["outputsMetadata"] = [
        {
            "id": str(port),
            "attrs": [
                {"key": "tensor_name", "value": f"{name}:{port}"}, {"key": "type", "value": dtype},
                {"key": "shape", "value": f"{dtype}{shape}"},
            ],
        }
        for port, (dtype, shape, _) in enumerate(outputs)
    ]  # fmt: skip
    bodies = dict.fromkeys([node.op, *called_functions(node)])
    made["subgraphIds"] = [printable(body) for body in bodies if body in library.functions]
    return made


def _attributes(node: Node) -> Iterable[tuple[str, str]]:
    for key, value in node.attrs.items():
        text = printable(print_tensor(value) if isinstance(value, Tensor) else print_attr(value, key))
        if text:
            yield key, text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _json(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
