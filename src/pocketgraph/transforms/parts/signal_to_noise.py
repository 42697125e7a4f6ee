"""How much of a model's results another form of it keeps, on made-up inputs and with the reference kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Node, node_name, parse_ref
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.order import reachable, topological
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels import registry

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
    with np.errstate(all="ignore"):
        return tuple(np.asarray(result) for result in registry.evaluate(node, inputs))


def _ratio(signal: Array, other: Array) -> float:
    """10 log10 of the signal's power over the difference's; infinite where there is none, and -infinite for NaN."""
    clean = signal.astype(np.float64)
    noise = float(np.square(clean - other).sum())
    power = float(np.square(clean).sum())
    if noise == 0:
        return float("inf")
    return 10 * float(np.log10(power / noise)) if np.isfinite(noise) and power > 0 else float("-inf")
