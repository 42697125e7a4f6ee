"""More ops that TensorFlow's own optimizer writes into graphs: chains of functions, hashed numbers, batch norms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.activations import FUNCTIONS
from pocketgraph.kernels.arrays import Array, widened
from pocketgraph.kernels.hashing import string_to_hash_bucket_fast
from pocketgraph.kernels.normalization import fused_batch_norm_v3
from pocketgraph.kernels.registry import find, kernel
from pocketgraph.kernels.texts import as_string

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
        found = find(op)
        if op not in COMPOSABLE or found is None:
            raise RunError(f"Do not have a compute function registered for op: {op}")
        x = np.asarray(found.function(x))
    return x


@kernel("_TensorToHashBucketFast")
def tensor_to_hash_bucket_fast(input: Array, *, num_buckets: int) -> Array:
    """AsString of integers, then StringToHashBucketFast."""
    return string_to_hash_bucket_fast(as_string(input), num_buckets=num_buckets)


@kernel("_FusedBatchNormEx")
def fused_batch_norm_ex(
    x: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    *side_input: Array,
    epsilon: float = 1e-4,
    exponential_avg_factor: float = 1.0,
    num_side_inputs: int = 0,
    activation_mode: str = "Identity",
    data_format: str = "NHWC",
    is_training: bool = True,
) -> tuple[Array, ...]:
    """FusedBatchNormV3, then the side input is added, if there is one, then the activation is taken."""
    y, *others, _ = fused_batch_norm_v3(
        x, scale, offset, mean, variance,
        epsilon=epsilon, exponential_avg_factor=exponential_avg_factor, data_format=data_format,
        is_training=is_training,
    )  # fmt: skip
    for more in side_input:
        if more.shape != x.shape:
            raise RunError(f"side_input shape must be equal to input shape: {list(more.shape)} != {list(x.shape)}")
        y = y + more
    if activation_mode == "Relu":
        y = FUNCTIONS["Relu"](widened(y)).astype(x.dtype, copy=False)
    elif activation_mode != "Identity":
        raise RunError(f"Unsupported activation mode: {activation_mode}")
    return (y, *others, np.zeros(0, np.float32))
