"""How far a graph's results move when each weight changes by its last bit, which rounding does in any engine."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Graph, Node, Tensor
from pocketgraph.graph.dtype import FLOAT


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
