"""What a picture shows of each node: constants and variables folded into their readers, shapes, bytes, operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Node, Tensor
from pocketgraph.graph.node import parse_ref
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.text_printer import print_attr, print_tensor
from pocketgraph.inspect.view.overlay import Overlay, OverlayFigures, layer_in_file
from pocketgraph.inspect.view.scope import Link

HELD = ops_with("constant", "variable", "reference_variable")
PASSED = ops_with("passes", "reads_handle")
LONGEST = 240  # letters of an attribute
ROLES = {1: ("loop",), 2: ("branch", "switch", "merge"), 3: ("next_iteration",)}
NOTHING = Overlay()
LARGE = 50_000  # nodes; of more, shapes and operations are not worked out, which would take half a minute


@dataclass
class Shown:
    """A node of the picture.

    Attributes:
        inputs: for each input (its name, the number of the node that it comes from or -1, what it carries).
        outputs: type and shape of each output.
        weights: bytes of the constants and variables that are folded into it; those of a shared one count for its first
            reader.
        memory: bytes of its outputs, where their shapes are known.
        flops: operations of one run; None where they depend on shapes that are not known.
        microseconds: of one run, all executions together.
        calls: executions in the measured run.
        engine: what ran it, or would run it.
        reason: why LiteRT does not run it.
        layer: what eight bits did to it, where that is known.
        histogram: of its largest weights, where it has numbers.
    """

    node: Node
    inputs: list[tuple[str, int, str]] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    weights: int = 0
    memory: int = 0
    flops: int | None = 0
    microseconds: float = 0.0
    calls: int = 0
    engine: str = ""
    reason: str = ""
    layer: OverlayFigures | None = None
    histogram: Histogram | None = None

    @property
    def role(self) -> int:
        """1 for a loop, 2 for a branch, 3 for what closes a loop of TensorFlow 1, else 0."""
        return next((role for role, traits in ROLES.items() if self.node.op in ops_with(*traits)), 0)

    @property
    def attributes(self) -> list[tuple[str, str]]:
        """The attributes as text, long ones cut."""
        return [
            (key, text if len(text) <= LONGEST else f"{text[:LONGEST]}…")
            for key, value in self.node.attrs.items()
            if (text := print_attr(value, key))
        ]


def shown_nodes(graph: Graph, overlay: Overlay = NOTHING) -> tuple[list[Shown], list[Link]]:
    """The nodes of a graph's picture and the arrows between them.

    Args:
        graph: any graph; inputs that lead nowhere are no arrows. One of more than ``LARGE`` nodes has no shapes.
        overlay: what is known of the nodes beside it.
    """
    from pocketgraph.kernels.shapes import infer

    try:
        inferred = infer(graph) if len(graph) <= LARGE else None
    except PocketgraphError:
        inferred = None  # a broken graph can still be looked at

    def carried(tensor: str) -> str:
        if inferred is None:
            return ""
        dtype, shape = inferred.dtype(tensor), inferred.shape(tensor)
        return f"{dtype.name}{shape if shape.dims is not None else ''}" if dtype else ""

    folded = _folded(graph)
    shown = [Shown(node) for node in graph if node.name not in folded]
    number = {one.node.name: at for at, one in enumerate(shown)}
    flops = _flops(graph) if len(graph) <= LARGE else {}
    edges = []
    counted: set[str] = set()
    for at, one in enumerate(shown):
        largest = 0
        for ref in one.node.inputs:
            source, port, control = parse_ref(ref)
            if source not in graph and source.rpartition(":")[0] in graph:
                source = source.rpartition(":")[0]  # inside a function: node:output:0
            label = "" if control else carried(f"{source}:{port}")
            held = folded.get(source)
            if held is not None and not control and held not in counted:
                counted.add(held)
                size = _bytes_held(graph[held])
                one.weights += size
                if size > largest and (bars := histogram_of(graph[held].attrs.get("value"))) is not None:
                    largest, one.histogram = size, bars
            if held is not None and not control:
                label = _held(graph[held])
            came = number.get(source, -1)
            one.inputs.append((ref, came, label))
            if came >= 0:
                edges.append(Link(came, at, control, label))
        count = len(inferred.shapes(one.node.name)) if inferred is not None else 0
        one.outputs = [carried(f"{one.node.name}:{port}") or "?" for port in range(count)]
        for port in range(count):
            assert inferred is not None
            dtype, elements = (
                inferred.dtype(f"{one.node.name}:{port}"),
                inferred.shape(f"{one.node.name}:{port}").elements,
            )
            one.memory += elements * dtype.size if dtype is not None and elements is not None else 0
        one.flops = flops.get(one.node.name, 0)
    _lay_over(shown, number, overlay)
    return shown, edges


def _lay_over(shown: list[Shown], number: Mapping[str, int], overlay: Overlay) -> None:
    """Writes what is known beside the graph to its nodes."""
    for part in overlay.description.parts if overlay.description is not None else ():
        for name in part.nodes:
            if name in number:
                shown[number[name]].engine = part.place
    for name, reason in overlay.description.reasons.items() if overlay.description is not None else ():
        if name in number:
            shown[number[name]].reason = reason
    for timing in overlay.trace.nodes if overlay.trace is not None else ():
        if timing.name in number:
            one = shown[number[timing.name]]
            one.microseconds += timing.duration_us
            one.calls += 1
            one.engine = one.engine or timing.runs_on
    for name, layer in overlay.layers.items():
        if name in number:
            shown[number[name]].layer = layer
    for one in shown:
        one.layer = one.layer or layer_in_file(one.node)


def _folded(graph: Graph) -> dict[str, str]:
    """Which nodes are folded into their readers, and the constant or variable that each stands for."""
    held = {
        node.name: node.name
        for node in graph
        if node.op in HELD and not node.data_inputs and graph.consumers.get(node.name)
    }
    waiting = list(held)
    while waiting:
        name = waiting.pop()
        for reader in graph.consumers.get(name, ()):
            if reader.name not in held and reader.op in PASSED and graph.consumers.get(reader.name):
                held[reader.name] = held[name]
                waiting.append(reader.name)
    return held


def _bytes_held(node: Node) -> int:
    value = node.attrs.get("value")
    if isinstance(value, Tensor):
        return 0 if value.dtype.base.name == "string" else value.nbytes
    shape, dtype = node.shape(), node.attr("dtype", None)
    size = getattr(dtype, "size", 0)
    return (shape.elements or 0) * size if shape is not None else 0


def _held(node: Node) -> str:
    value = node.attrs.get("value")
    return print_tensor(value) if isinstance(value, Tensor) else f"variable{node.shape() or ''}"


def _flops(graph: Graph) -> Mapping[str, int | None]:
    """Operations by node, for the shapes that samples would have; None where these cannot be told."""
    from pocketgraph.inspect.flops import count_graph
    from pocketgraph.runtime.feeding.default_tensors import default_fetches
    from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_shapes

    try:
        feeds = synthetic_shapes(graph, default_fetches(graph))
    except PocketgraphError:
        feeds = {}
    try:
        found = count_graph(graph, feeds)
    except PocketgraphError:
        return {}
    return {**found.by_node, **dict.fromkeys(found.unknown)}


def functions_as_graphs(graph: Graph) -> Iterable[tuple[str, Graph]]:
    """The bodies of the graph's functions, each as a graph of its own, by name."""
    for name, function in graph.functions.items():
        try:
            yield name, Graph(function.nodes, functions=graph.functions)
        except PocketgraphError:
            continue  # two nodes of one name: nothing that could be drawn


