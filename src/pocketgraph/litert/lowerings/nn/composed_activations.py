"""Lowerings of activation functions, and of losses, that are made of several operators."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.kernels.selu_constants import SELU_ALPHA, SELU_SCALE
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.math.elementwise import binary
from pocketgraph.litert.lowerings.pieces import number
from pocketgraph.litert.program import Value


@lowers("Softplus", takes=("float",))
def softplus(emit: Emit, node: Node, source: Value) -> Value:
    """log(1 + exp(x)) as max(x, 0) + log(1 + exp(-\\|x\\|)), which does not overflow."""
    decayed = emit.add("EXP", [emit.add("NEG", [emit.add("ABS", [source], source.shape)], source.shape)], source.shape)
    tail = emit.add("LOG", [binary(emit, "ADD", decayed, number(emit, 1))], source.shape)
    return binary(emit, "ADD", emit.add("RELU", [source], source.shape), tail)


@lowers("Softsign", takes=("float",))
def softsign(emit: Emit, node: Node, source: Value) -> Value:
    divisor = binary(emit, "ADD", emit.add("ABS", [source], source.shape), number(emit, 1))
    return binary(emit, "DIV", source, divisor)


@lowers("Selu", takes=("float",))
def selu(emit: Emit, node: Node, source: Value) -> Value:
    """scale * max(x, 0) + scale * alpha * elu(min(x, 0))."""
    negative = emit.add("ELU", [binary(emit, "MINIMUM", source, number(emit, 0))], source.shape)
    low = binary(emit, "MUL", negative, number(emit, SELU_SCALE * SELU_ALPHA))
    high = binary(emit, "MUL", emit.add("RELU", [source], source.shape), number(emit, SELU_SCALE))
    return binary(emit, "ADD", high, low)


@lowers("SoftmaxCrossEntropyWithLogits", takes=("float",))
def softmax_cross_entropy(emit: Emit, node: Node, logits: Value, labels: Value) -> None:
    """-Σ labels · log softmax(logits), and its gradient, softmax(logits) - labels."""
    if len(logits.shape) != 2 or labels.shape != logits.shape:
        raise emit.unsupported(f"logits {list(logits.shape)} and labels {list(labels.shape)}")
    logs = emit.add("LOG_SOFTMAX", [logits], logits.shape)
    weighted = binary(emit, "MUL", labels, logs)
    total = emit.add("SUM", [weighted, emit.const([1], np.int32)], logits.shape[:1], keep_dims=False)
    emit.result(emit.add("NEG", [total], total.shape))
    shares = emit.add("SOFTMAX", [logits], logits.shape, beta=1.0)
    emit.result(binary(emit, "SUB", shares, labels), 1)
