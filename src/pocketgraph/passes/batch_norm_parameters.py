"""What a batch normalization with known statistics does to each channel: one product and one sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pocketgraph.graph import Node, opdefs
from pocketgraph.graph.tensor import Array

T = TypeVar("T")
GLOBAL = "BatchNormWithGlobalNormalization"


class Affine(NamedTuple):
    """Channel i of the result is channel i of the input ``* scale[i] + offset[i]``."""

    scale: Array
    offset: Array


def arranged(node: Node, parameters: Sequence[T]) -> tuple[T, T, T, T]:
    """Gamma, beta, mean and variance, of the inputs of a batch norm behind its first, which each op orders its way."""
    first, second, third, fourth = parameters
    return (fourth, third, first, second) if node.op == GLOBAL else (first, second, third, fourth)


def affine_of(node: Node, gamma: Array, beta: Array, mean: Array, variance: Array, dtype: type[Any]) -> Affine:
    """``scale = gamma / sqrt(variance + epsilon)``, ``offset = beta - mean * scale``.

    ::

        y = FusedBatchNorm(x, gamma, beta, mean, variance)   ->   scaled = Mul(x, scale)
                                                                  y = Add(scaled, offset)

    Args:
        node: the batch norm; an epsilon that it does not state is the op's default.
        gamma, beta, mean, variance: one float for each channel.
        dtype: in which all is computed from the root on; the sum under the root is done in the variance's own. The
            tools that fold batch norms differ in it, and so in the last digit.

    Raises:
        GraphError: the node lacks an attribute that has no default.
    """
    is_global = node.op == GLOBAL
    epsilon = opdefs.attr_or_default(node, "variance_epsilon" if is_global else "epsilon")
    assert isinstance(epsilon, float)
    with np.errstate(all="ignore"):
        scale = dtype(1) / np.sqrt((variance + variance.dtype.type(epsilon)).astype(dtype))
        if not is_global or opdefs.attr_or_default(node, "scale_after_normalization"):
            scale = scale * gamma
        return Affine(scale, -mean * scale + beta)
