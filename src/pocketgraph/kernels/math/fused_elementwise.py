"""Chains of element-wise functions that TensorFlow's graph optimizer, Grappler, makes one op."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.registry import KERNELS, kernel

COMPOSABLE = frozenset((
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Exp", "Expm1", "Floor", "Inv",
    "Log", "Log1p", "Neg", "Reciprocal", "Rint", "Round", "Rsqrt", "Sigmoid", "Sin", "Sinh", "Sqrt", "Square", "Tan",
    "Tanh", "Elu", "Relu", "Relu6", "Selu",
))  # fmt: skip
"""Not a trait: what _UnaryOpsComposition composes, as in TensorFlow."""


@kernel("_UnaryOpsComposition")
def unary_ops_composition(x: Array, *, op_names: Sequence[str]) -> Array:
    """The functions called ``op_names``, one after the other.

    Raises:
        RunError: one of them is none that TensorFlow joins.
    """
    for op in op_names:
        found = KERNELS.row(op)
        if op not in COMPOSABLE or found is None:
            raise RunError(f"Do not have a compute function registered for op: {op}")
        x = np.asarray(found.function(x))
    return x
