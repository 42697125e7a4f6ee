"""Lets layers with equal weights share them, as the steps of a loop do that was written out in training."""

from __future__ import annotations

import hashlib
from collections import defaultdict

from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.linear import LINEAR
from pocketgraph.quantization.core.operator_rules import is_layer, weights


def share_weights(program: Program) -> None:
    """Makes equal constant weights of layers the same value of the program, in place."""
    alike: dict[tuple[object, ...], list[Operation]] = defaultdict(list)
    for operation in program.operations:
        if is_layer(operation) and weights(operation).constant is not None:
            kernel = weights(operation)
            alike[operation.code, kernel.dtype, kernel.shape].append(operation)
    for layers in alike.values():
        if len({weights(operation) for operation in layers}) < 2:
            continue
        found: dict[bytes, Value] = {}
        digests: dict[Value, bytes] = {}
        for operation in layers:
            kernel = weights(operation)
            assert kernel.constant is not None
            if kernel not in digests:
                digests[kernel] = hashlib.sha256(kernel.constant.numpy().tobytes()).digest()
            operation.inputs[LINEAR[operation.code][1]] = found.setdefault(digests[kernel], kernel)
