"""How far a graph's results move when each weight changes by its last bit, which rounding does in any engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pocketgraph.graph import Graph, Node, Tensor
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.comparison.compare import compared

MOST_BY_ROUNDING = 10
"""Times the tolerance: more than this is a mistake, and no rounding that grew."""


def limits_by_rounding(
    pairs: Mapping[str, Sequence[tuple[Array, Array]]],
    limits: Mapping[str, float],
    run_changed: Callable[[], Sequence[Mapping[str, Array]]],
) -> dict[str, float]:
    """The tolerances of outputs that are a little off, as they are in any two engines: what a change of each weight by
    its last bit moves. Recurrent networks grow such a difference in each step.

    Args:
        pairs: by output: by set of feeds, what the model gave, and what is beside it.
        limits: by output, the tolerance so far, as a share of the largest magnitude.
        run_changed: by set of feeds, what the model gives ``with_last_bits_changed``; called where an output needs it.

    Returns:
        Those of outputs that are past their limit by no more than ``MOST_BY_ROUNDING``, where they become larger.
    """
    shares = {name: compared(name, pair, limits[name]).largest_relative for name, pair in pairs.items()}
    near = [name for name, share in shares.items() if limits[name] < share <= MOST_BY_ROUNDING * limits[name]]
    found = run_changed() if near else ()
    larger = {}
    for name in near:
        moves = [(pair[0], other[name]) for pair, other in zip(pairs[name], found, strict=True)]
        moved = min(compared(name, moves, 1.0).largest_relative, MOST_BY_ROUNDING * limits[name])
        if moved > limits[name]:
            larger[name] = moved
    return larger


def with_last_bits_changed(graph: Graph, seed: int = 0) -> Graph:
    """The graph with each float32 weight a step of its last bit larger or smaller, by chance; single numbers stay.

    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse("w = Const(float [1.0, 2.0])")
    >>> moved = with_last_bits_changed(graph)["w"].tensor.numpy()
    >>> bool((moved != [1, 2]).all()), bool(np.allclose(moved, [1, 2], rtol=2e-7))
    (True, True)
    """
    rng = np.random.default_rng(seed)

    def changed(node: Node) -> Node:
        if node.op != "Const" or node.attr("dtype") is not FLOAT or node.tensor.size < 2:
            return node
        values = node.tensor.numpy()
        towards = np.where(rng.random(values.shape) < 0.5, np.float32(-np.inf), np.float32(np.inf))
        return node.with_attrs(value=Tensor.from_numpy(np.where(values == 0, values, np.nextafter(values, towards))))

    return graph.map_nodes(changed)
