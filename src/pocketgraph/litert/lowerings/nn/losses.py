"""Lowerings of losses."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.math.elementwise import binary


@lowers("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy(emit: Emit, node: Node) -> None:
    """-Σ labels · log softmax(logits), and its gradient, softmax(logits) - labels."""
    logits, labels = emit.require(emit.input(0), "float"), emit.require(emit.input(1), "float")
    if len(logits.shape) != 2 or labels.shape != logits.shape:
        raise emit.unsupported(f"logits {list(logits.shape)} and labels {list(labels.shape)}")
    logs = emit.add("LOG_SOFTMAX", [logits], logits.shape)
    weighted = binary(emit, "MUL", labels, logs)
    total = emit.add("SUM", [weighted, emit.const([1], np.int32)], logits.shape[:1], keep_dims=False)
    emit.result(emit.add("NEG", [total], total.shape))
    shares = emit.add("SOFTMAX", [logits], logits.shape, beta=1.0)
    emit.result(binary(emit, "SUB", shares, labels), 1)