BARS = 24
MOST = 1 << 16  # values looked at, evenly chosen
FEWEST = 16  # values; fewer need no histogram


class Histogram(NamedTuple):
    """How many of the values looked at lie in each of BARS equal bins.

    Attributes:
        bars: the counts.
        low, high: where the bins begin and end: the smallest and the largest value.
        mean, deviation: of the values.
        zeros: the share of them that is exactly 0.
    """

    bars: tuple[int, ...]
    low: float
    high: float
    mean: float
    deviation: float
    zeros: float


def histogram_of(value: Any) -> Histogram | None:
    """The distribution of a tensor's numbers; None for anything else, for few, and for none that is finite."""
    if not isinstance(value, Tensor) or value.size < FEWEST or value.dtype.base.name in ("string", "bool"):
        return None
    try:
        flat = value.numpy().reshape(-1)
    except PocketgraphError:
        return None  # damaged; other parts of the page are still worth a look
    some = flat[:: max(1, len(flat) // MOST)]
    if some.dtype.kind == "c":
        return None
    numbers = some.astype(np.float64)
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) < FEWEST:
        return None
    low, high = float(numbers.min()), float(numbers.max())
    if not np.isfinite(high - low):
        return None
    bars, _ = np.histogram(numbers, BARS, (low, high) if low < high else (low - 1, low + 1))
    return Histogram(
        tuple(bars.tolist()), low, high, float(numbers.mean()), float(numbers.std()), float((numbers == 0).mean())
    )
