"""Multiplies the weights of a convolution or matrix product by a factor for each output channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.graph import Node, Tensor
from pocketgraph.graph.tensor import Array


class _ScaledOperand(NamedTuple):
    """Where a linear op has its data and its weights among the inputs, and how many channels its data has."""

    source: int
    weights: int
    inputs: Callable[[Node, tuple[int, ...]], int | None]


def _inputs_of_product(product: Node, shape: tuple[int, ...]) -> int | None:
    if len(shape) != 2 or product.attr("transpose_a"):
        return None
    return shape[1] if product.attr("transpose_b") else shape[0]


TRANSPOSED = frozenset({"Conv2DBackpropInput", "Conv3DBackpropInputV2"})
"""Transposed convolutions: their data come last, and their weights are [..., out, in]."""


def _inputs_of_convolution(product: Node, shape: tuple[int, ...]) -> int | None:
    if len(shape) != rank_of(product):
        return None
    return shape[-1 if product.op in TRANSPOSED else -2]


def rank_of(product: Node) -> int:
    """How many dimensions a linear op's data and weights have."""
    return 2 if product.op == "MatMul" else 5 if product.op.startswith("Conv3D") else 4


LINEAR = {
    "Conv2D": _ScaledOperand(0, 1, _inputs_of_convolution),
    "Conv3D": _ScaledOperand(0, 1, _inputs_of_convolution),
    "DepthwiseConv2dNative": _ScaledOperand(0, 1, _inputs_of_convolution),
    "Conv2DBackpropInput": _ScaledOperand(2, 1, _inputs_of_convolution),
    "Conv3DBackpropInputV2": _ScaledOperand(2, 1, _inputs_of_convolution),
    "MatMul": _ScaledOperand(0, 1, _inputs_of_product),
}
"""The ops whose weights can take on factors of channels."""


def output_channels(product: Node, shape: tuple[int, ...]) -> int | None:
    """How many channels come out with weights of this shape; None when that is no shape of weights.

    Conv2D has weights [height, width, in, out], Conv3D [depth, height, width, in, out], DepthwiseConv2dNative
    [height, width, in, multiplier] with in x multiplier channels, transposed convolutions [..., out, in], MatMul
    [in, out], or [out, in] with ``transpose_b``.
    """
    if len(shape) != rank_of(product):
        return None
    if product.op in TRANSPOSED or (product.op == "MatMul" and product.attr("transpose_b")):
        return shape[-2]
    return shape[2] * shape[3] if product.op == "DepthwiseConv2dNative" else shape[-1]


def scaled_weights(product: Node, weights: Tensor, factors: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """The weights times ``factors`` (floats, one for each output channel); None when the sizes do not fit."""
    channels = output_channels(product, weights.shape)
    if channels is None or factors.shape != (channels,):
        return None
    values = weights.numpy()
    if product.op in TRANSPOSED or (product.op == "MatMul" and product.attr("transpose_b")):
        factors = factors[:, np.newaxis]
    elif product.op == "DepthwiseConv2dNative":
        factors = factors.reshape(weights.shape[2:])
    with np.errstate(over="ignore"):
        scaled: np.ndarray[Any, Any] = np.multiply(values, factors)
    return scaled


def overflows(weights: Tensor, scaled: Array) -> bool:
    """Whether a factor made infinities of weights that had none."""
    return not np.isfinite(scaled).all() and bool(np.isfinite(weights.numpy()).all())


def input_folded(product: Node, weights: Array, scale: Array, offset: Array) -> tuple[Array, Array] | None:
    """Weights (float32) and an offset for each output channel (float64), so that ``L'(x) + result`` is
    ``L(x * scale + offset)``, where scale and offset hold one float64 for each input channel, or one for all.

    None when a transposed convolution would have to spread an offset, which its borders would not get alike.
    """
    wide = weights.astype(np.float64)
    if product.op == "MatMul":
        matrix = wide.T if product.attr("transpose_b") else wide  # [in, out]
        scaled = matrix * np.broadcast_to(scale, matrix.shape[:1])[:, np.newaxis]
        shifts = np.broadcast_to(offset, matrix.shape[:1]) @ matrix
        return (scaled.T if product.attr("transpose_b") else scaled).astype(np.float32), shifts
    if product.op in TRANSPOSED:
        zeros = np.zeros(weights.shape[-2])
        return None if offset.any() else ((wide * scale).astype(np.float32), zeros)
    column = np.broadcast_to(scale, weights.shape[-2:-1])[:, np.newaxis]
    shift = np.broadcast_to(offset, weights.shape[-2:-1])[:, np.newaxis]
    moved = (wide * shift).sum(axis=tuple(range(wide.ndim - 2)))  # [in, out] or [in, multiplier]
    total = moved.reshape(-1) if product.op == "DepthwiseConv2dNative" else moved.sum(axis=0)
    return (wide * column).astype(np.float32), total


def has_padding(product: Node, shape: tuple[int, ...]) -> bool:
    """Whether a linear op with weights of this shape may take zeros from beyond the borders of its data."""
    if product.op == "MatMul":
        return False
    padding = product.attr("padding")
    if padding == b"EXPLICIT":
        return any(product.attr("explicit_paddings", (1,)))
    return not (padding == b"VALID" or (padding == b"SAME" and set(shape[:-2]) == {1}))
