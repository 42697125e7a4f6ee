"""Rounds weights to a few levels, so that the model file compresses without changing its types."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.original.matchable import matchable
from pocketgraph.transforms.original.quantization_range import value_range
from pocketgraph.transforms.parts.constants_of_nodes import checked_constant
from pocketgraph.transforms.rule_parameters import Int32
from pocketgraph.transforms.tool import transform

ALMOST_ZERO = 1e-6
LEAST_INT = np.float32(-(2**31))  # what x86 gives for a float that no int32 holds
SMALLEST = 16  # elements: below this, rounding saves nothing


@transform
def round_weights(graph: Graph, *, num_steps: Int32 = 256, compat: Compat = Compat.FIXED) -> Graph:
    """Rounds each float constant to the middles of ``num_steps`` equal steps between its least and greatest value.

    Given:   w = Const(float [0, 0.3, 0.4, 1, 0, 0.3, 0.4, 1, 0, 0.3, 0.4, 1, 0, 0.3, 0.4, 1])
             ; round_weights(num_steps=2)
    Result:  w = Const(float [0.25, 0.25, 0.25, 1.25, 0.25, 0.25, 0.25, 1.25, 0.25, 0.25, 0.25, 1.25, 0.25, 0.25,
                 0.25, 1.25])

    The greatest value becomes the middle of the step behind the last. Constants of other types or fewer than 16
    elements stay as they are.

    Differs from the original: a constant of negative values ends at its own greatest value (there, at 1.1754944e-38);
    what is NaN or infinite stays so, and does not count (there, it becomes some large number); control inputs stay;
    fewer than one step are an error (there, all values become infinite or NaN, or the steps go downwards).

    Args:
        num_steps: how many steps, 1 or more.

    Raises:
        TransformError: ``num_steps`` is less than 1, or a constant has no ``dtype`` or no ``value``.
    """
    if num_steps < 1 and not compat.original:
        raise TransformError(f"num_steps must be 1 or more, not {num_steps}")

    may_match = matchable(graph, compat)

    def change(node: Node) -> Node:
        if node.op != "Const" or not may_match(node):
            return node
        weights = checked_constant(node)
        if node.attrs["dtype"] is not FLOAT or weights.dtype is not FLOAT or weights.size < SMALLEST:
            return node
        values = weights.numpy()
        if compat.original or (values.max() >= 0 and np.isfinite(values).all()):
            return const(node.name, rounded(values, num_steps), inputs=() if compat.original else node.control_inputs)
        return const(node.name, rounded_finite(values, num_steps), inputs=node.control_inputs)

    return graph.map_nodes(change)


def rounded_finite(values: np.ndarray[Any, Any], steps: int) -> np.ndarray[Any, Any]:
    """As ``rounded``, with NaN and infinity left out of it, and steps between the least and the greatest of negative
    values, too; float32."""
    finite = np.isfinite(values)
    chosen = values[finite]
    result: np.ndarray[Any, Any] = values.copy()
    if chosen.size and chosen.min() < chosen.max():
        negative = chosen.max() < 0
        steps_of = rounded(-chosen if negative else chosen, steps)
        result[finite] = -steps_of if negative else steps_of
    return result


def rounded(values: np.ndarray[Any, Any], steps: int) -> np.ndarray[Any, Any]:
    """``low + width * (floor((v - low) / width) + 0.5)`` in float32, with ``width = (high - low) / steps``.

    The original's arithmetic: the greatest value comes to lie half a step beyond itself. The number of a step that is
    none, or too large for 32 bits, is the least that these hold, as on x86 processors.
    """
    low, high = value_range(values)
    if low == high:
        high = np.float32(low + 1) if abs(low) < ALMOST_ZERO else np.float32(2 * low)  # low > 0: see value_range
    with np.errstate(all="ignore"):
        width = np.float32(high - low) / np.float32(steps)
        result: np.ndarray[Any, Any] = np.subtract(values, low)
        np.divide(result, width, out=result)
        np.floor(result, out=result)
        np.copyto(result, LEAST_INT, where=~(np.abs(result) < -LEAST_INT))
        np.add(result, np.float32(0.5), out=result)
        np.multiply(result, width, out=result)
        np.add(result, low, out=result)
    return result
