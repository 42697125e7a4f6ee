"""Activation functions of Keras, by the names in a model's description.

Source: tensorflow/tfjs: tfjs-layers/src/activations.ts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pocketgraph.formats.keras.layer_writer import KerasTensor, LayerWriter, elements, pair, transposed
from pocketgraph.graph.dtype import FLOAT

OPS = {
    "relu": "Relu", "relu6": "Relu6", "selu": "Selu", "sigmoid": "Sigmoid", "tanh": "Tanh",
    "softplus": "Softplus", "softsign": "Softsign", "exponential": "Exp", "softmax": "Softmax",
    "log_softmax": "LogSoftmax", "logSoftmax": "LogSoftmax",
}  # fmt: skip
"""Those that are one op."""
IDENTITIES = ("linear", None)
HIDDEN = -1e9  # what a score becomes that a mask leaves out


def activated(writer: LayerWriter, value: KerasTensor, function: Any, **settings: Any) -> KerasTensor:
    """What an activation function makes of a tensor, with settings of its own.

    Raises:
        FormatError: no function has this name.
    """
    if isinstance(function, Mapping):  # a serialized function or layer
        if function.get("class_name") in writer.model.rules:
            inner, rule = writer.inner(function, "activation")
            made = rule(inner, value)
            return made[0] if isinstance(made, list) else made
        config = function.get("config")
        function = config if isinstance(config, str) else function.get("class_name")
    if function in IDENTITIES:
        return value
    if function in OPS:
        return writer.add(OPS[function], value)
    if function in COMPOSED:
        return COMPOSED[function](writer, value, **settings)
    raise writer.refuse(f"has the activation '{function}', which is not read")


def _clipped(writer: LayerWriter, value: KerasTensor, low: float, high: float) -> KerasTensor:
    limits = writer.const(low, "low", FLOAT), writer.const(high, "high", FLOAT)
    return writer.add("Minimum", writer.add("Maximum", value, limits[0]), limits[1])


def _hard_sigmoid(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """Keras 2 has a slope of 0.2, Keras 3 one of a sixth."""
    return _clipped(writer, scaled(writer, value, 1 / 6 if writer.model.is_keras_3 else 0.2, 0.5), 0, 1)


def _gelu(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """Half the value, times one and the error function of the value by the root of two."""
    error = writer.add("Erf", scaled(writer, value, math.sqrt(0.5)))
    return writer.add("Mul", value, scaled(writer, error, 0.5, 0.5))


def _gelu_by_tanh(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    cubic = writer.add("Mul", writer.add("Mul", value, value), value)
    inner_sum = writer.add("AddV2", value, scaled(writer, cubic, 0.044715))
    bent = writer.add("Tanh", scaled(writer, inner_sum, math.sqrt(2 / math.pi)))
    return writer.add("Mul", value, scaled(writer, bent, 0.5, 0.5))


def _sparse_plus(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """Zero below -1, the value above 1, and a parabola between them."""
    more = writer.add("Maximum", scaled(writer, value, 1, 1), writer.const(0, "zero", FLOAT))
    is_low = writer.add("Less", value, writer.const(1, "one", FLOAT))
    return writer.add("SelectV2", is_low, scaled(writer, writer.add("Square", more), 0.25), value)


def elu(writer: LayerWriter, value: KerasTensor, alpha: float = 1) -> KerasTensor:
    if alpha == 1:
        return writer.add("Elu", value)
    below = writer.add("Elu", writer.add("Minimum", value, writer.const(0, "zero", FLOAT)))
    return writer.add("AddV2", writer.add("Relu", value), scaled(writer, below, alpha))


def _celu(writer: LayerWriter, value: KerasTensor, alpha: float = 1) -> KerasTensor:
    """Of a slope of one at zero, which ``alpha`` makes wider below it."""
    return elu(writer, value) if alpha == 1 else scaled(writer, elu(writer, scaled(writer, value, 1 / alpha)), alpha)


def _squareplus(writer: LayerWriter, value: KerasTensor, b: float = 4) -> KerasTensor:
    root = writer.add("Sqrt", scaled(writer, writer.add("Square", value), 1, b))
    return scaled(writer, writer.add("AddV2", value, root), 0.5)


def _hard_shrink(writer: LayerWriter, value: KerasTensor, threshold: float = 0.5) -> KerasTensor:
    is_far = writer.add("Greater", writer.add("Abs", value), writer.const(threshold, "threshold", FLOAT))
    return writer.add("SelectV2", is_far, value, writer.const(0, "zero", FLOAT), dims=value.dims)


def _threshold(writer: LayerWriter, value: KerasTensor, threshold: float, default_value: float) -> KerasTensor:
    is_above = writer.add("Greater", value, writer.const(threshold, "threshold", FLOAT))
    return writer.add("SelectV2", is_above, value, writer.const(default_value, "default", FLOAT), dims=value.dims)


def _soft_shrink(writer: LayerWriter, value: KerasTensor, threshold: float = 0.5) -> KerasTensor:
    return writer.add("Sub", value, _clipped(writer, value, -threshold, threshold))


def _glu(writer: LayerWriter, value: KerasTensor, axis: int = -1) -> KerasTensor:
    """One half of an axis, as far as the other lets it through."""
    dims = list(value.dims)
    dims[axis] = (dims[axis] or 0) // 2
    split = writer.add("Split", writer.const(axis, "axis"), value, dims=tuple(dims), num_split=2)
    return writer.add("Mul", split, writer.add("Sigmoid", split._replace(ref=f"{split.ref}:1")))


def _sparse_max(writer: LayerWriter, value: KerasTensor, axis: int = -1) -> KerasTensor:
    """The softmax that gives zeros, as Keras has it: its threshold is of all sums of largest elements that count, not
    of the last one, so that what lies above is one in all only where a single element does."""
    dims, last = value.dims, len(value.dims) - 1
    if axis % len(dims) != last:
        order = [*range(len(dims))]
        order[axis], order[last] = order[last], order[axis]
        return transposed(writer, _sparse_max(writer, transposed(writer, value, order)), order)
    if dims[-1] is None:
        raise writer.refuse("is of an open axis, which is not read")
    zero, one = writer.const(0, "zero", FLOAT), writer.const(1, "one", FLOAT)
    ranks = writer.const(np.arange(1, dims[-1] + 1), "ranks", FLOAT)
    along, ends = writer.const(last, "axis"), (*dims[:-1], 1)
    largest = writer.add("TopKV2", value, writer.const(dims[-1], "count"), sorted=True)
    sums = writer.add("Cumsum", largest, along)
    is_above = writer.add("Greater", largest, writer.add("RealDiv", writer.add("Sub", sums, one), ranks))
    number = writer.add("Sum", writer.add("Cast", is_above, DstT=value.dtype), along, dims=ends, keep_dims=True)
    total = writer.add("Sum", writer.add("SelectV2", is_above, sums, zero, dims=dims), along, dims=ends, keep_dims=True)
    least = writer.add("RealDiv", writer.add("Sub", total, one), number)
    return writer.add("Maximum", writer.add("Sub", value, least), zero)


COMPOSED: dict[str, Callable[..., KerasTensor]] = {
    **dict.fromkeys(("swish", "silu"), lambda writer, value: writer.add("Mul", value, writer.add("Sigmoid", value))),
    "mish": lambda writer, value: writer.add("Mul", value, writer.add("Tanh", writer.add("Softplus", value))),
    "leaky_relu": lambda writer, value: writer.add("LeakyRelu", value, alpha=0.2),
    **dict.fromkeys(
        ("hard_silu", "hard_swish"), lambda writer, value: writer.add("Mul", value, _hard_sigmoid(writer, value))
    ),
    **dict.fromkeys(("hard_sigmoid", "hardSigmoid"), _hard_sigmoid), "gelu": _gelu, "gelu_new": _gelu_by_tanh,
    "log_sigmoid": lambda writer, value: writer.add(
        "Neg", writer.add("Softplus", writer.add("Neg", value))
    ),
    "hard_tanh": lambda writer, value: _clipped(writer, value, -1, 1),
    "tanh_shrink": lambda writer, value: writer.add("Sub", value, writer.add("Tanh", value)),
    "soft_shrink": _soft_shrink, "threshold": _threshold, "elu": elu, "celu": _celu,
    "sparse_sigmoid": lambda writer, value: _clipped(writer, scaled(writer, value, 0.5, 0.5), 0, 1),
    "hard_shrink": _hard_shrink, "sparse_plus": _sparse_plus, "squareplus": _squareplus, "glu": _glu,
    "sparsemax": _sparse_max,
}  # fmt: skip
"""Those of several ops."""


def softmax_along(writer: LayerWriter, value: KerasTensor, axis: Any, op: str = "Softmax") -> KerasTensor:
    """The softmax along an axis, or several together, or its logarithm."""
    rank = len(value.dims)
    axes = [one % rank for one in pair(axis, 1)]
    if axes == [rank - 1]:
        return writer.add(op, value)
    order = [at for at in range(rank) if at not in axes] + axes
    turned = transposed(writer, value, order)
    dims = turned.dims[: rank - len(axes)]
    joined = turned if len(axes) == 1 else writer.reshaped(turned, (*dims, elements(turned.dims[len(dims) :])))
    made = writer.add(op, joined)
    made = made if len(axes) == 1 else writer.reshaped(made, turned.dims, turned)
    return transposed(writer, made, [order.index(at) for at in range(rank)])


def scaled(writer: LayerWriter, value: KerasTensor, factor: Any, offset: Any = None) -> KerasTensor:
    """A tensor times a number, and a number added to it."""
    product = writer.add("Mul", value, writer.const(factor, "factor", FLOAT))
    return product if offset is None else writer.add("AddV2", product, writer.const(offset, "offset", FLOAT))
