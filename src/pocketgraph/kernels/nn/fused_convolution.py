"""Ops that Grappler, TensorFlow's graph optimizer, makes: products with bias or batch norm and activation in one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pocketgraph.kernels.arrays import Array, widened
from pocketgraph.kernels.math.elementwise import sigmoid
from pocketgraph.kernels.math.matrix_product import mat_mul
from pocketgraph.kernels.nn.activations import FUNCTIONS, leaky_relu
from pocketgraph.kernels.nn.convolution import conv2d, depthwise_conv2d_native
from pocketgraph.kernels.registry import kernel

ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    **{op: FUNCTIONS[op] for op in ("Relu", "Relu6", "Elu")},
    "Sigmoid": sigmoid,
    "Tanh": np.tanh,
}
SLOPED = ("LeakyRelu", "_LeakyRelu")
"""The activation with a slope of its own, as the first and the later optimizer call it."""


@kernel("_FusedConv2D")
def fused_conv2d(
    input: Array,
    filter: Array,
    *args: Array,
    strides: Sequence[int],
    padding: str,
    num_args: int,
    fused_ops: Sequence[str] = (),
    explicit_paddings: Sequence[int] = (),
    data_format: str = "NHWC",
    filter_format: str = "HWIO",
    dilations: Sequence[int] = (1, 1, 1, 1),
    epsilon: float = 1e-4,
    leakyrelu_alpha: float = 0.2,
) -> Array:
    """Conv2D, then ``fused_ops``: BiasAdd (args: bias) or FusedBatchNorm (args: scale, offset, mean, variance), and
    perhaps an activation."""
    if filter_format != "HWIO":
        raise ValueError(f"the filter must be HWIO, not {filter_format}")
    result = widened(
        conv2d(
            input,
            filter,
            strides=strides,
            padding=padding,
            explicit_paddings=explicit_paddings,
            data_format=data_format,
            dilations=dilations,
        )
    )
    channels = filter.shape[-1]
    along = (1, channels, 1, 1) if data_format.startswith("NC") else (channels,)
    found = _finished(result, args[:num_args], along, fused_ops, epsilon, leakyrelu_alpha)
    return found.astype(input.dtype, copy=False)


def _finished(
    result: Array, extra: Sequence[Array], along: tuple[int, ...], fused_ops: Sequence[str], epsilon: float,
    alpha: float,
) -> Array:  # fmt: skip
    """What follows the product; ``along`` is the shape in which a vector of its channels broadcasts.

    Raises:
        ValueError: TensorFlow has no such fusion, or the vectors do not fit.
    """
    first, rest = (fused_ops[0], fused_ops[1:]) if fused_ops else ("", ())
    wanted = {"BiasAdd": 1, "FusedBatchNorm": 4}.get(first)
    if wanted is None or len(rest) > 1 or any(op not in ACTIVATIONS and op not in SLOPED for op in rest):
        raise ValueError(f"Fusion is not implemented: [{','.join(fused_ops)}]")
    channels = max(along)
    if len(extra) != wanted or any(a.shape != (channels,) for a in extra):
        shapes = ", ".join(str(list(a.shape)) for a in extra)
        raise ValueError(f"{first} of {channels} channels takes {wanted} vectors of that size, not {shapes}")
    parts = [widened(a).reshape(along) for a in extra]
    if first == "BiasAdd":
        result = result + parts[0]
    else:
        scale, offset, mean, variance = parts
        factor = scale / np.sqrt(variance + result.dtype.type(epsilon))
        result = (result - mean) * factor + offset
    for op in rest:
        result = leaky_relu(result, alpha=alpha) if op in SLOPED else ACTIVATIONS[op](result)
    return result


@kernel("_FusedMatMul")
def fused_mat_mul(
    a: Array,
    b: Array,
    *args: Array,
    num_args: int,
    fused_ops: Sequence[str] = (),
    transpose_a: bool = False,
    transpose_b: bool = False,
    epsilon: float = 1e-4,
    leakyrelu_alpha: float = 0.2,
) -> Array:
    """MatMul, then BiasAdd and perhaps an activation."""
    product = widened(mat_mul(a, b, transpose_a=transpose_a, transpose_b=transpose_b))
    found = _finished(product, args[:num_args], (product.shape[-1],), fused_ops, epsilon, leakyrelu_alpha)
    return found.astype(a.dtype, copy=False)


@kernel("_FusedDepthwiseConv2dNative")
def fused_depthwise_conv2d(
    input: Array,
    filter: Array,
    *args: Array,
    strides: Sequence[int],
    padding: str,
    num_args: int,
    fused_ops: Sequence[str] = (),
    data_format: str = "NHWC",
    dilations: Sequence[int] = (1, 1, 1, 1),
    epsilon: float = 1e-4,
    leakyrelu_alpha: float = 0.2,
) -> Array:
    """DepthwiseConv2dNative, then ``fused_ops`` as _FusedConv2D has them."""
    product = widened(
        depthwise_conv2d_native(
            input, filter, strides=strides, padding=padding, data_format=data_format, dilations=dilations
        )
    )
    channels = filter.shape[-1] * filter.shape[-2]
    along = (1, channels, 1, 1) if data_format.startswith("NC") else (channels,)
    found = _finished(product, args[:num_args], along, fused_ops, epsilon, leakyrelu_alpha)
    return found.astype(input.dtype, copy=False)
