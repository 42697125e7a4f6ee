"""Rounds weights to a few levels, so that the model file compresses without changing its types."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.transforms._constants import checked_constant
from pocketgraph.transforms._levels import value_range
from pocketgraph.transforms.tool import transform

ALMOST_ZERO = 1e-6
SMALLEST = 16  # elements: below this, rounding saves nothing


@transform
def round_weights(graph: Graph, *, num_steps: int = 256) -> Graph:
    """Rounds each float constant to the middles of ``num_steps`` equal steps between its least and greatest value.

    Given:   w = Const(float [0, 0.3, 0.4, 1, 0, 0.3, 0.4, 1, 0, 0.3, 0.4, 1, 0, 0.3, 0.4, 1])
             ; round_weights(num_steps=2)
    Result:  w = Const(float [0.25, 0.25, 0.25, 1.25, 0.25, 0.25, 0.25, 1.25, 0.25, 0.25, 0.25, 1.25, 0.25, 0.25,
                 0.25, 1.25])

    As in the original the greatest value lies past the last step and is rounded up, so there are up to
    ``num_steps + 1`` levels, and the search for the greatest starts at the smallest normal float. Constants of other
    types or fewer than 16 elements stay as they are.

    Differs from the original: what has no step, because of NaN or infinity, becomes NaN (there, some large number).

    Args:
        num_steps: how many steps, 1 or more.

    Raises:
        TransformError: ``num_steps`` is less than 1, or a constant has no ``dtype`` or no ``value``.
    """
    if num_steps < 1:
        raise TransformError(f"num_steps must be 1 or more, not {num_steps}")

    def change(node: Node) -> Node:
        if node.op != "Const":
            return node
        weights = checked_constant(node)
        if node.attrs["dtype"] is not FLOAT or weights.dtype is not FLOAT or weights.size < SMALLEST:
            return node
        return const(node.name, rounded(weights.numpy(), num_steps))

    return graph.map_nodes(change)


def rounded(values: np.ndarray[Any, Any], steps: int) -> np.ndarray[Any, Any]:
    """``low + width * (floor((v - low) / width) + 0.5)`` in float32, with ``width = (high - low) / steps``."""
    low, high = value_range(values)
    if low == high:
        high = np.float32(low + 1) if abs(low) < ALMOST_ZERO else np.float32(2 * low)  # low > 0: see value_range
    with np.errstate(all="ignore"):
        width = np.float32(high - low) / np.float32(steps)
        result: np.ndarray[Any, Any] = np.subtract(values, low)
        np.divide(result, width, out=result)
        np.floor(result, out=result)
        np.add(result, np.float32(0.5), out=result)
        np.multiply(result, width, out=result)
        np.add(result, low, out=result)
    return result
