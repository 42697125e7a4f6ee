"""Batch normalization with what TensorFlow's graph optimizer, Grappler, joins to it."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, widened
from pocketgraph.kernels.nn.activations import FUNCTIONS
from pocketgraph.kernels.nn.normalization import fused_batch_norm
from pocketgraph.kernels.registry import kernel


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
    activation_mode: str = "Identity",
    data_format: str = "NHWC",
    is_training: bool = True,
) -> tuple[Array, ...]:
    """FusedBatchNormV3, then the side input is added, if there is one, then the activation is taken."""
    y, *others = fused_batch_norm(
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
