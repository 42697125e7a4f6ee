"""Lowerings of activation functions that LiteRT has an operator for, and of Softmax."""

from __future__ import annotations

from pocketgraph.graph import Node
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.program import Value

ACTIVATIONS = {"Relu": "RELU", "Relu6": "RELU6", "Elu": "ELU"}
"""Those that LiteRT has an operator for, which takes floats."""


@lowers(*ACTIVATIONS, takes=("float",))
def activation(emit: Emit, node: Node, source: Value) -> Value:
    return emit.add(ACTIVATIONS[node.op], [source], source.shape)


@lowers("LeakyRelu", takes=("float",))
def leaky_relu(emit: Emit, node: Node, source: Value) -> Value:
    return emit.add("LEAKY_RELU", [source], source.shape, alpha=float(node.attr("alpha", 0.2)))


@lowers("Softmax", "LogSoftmax", takes=("float",))
def softmax(emit: Emit, node: Node, source: Value) -> Value:
    if not source.shape:
        raise emit.unsupported(f"{node.op} of a scalar")
    classes = source.shape[-1]
    inner = source if 1 < len(source.shape) <= 4 else emit.reshape(source, (source.size // classes, classes))
    if node.op == "Softmax":
        result = emit.add("SOFTMAX", [inner], inner.shape, beta=1.0)
    else:
        result = emit.add("LOG_SOFTMAX", [inner], inner.shape)
    return emit.reshape(result, source.shape)
