"""Activation functions of Keras, by the names in a model's description.

Source: tensorflow/tfjs: tfjs-layers/src/activations.ts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pocketgraph.formats.keras.layer_writer import KerasTensor, LayerWriter, pair, transposed
from pocketgraph.graph.dtype import FLOAT

OPS = {
    "relu": "Relu", "relu6": "Relu6", "elu": "Elu", "selu": "Selu", "sigmoid": "Sigmoid", "tanh": "Tanh",
    "softplus": "Softplus", "softsign": "Softsign", "exponential": "Exp", "softmax": "Softmax",
    "log_softmax": "LogSoftmax", "logSoftmax": "LogSoftmax",
}  # fmt: skip
"""Those that are one op."""
IDENTITIES = ("linear", None)


def activated(writer: LayerWriter, value: KerasTensor, function: Any) -> KerasTensor:
    """What an activation function makes of a tensor.

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
    if function in ("swish", "silu"):
        return writer.add("Mul", value, writer.add("Sigmoid", value))
    if function == "mish":
        return writer.add("Mul", value, writer.add("Tanh", writer.add("Softplus", value)))
    if function == "leaky_relu":
        return writer.add("LeakyRelu", value, alpha=0.2)
    if function in ("hard_silu", "hard_swish"):
        return writer.add("Mul", value, _hard_sigmoid(writer, value, 1 / 6))
    if function in ("hard_sigmoid", "hardSigmoid"):
        return _hard_sigmoid(writer, value, 1 / 6 if writer.model.version.startswith("3.") else 0.2)
    if function == "gelu":  # half the value, times one and the error function of the value by the root of two
        error = writer.add("Erf", scaled(writer, value, math.sqrt(0.5)))
        return writer.add("Mul", value, scaled(writer, error, 0.5, 0.5))
    if function == "gelu_new":
        cubic = writer.add("Mul", writer.add("Mul", value, value), value)
        inner_sum = writer.add("AddV2", value, scaled(writer, cubic, 0.044715))
        bent = writer.add("Tanh", scaled(writer, inner_sum, math.sqrt(2 / math.pi)))
        return writer.add("Mul", value, scaled(writer, bent, 0.5, 0.5))
    raise writer.refuse(f"has the activation '{function}', which is not read")


def _hard_sigmoid(writer: LayerWriter, value: KerasTensor, slope: float) -> KerasTensor:
    """Keras 2 has a slope of 0.2, Keras 3 one of a sixth."""
    limits = writer.const(0, "zero", FLOAT), writer.const(1, "one", FLOAT)
    return writer.add("Minimum", writer.add("Maximum", scaled(writer, value, slope, 0.5), limits[0]), limits[1])


def softmax_along(writer: LayerWriter, value: KerasTensor, axis: Any) -> KerasTensor:
    """The softmax along an axis.

    Raises:
        FormatError: it is along several.
    """
    axes = [one % len(value.dims) for one in pair(axis, 1)]
    if len(axes) != 1:
        raise writer.refuse(f"is a softmax along the axes {axes} together, which is not read")
    last = len(value.dims) - 1
    if axes == [last]:
        return writer.add("Softmax", value)
    order = list(range(len(value.dims)))
    order[axes[0]], order[last] = last, axes[0]
    return transposed(writer, writer.add("Softmax", transposed(writer, value, order)), order)


def scaled(writer: LayerWriter, value: KerasTensor, factor: Any, offset: Any = None) -> KerasTensor:
    """A tensor times a number, and a number added to it."""
    product = writer.add("Mul", value, writer.const(factor, "factor", FLOAT))
    return product if offset is None else writer.add("AddV2", product, writer.const(offset, "offset", FLOAT))
