"""Where NaN and infinity begin: the first node of a run whose result is not finite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pocketgraph.graph import Graph, Node, canonical
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.opdefs import known_output_dtypes
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.shapes.infer import postorder
from pocketgraph.runtime.session import Session

LAYERS = ops_with("layer", "fused_batch_norm")
SKIPPED = ops_with("placeholder", "constant", "variable", "reference")
MOST_CHECKED = 400
"""Tensors that are looked at in one run for the first that is not finite."""


def is_not_finite(array: Array) -> bool:
    """Whether an array of floats holds NaN or infinity."""
    return array.dtype.kind in "fV" and not bool(np.isfinite(array.astype(np.float64)).all())


def first_not_finite(session: Session, output: str, feeds: Mapping[str, Any]) -> Node | None:
    """The first node whose result is not finite, in an order in which they run; None where all are.

    Args:
        session: of the graph.
        output: what is computed.
        feeds: arrays by the names of tensors.

    Raises:
        RunError: the graph does not run.
    """
    graph = session.graph
    fed = {canonical(name) for name in feeds}
    nodes = [
        node for node in postorder(graph, [output])
        if node.op not in SKIPPED and f"{node.name}:0" not in fed
        and (dtypes := known_output_dtypes(node)) and dtypes[0] is not None and dtypes[0].is_floating
    ]  # fmt: skip
    for start in range(0, len(nodes), MOST_CHECKED):
        some = nodes[start : start + MOST_CHECKED]
        for node, array in zip(some, session.run([f"{node.name}:0" for node in some], feeds), strict=True):
            if is_not_finite(array):
                return node
    return None


def where_of(graph: Graph, node: Node) -> str:
    """A node and the nearest layer that its value comes from: ``in 'log' (Log), behind the layer 'dense'``."""
    layers = [other.name for other in postorder(graph, [node.name]) if other.op in LAYERS]
    layer = layers[-1] if layers else node.name
    return f"in '{node.name}' ({node.op})" + (f", behind the layer '{layer}'" if layer != node.name else "")
