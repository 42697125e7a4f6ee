"""How far a graph's results move by rounding, which engines do in orders of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pocketgraph.graph import Graph, Node, Tensor
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.comparison.compare import compared

MOST_BY_ROUNDING = 10
"""Times the tolerance: more than this is a mistake, and no rounding that grew."""


def moves_by_rounding(
    pairs: Mapping[str, Sequence[tuple[Array, Array]]],
    limits: Mapping[str, float],
    run_changed: Callable[[], Sequence[Mapping[str, Array]]],
) -> dict[str, float]:
    """How far rounding moves outputs that are off, as a share of their largest magnitude: recurrent networks grow a
    difference in each step, logarithms that of small numbers, sines that of large ones.

    Args:
        pairs: by output: by set of feeds, what the model gave, and what is beside it.
        limits: by output, the tolerance, as a share of the largest magnitude.
        run_changed: by set of feeds, what the model gives ``with_last_bits_changed``; called where an output needs it.

    Returns:
        That of outputs that are past their limit.
    """
    shares = {name: compared(name, pair, limits[name]).largest_relative for name, pair in pairs.items()}
    past = [name for name, share in shares.items() if share > limits[name]]
    found = run_changed() if past else ()
    moved = {name: [(pair[0], other[name]) for pair, other in zip(pairs[name], found, strict=True)] for name in past}
    return {name: compared(name, pair, 1.0).largest_relative for name, pair in moved.items()}


def larger_limits(moves: Mapping[str, float], limits: Mapping[str, float]) -> dict[str, float]:
    """The tolerances that ``moves_by_rounding`` makes larger, at most ``MOST_BY_ROUNDING`` times as large."""
    return {name: min(move, MOST_BY_ROUNDING * limits[name]) for name, move in moves.items() if move > limits[name]}


def with_last_bits_changed(graph: Graph) -> Graph:
    """The graph with each float32 weight larger or smaller by its last bit, by chance; single numbers stay.

    In a matrix or a filter it is the last bit times the root of the number of terms that a sum has there: so far do
    sums of as many terms in another order lie apart.

    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse("w = Const(float [1.0, 2.0])")
    >>> moved = with_last_bits_changed(graph)["w"].tensor.numpy()
    >>> bool((moved != [1, 2]).all()), bool(np.allclose(moved, [1, 2], rtol=2e-7))
    (True, True)
    """
    rng = np.random.default_rng(0)

    def changed(node: Node) -> Node:
        if node.op != "Const" or node.attr("dtype") is not FLOAT or node.tensor.size < 2:
            return node
        return node.with_attrs(value=Tensor.from_numpy(last_bits_changed(node.tensor.numpy(), rng)))

    return graph.map_nodes(changed)


def last_bits_changed(values: Array, rng: np.random.Generator) -> Array:
    """Float32 values of a weight, as ``with_last_bits_changed`` changes it."""
    terms = values.size // values.shape[-1] if values.ndim > 1 else 1
    steps = np.where(rng.random(values.shape) < 0.5, -1, 1).astype(np.float32) * np.float32(np.sqrt(terms))
    return np.where(values == 0, values, values + steps * np.spacing(np.abs(values)))
