"""How far a graph's results move by rounding, which engines do in orders of their own."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Graph, Node, Tensor
from pocketgraph.graph.dtype import FLOAT


def with_last_bits_changed(graph: Graph, seed: int = 0) -> Graph:
    """The graph with each float32 weight larger or smaller by its last bit, by chance; single numbers stay.

    In a matrix or a filter it is the last bit times the root of the number of terms that a sum has there: so far do
    sums of as many terms in another order lie apart.

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
        terms = values.size // values.shape[-1] if values.ndim > 1 else 1
        steps = np.where(rng.random(values.shape) < 0.5, -1, 1).astype(np.float32) * np.float32(np.sqrt(terms))
        moved = np.where(values == 0, values, values + steps * np.spacing(np.abs(values)))
        return node.with_attrs(value=Tensor.from_numpy(moved))

    return graph.map_nodes(changed)
