"""The convolution that TensorFlow's own optimizer writes into graphs: bias or batch norm and activation in one op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pocketgraph.kernels.activations import FUNCTIONS, leaky_relu
from pocketgraph.kernels.arrays import Array, widened
from pocketgraph.kernels.convolution import conv2d
from pocketgraph.kernels.elementwise import sigmoid
from pocketgraph.kernels.registry import kernel

ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    **{op: FUNCTIONS[op] for op in ("Relu", "Relu6", "Elu")},
    "Sigmoid": sigmoid,
    "Tanh": np.tanh,
}


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
    first, rest = (fused_ops[0], fused_ops[1:]) if fused_ops else ("", ())
    wanted = {"BiasAdd": 1, "FusedBatchNorm": 4}.get(first)
    if wanted is None or len(rest) > 1 or any(op not in ACTIVATIONS and op != "LeakyRelu" for op in rest):
        raise ValueError(f"Fusion is not implemented: [{','.join(fused_ops)}]")
    extra = args[:num_args]
    channels = filter.shape[-1] if filter.ndim else 0
    if len(extra) != wanted or any(a.shape != (channels,) for a in extra):
        shapes = ", ".join(str(list(a.shape)) for a in extra)
        raise ValueError(f"{first} of {channels} channels takes {wanted} vectors of that size, not {shapes}")
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
    along = (1, channels, 1, 1) if data_format.startswith("NC") else (channels,)
    parts = [widened(a).reshape(along) for a in extra]
    if first == "BiasAdd":
        result = result + parts[0]
    else:
        scale, offset, mean, variance = parts
        factor = scale / np.sqrt(variance + result.dtype.type(epsilon))
        result = (result - mean) * factor + offset
    for op in rest:
        result = leaky_relu(result, alpha=leakyrelu_alpha) if op == "LeakyRelu" else ACTIVATIONS[op](result)
    return result.astype(input.dtype, copy=False)
