"""The right order of rules for eight bits: mobile, then weights and, where that is safe, nodes in eight bits."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Node, node_name, parse_ref
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.groups import closure
from pocketgraph.graph.order import reachable, topological
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels import registry
from pocketgraph.pages.quantities import counted, listed
from pocketgraph.transforms import tool
from pocketgraph.transforms.near_miss import Miss
from pocketgraph.transforms.parts.weight_rules import depthwise, weight_rules
from pocketgraph.transforms.tool import transform

DEEP = 16  # convolutions, from which on the errors of eight bits may add up to nothing of the model being left
BESIDE = frozenset({
    "Add", "AddV2", "BiasAdd", "BatchToSpaceND", "Clip", "ClipByValue", "ConcatV2", "DepthToSpace", "Elu", "Identity",
    "LeakyRelu", "Maximum", "Minimum", "Mul", "Relu", "Relu6", "ResizeBilinear", "ResizeNearestNeighbor", "Sigmoid",
    "Sub", "Tanh", "Transpose",
})  # fmt: skip
"""Not a trait: ops that keep a picture one, as far as eight bits are worth while beside them."""
ENOUGH = 20.0  # dB that eight-bit arithmetic must leave of such results: an error of a tenth
log = logging.getLogger("pocketgraph.transforms")


@transform
def mobile_8bit(
    graph: Graph,
    *,
    type: str | None = None,
    shape: str | None = None,
    fallback_min: float | None = None,
    fallback_max: float | None = None,
) -> Graph:
    """Makes a graph of eight bits: ``mobile``, then quantize_weights and, where the model bears it, quantize_nodes.

    Given:   x = Placeholder(dtype=float, shape=[?,2])
             read = Identity(x, T=float)
             loss = L2Loss(read, T=float)
             y = Softmax(read, T=float)
             ; inputs=x outputs=y
    Result:  x = Placeholder(dtype=float, shape=[?,2])
             y = Softmax(x:0, T=float)

    Eight-bit arithmetic ruins some models. Two kinds keep theirs in floats, and only their weights are stored in eight
    bits (the smallest ones in sixteen), in a range for each channel; the log says so. One are those with depthwise
    convolutions: once normalizations are folded into such layers, their channels differ so much in size that one
    eight-bit range for all is too coarse. The other are those of 16 convolutions and more, and those whose result is
    what a convolution makes (a picture, a map), if less than 20 dB of the results are left on two made-up inputs, or if
    they cannot be tried out because the graph does not say the size of its inputs, or has loops. ``pocketgraph
    quantize`` makes a model of eight-bit arithmetic with a range for each channel; who wants the original's arithmetic
    nonetheless writes ``mobile quantize_weights quantize_nodes strip_unused_nodes``.

    Without ``fallback_min`` and ``fallback_max`` the ranges of what lies between the layers are searched each time the
    model runs; freeze_requantization_ranges makes constants of them afterwards. Made-up inputs are no pictures: look
    at the results on data of your own before you ship such a graph.

    Args:
        type, shape: as for strip_unused_nodes.
        fallback_min, fallback_max: as for quantize_nodes.

    Raises:
        TransformError, GraphError: as these rules do.
    """
    given = [f'{key}="{value}"' for key, value in (("type", type), ("shape", shape)) if value is not None]
    ends = (("fallback_min", fallback_min), ("fallback_max", fallback_max))
    ranges = [f"{key}={value}" for key, value in ends if value is not None]
    graph = tool.run(graph, f"mobile({', '.join(given)})")
    eight_bit = f"quantize_weights quantize_nodes({', '.join(ranges)}) strip_unused_nodes sort_by_execution_order"
    changed = None
    why = too_fragile(graph)
    if not why:
        changed = tool.run(graph, eight_bit)
        why = too_noisy(graph, changed)
    if changed is not None and not why:
        return changed
    log.warning(
        "mobile_8bit: %s, so the model computes in floats, and only the weights are stored in eight bits; pocketgraph "
        "quantize makes eight-bit arithmetic with a range for each channel",
        why,
    )
    return tool.run(graph, f"{weight_rules(graph, 8, per_channel=True)} sort_by_execution_order")


def too_fragile(graph: Graph) -> str:
    """Why eight-bit arithmetic would ruin a model of this structure; "" when that is not certain."""
    names = depthwise(graph)
    if not names:
        return ""
    return f"depthwise convolutions ({listed(names, 1, quoted=True)}): eight-bit arithmetic would ruin the model"


def too_noisy(before: Graph, after: Graph) -> str:
    """Why a deep model should not compute in eight bits; "" when it may.

    Args:
        before, after: the graph with float and with eight-bit arithmetic.
    """
    count = sum(node.op == "Conv2D" for node in before)
    if count < DEEP and not gives_pictures(before):
        return ""
    kept = decibels_kept(before, after, ENOUGH)
    if kept is not None and kept >= ENOUGH:
        log.info("mobile_8bit: %d convolutions; eight-bit arithmetic keeps %.0f dB on made-up inputs", count, kept)
        return ""
    found = "it cannot be tried out" if kept is None else f"made-up inputs leave {kept:.0f} dB of the results"
    if count < DEEP:
        return f"a convolution makes the result, which shows each error of eight-bit arithmetic, and {found}"
    return f"{counted(count, 'convolution')}: the errors of eight-bit arithmetic add up, and {found}"


def gives_pictures(graph: Graph) -> bool:
    """Whether an output is what a convolution makes, but for activations and moved elements: no choice of a class that
    small errors do not change."""

    def before(name: str) -> Iterable[str]:
        return map(node_name, graph[name].data_inputs) if graph[name].op in BESIDE else ()

    last = closure(map(node_name, graph.outputs), before, graph.nodes.__contains__)
    return any(graph[name].op in ("Conv2D", "Conv2DBackpropInput") for name in last)


def near_misses(graph: Graph, arguments: Mapping[str, Any]) -> Iterator[Miss]:
    """The convolutions of a model that went on computing in floats."""
    fragile = depthwise(graph)
    for name in fragile:
        yield Miss(
            name, "eight-bit arithmetic ruins depthwise convolutions: the model computes in floats, weights are codes"
        )
    if fragile or any(node.op == "QuantizedConv2D" for node in graph):
        return
    for node in graph:
        if node.op == "Conv2D":
            yield Miss(node.name, "a deep model of which eight-bit arithmetic leaves too little: it computes in floats")


PICTURES = ((0.0, 1.0), (0.0, 255.0))
"""The ranges of the inputs that are made up, one after the other: what models of pictures are fed with most often."""
MOST_ELEMENTS = 1 << 24  # of one input


def decibels_kept(before: Graph, after: Graph, enough: float) -> float | None:
    """The smallest signal-to-noise ratio of a float output, in dB; None where that cannot be found out.

    Both graphs run on noise of the same seed in two ranges, unless the first leaves less than is ``enough`` already.
    It cannot be found out where an input is no float or has sizes that the graph does not say (but for the first,
    which is taken as 1), no output is a float, or a node cannot be computed for itself, as in a loop.

    Args:
        before: the graph, with its inputs and outputs.
        after: the other form, whose outputs have the same names.
        enough: dB.
    """
    least: float | None = None
    for low, high in PICTURES:
        try:
            feeds = _synthetic(before, low, high)
            pairs = zip(_results(before, feeds), _results(after, feeds), strict=True)
            found = [_ratio(x, y) for x, y in pairs if x.dtype == np.float32 and x.shape == y.shape]
        except (PocketgraphError, ArithmeticError, LookupError, MemoryError, TypeError, ValueError):
            return None
        if not found:
            return None
        least = min(found) if least is None else min(least, *found)
        if least < enough:
            break
    return least


def _synthetic(graph: Graph, low: float, high: float) -> dict[str, Array]:
    """Noise for each placeholder that the outputs need.

    Raises:
        ValueError: one is no float, or its shape is unknown or too large.
    """
    random = np.random.default_rng(0)
    needed = reachable(graph, graph.outputs, stop=graph.inputs)
    feeds = {}
    for node in graph:
        if node.name not in needed or node.op != "Placeholder":
            continue
        shape = node.shape("shape")
        if node.dtype("dtype") is not FLOAT or shape is None or not shape.dims:
            raise ValueError(node.name)
        sizes = [1 if size is None and axis == 0 else size for axis, size in enumerate(shape.dims)]
        if None in sizes or np.prod([float(size or 0) for size in sizes]) > MOST_ELEMENTS:
            raise ValueError(node.name)
        feeds[node.name] = random.uniform(low, high, [size or 0 for size in sizes]).astype(np.float32)
    return feeds


def _results(graph: Graph, feeds: Mapping[str, Array]) -> list[Array]:
    """The outputs, node by node; a value is let go of as soon as nobody needs it."""
    needed = reachable(graph, graph.outputs, stop=list(feeds))
    order = [node for node in topological(graph) if node.name in needed]
    uses = Counter(node_name(ref) for node in order for ref in node.data_inputs)
    uses.update(node_name(ref) for ref in graph.outputs)
    values: dict[str, tuple[Array, ...]] = {}
    for node in order:
        values[node.name] = (feeds[node.name],) if node.name in feeds else _computed(node, values)
        for ref in () if node.name in feeds else node.data_inputs:
            name = node_name(ref)
            uses[name] -= 1
            if not uses[name]:
                del values[name]
    return [values[ref.name][ref.port] for ref in map(parse_ref, graph.outputs)]


def _computed(node: Node, values: Mapping[str, tuple[Array, ...]]) -> tuple[Array, ...]:
    inputs = [values[ref.name][ref.port] for ref in map(parse_ref, node.data_inputs)]
    return tuple(np.asarray(result) for result in registry.evaluate(node, inputs))


def _ratio(signal: Array, other: Array) -> float:
    """10 log10 of the signal's power over the difference's; infinite where there is none, and -infinite for NaN."""
    clean = signal.astype(np.float64)
    noise = float(np.square(clean - other).sum())
    power = float(np.square(clean).sum())
    if noise == 0:
        return float("inf")
    return 10 * float(np.log10(power / noise)) if np.isfinite(noise) and power > 0 else float("-inf")
