"""Rounds the weights of a layer up or down together, by gradient: AdaRound.

Codes ``floor(w / s) + h`` with ``h`` between 0 and 1 are sought that make ``(v - w)' H (v - w)`` small, ``H`` being the
operand's second moments; while that goes on, ``h`` is pressed harder and harder towards 0 or 1 (Nagel et al., "Up or
Down? Adaptive Rounding for Post-Training Quantization", 2020).
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.operator_traits import LARGEST_CODE

STEPS = 600
LEARNING_RATE = 0.1  # of a step; Adam's
ADAM_DECAYS = (0.9, 0.999)  # of Adam's two averages
WARM_UP_SHARE = 0.2  # share of the steps before anything is pressed
REGULARIZATION = 0.5  # of the regularizer, beside moments with a mean of 1
BETA_RANGE = (20.0, 2.0)  # the regularizer's exponent at first and at last
SIGMOID_STRETCH = (-0.1, 1.1)  # of the sigmoid, so that h reaches 0 and 1


def adaround(weights: Array, scales: Array, moments: Array, largest: int = LARGEST_CODE) -> Array:
    """Codes for a matrix of weights.

    Args:
        weights: float64 [outputs, inputs].
        scales: float64 [outputs].
        moments: float64 [inputs, inputs] for all outputs, or [outputs, inputs, inputs].
        largest: the largest code.

    Returns:
        float64 [outputs, inputs], whole numbers from ``-largest`` to ``largest``, each one of the two next to its
        weight.
    """
    exact = np.clip(weights / scales[:, np.newaxis], -largest, largest)
    below = np.floor(exact)
    share = (exact - below).astype(np.float32)
    curve = _normalized(moments)
    low, high = SIGMOID_STRETCH
    squeezed = np.clip((share - low) / (high - low), 1e-4, 1 - 1e-4)
    state = np.log(squeezed / (1 - squeezed))
    slope, square = np.zeros_like(state), np.zeros_like(state)
    for step in range(STEPS):
        sigmoid = 1 / (1 + np.exp(-state))
        stretched = (high - low) * sigmoid + low
        h = np.clip(stretched, 0, 1)
        gradient = _times(h - share, curve)
        done = (step / STEPS - WARM_UP_SHARE) / (1 - WARM_UP_SHARE)
        if done > 0:
            power = BETA_RANGE[1] + (BETA_RANGE[0] - BETA_RANGE[1]) * (1 - done)
            middle = 2 * h - 1
            gradient -= REGULARIZATION * power * np.sign(middle) * np.abs(middle) ** (power - 1)
        gradient *= (high - low) * sigmoid * (1 - sigmoid) * ((stretched > 0) & (stretched < 1))
        slope += (1 - ADAM_DECAYS[0]) * (gradient - slope)
        square += (1 - ADAM_DECAYS[1]) * (gradient**2 - square)
        unbiased = slope / (1 - ADAM_DECAYS[0] ** (step + 1))
        state -= LEARNING_RATE * unbiased / (np.sqrt(square / (1 - ADAM_DECAYS[1] ** (step + 1))) + 1e-8)
    up = (high - low) / (1 + np.exp(-state)) + low >= 0.5
    result: Array = np.clip(below + up, -largest, largest)
    return result


def _normalized(moments: Array) -> Array:
    """The moments with a mean of 1 on the diagonal, float32; the scales of rows do not matter for up or down."""
    trace = np.trace(moments, axis1=-2, axis2=-1) / moments.shape[-1]
    result: Array = (moments / np.maximum(trace, 1e-30)[..., np.newaxis, np.newaxis]).astype(np.float32)
    return result


def _times(apart: Array, curve: Array) -> Array:
    if curve.ndim == 2:
        result: Array = apart @ curve
    else:
        result = np.einsum("oi,oij->oj", apart, curve, optimize=False)
    return result
