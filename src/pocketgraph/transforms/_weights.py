"""Multiplies the weights of a convolution or matrix product by a factor for each output channel."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.graph import Node, Tensor


def output_channels(product: Node, shape: tuple[int, ...]) -> int | None:
    """How many channels come out with weights of this shape; None when that is no shape of weights.

    Conv2D has weights [height, width, in, out], DepthwiseConv2dNative [height, width, in, multiplier] with in x
    multiplier channels, MatMul [in, out], or [out, in] with ``transpose_b``.
    """
    if product.op == "MatMul":
        return None if len(shape) != 2 else shape[0] if product.attr("transpose_b") else shape[1]
    if len(shape) != 4:
        return None
    return shape[2] * shape[3] if product.op == "DepthwiseConv2dNative" else shape[3]


def scaled_weights(product: Node, weights: Tensor, factors: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """The float32 weights times ``factors`` (float32, one for each output channel); None when the sizes do not fit."""
    channels = output_channels(product, weights.shape)
    if channels is None or factors.shape != (channels,):
        return None
    values = weights.numpy()
    if product.op == "MatMul" and product.attr("transpose_b"):
        factors = factors[:, np.newaxis]
    elif product.op == "DepthwiseConv2dNative":
        factors = factors.reshape(weights.shape[2:])
    scaled: np.ndarray[Any, Any] = np.multiply(values, factors)
    return scaled
