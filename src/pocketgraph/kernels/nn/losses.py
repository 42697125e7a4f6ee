"""Losses: cross entropy over logits, with its gradient."""

from __future__ import annotations

import numpy as np

from pocketgraph.kernels.arrays import Array, is_small_float, widened
from pocketgraph.kernels.nn.activations import shifted
from pocketgraph.kernels.registry import kernel


def _log_probabilities(features: Array) -> tuple[Array, Array]:
    """(log softmax, softmax) along the last axis, widened; 16-bit floats are rounded after each step, as TensorFlow
    does it."""
    kind = features.dtype
    rounded = is_small_float(kind)

    def step(value: Array) -> Array:
        return widened(value.astype(kind)) if rounded else value

    low = step(shifted(widened(features)))
    powers = step(np.exp(low))
    total = step(powers.sum(axis=-1, keepdims=True))
    return step(np.asarray(low - step(np.log(total)))), step(np.asarray(powers / total))


@kernel("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy_with_logits(features: Array, labels: Array) -> tuple[Array, Array]:
    """(loss by row, gradient of the logits); features and labels (rows, classes) broadcast."""
    logits, wanted = np.broadcast_arrays(features, labels)
    if logits.ndim != 2:
        raise ValueError(f"logits must be 2-dimensional, not {list(logits.shape)}")
    logs, chances = _log_probabilities(logits)
    weights = widened(wanted)
    losses = np.where(weights == 0, 0, -weights * logs).sum(axis=-1, dtype=logs.dtype)
    return losses.astype(features.dtype), np.asarray(chances - weights).astype(features.dtype)


@kernel("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy_with_logits(features: Array, labels: Array) -> tuple[Array, Array]:
    """(loss by row, gradient of the logits); labels are class numbers, one a row."""
    rows, classes = features.shape
    if labels.shape != (rows,):
        raise ValueError(f"shapes that do not fit: {list(features.shape)} and {list(labels.shape)}")
    if bool(np.any((labels < 0) | (labels >= classes))):
        raise ValueError(f"Received a label value outside the valid range of [0, {classes})")
    logs, chances = _log_probabilities(features)
    places = (np.arange(rows), labels.astype(np.int64))
    gradient = chances.copy()
    gradient[places] -= 1
    return np.asarray(-logs[places]).astype(features.dtype), gradient.astype(features.dtype)
