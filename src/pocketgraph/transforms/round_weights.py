"""Rounds weights to a few levels, so that the model file compresses without changing its types."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.transforms._compat import Compat
from pocketgraph.transforms._constants import checked_constant
from pocketgraph.transforms._levels import value_range
from pocketgraph.transforms.tool import transform

ALMOST_ZERO = 1e-6
SMALLEST = 16  # elements: below this, rounding saves nothing


@transform
def round_weights(graph: Graph, *, num_steps: int = 256, compat: Compat = Compat.FIXED) -> Graph:
    """Rounds each float constant to the middles of ``num_steps`` equal steps between its least and greatest value.

    Given:   w = Const(float [0, 0.3, 0.4, 1, 0, 0.3, 0.4, 1, 0, 0.3, 0.4, 1, 0, 0.3, 0.4, 1])
             ; round_weights(num_steps=2)
    Result:  w = Const(float [0.25, 0.25, 0.25, 0.75, 0.25, 0.25, 0.25, 0.75, 0.25, 0.25, 0.25, 0.75, 0.25, 0.25,
                 0.25, 0.75])

    Constants of other types or fewer than 16 elements, or with one value only, stay as they are.

    Differs from the original: the greatest value belongs to the last step (there, it is rounded up to a level of its
    own, half a step beyond it); a constant of negative values has its own greatest value (there, 1.1754944e-38), and so
    one of equal values keeps them; what is NaN or infinite stays so, and does not count (there, it becomes some large
    number; with ``Compat.ORIGINAL``, NaN); control inputs and device stay.

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
        if compat.original:
            return const(node.name, rounded(weights.numpy(), num_steps))
        result = rounded_within(weights.numpy(), num_steps)
        return node if result is None else const(node.name, result, inputs=node.inputs, device=node.device)

    return graph.map_nodes(change)


def rounded_within(values: np.ndarray[Any, Any], steps: int) -> np.ndarray[Any, Any] | None:
    """Each finite value as the middle of its step, of ``steps`` between the least and the greatest; float32.

    None where these are one value.
    """
    finite = np.isfinite(values)
    low, high = np.min(values, initial=np.inf, where=finite), np.max(values, initial=-np.inf, where=finite)
    if not low < high:
        return None
    width = (float(high) - float(low)) / steps
    place = np.subtract(values, float(low), dtype=np.float64, where=finite, out=np.zeros(values.shape))
    np.minimum(np.floor(place / width), steps - 1, out=place)
    result: np.ndarray[Any, Any] = (float(low) + width * (place + 0.5)).astype(np.float32)
    np.copyto(result, values, where=~finite)
    return result


def rounded(values: np.ndarray[Any, Any], steps: int) -> np.ndarray[Any, Any]:
    """``low + width * (floor((v - low) / width) + 0.5)`` in float32, with ``width = (high - low) / steps``.

    The original's arithmetic: the greatest value comes to lie half a step beyond itself.
    """
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
