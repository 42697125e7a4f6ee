"""What a chain of transforms made of a graph: what it cut off, and what is left of the results on random inputs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from pocketgraph.datasets.inferred_scaling import inferred_scaling
from pocketgraph.errors import PocketgraphError, UsageError, option
from pocketgraph.graph import Graph, Tensor
from pocketgraph.graph.order import reachable
from pocketgraph.inspect.rule_check import LOSSY
from pocketgraph.litert.cost_model import MOST_NODES
from pocketgraph.runtime.comparison.answer_metrics import signal_to_noise
from pocketgraph.runtime.feeding.default_tensors import default_fetches, needed_placeholders
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds
from pocketgraph.runtime.session import Session

LARGEST_SHARE_CUT = 0.5  # of the parameters
INPUTS = 4  # single ones leave some ten decibels more or less
FEWEST_CUT = 1000  # parameters; fewer are no network


def check_cut(graph: Graph, after: Graph, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Refuses a result that lacks most of the network, because it lies before the inputs.

    Args:
        graph, after: before and after the transforms.
        inputs, outputs: of ``graph``.

    Raises:
        UsageError: more than half of the parameters were cut off; it names the inputs that cut off none.
    """
    whole = _parameters(graph, reachable(graph, outputs))
    left = _parameters(graph, reachable(graph, outputs, stop=inputs))
    most = LARGEST_SHARE_CUT * whole
    if whole - left < max(FEWEST_CUT, most) or _parameters(after, after.nodes) > most:
        return
    ends = _needed_feeds(graph, outputs)
    hint = f"{option('inputs')}={','.join(ends)} keeps them; " if ends else ""
    raise UsageError(
        f"fed at {', '.join(inputs)} the outputs need {left:,} of {whole:,} parameters: the rest was cut off",
        where=option("inputs"),
        hint=f"{hint}{option('partial')} if that is what you want",
    )


def _needed_feeds(graph: Graph, outputs: Sequence[str]) -> list[str]:
    """What has to be fed for the outputs; none where that is not known."""
    try:
        return [name.removesuffix(":0") for name in needed_placeholders(graph.replace(inputs=()), list(outputs))]
    except PocketgraphError:
        return []


def scaling_that_went(before: Graph, after: Graph) -> str:
    """What to say where nodes that told how pixels are scaled became part of the first layer; empty where none did.

    Args:
        before, after: the graph before and after the transforms.
    """
    if len(before.inputs) != 1 or before.inputs[0] not in after:
        return ""
    told, left = (inferred_scaling(graph, before.inputs[0]) for graph in (before, after))
    if told is None or told.is_usual or (left is not None and (left.mean, left.std) == (told.mean, told.std)):
        return ""
    return (
        f"'{told.node}', which told how pixels are scaled, is part of the first layer now: say "
        f"{option('input_mean')}={told.mean:g} {option('input_std')}={told.std:g} where pictures are read"
    )


def decibels_left(before: Graph, after: Graph) -> float | None:
    """The least signal-to-noise ratio of a float output, in dB, on some inputs of random numbers; None where none can
    be made up or a graph does not run."""
    found = []
    try:
        fetches = default_fetches(before)
        engine = "reference" if len(after) > MOST_NODES else None  # one run by node takes less than planning so many
        with Session(before, engine=engine) as first, Session(after, engine=engine) as second:
            for seed in range(INPUTS if engine is None else 1):
                feeds = synthetic_feeds(before, fetches, seed)
                try:
                    pairs = list(zip(first.run(fetches, feeds), second.run(fetches, feeds), strict=True))
                except PocketgraphError:  # numbers that it refuses; others may do
                    continue
                for x, y in pairs:
                    if x.dtype == np.float32 and x.shape == y.shape and x.size:
                        clean = x.astype(np.float64)
                        noise = float(np.square(clean - y).sum())
                        found.append(signal_to_noise(float(np.square(clean).sum()), noise))
    except PocketgraphError:
        return None
    return min(found, default=None)


def trades_precision(names: Collection[str]) -> bool:
    """Whether one of the rules stores or computes with fewer bits."""
    return not LOSSY.isdisjoint(names)


def _parameters(graph: Graph, names: Collection[str]) -> int:
    values = (graph[name].attrs.get("value") for name in names if graph[name].op == "Const")
    return sum(value.size for value in values if isinstance(value, Tensor))
