"""Lengths of sequences that are fed are held against their sizes: LiteRT looks at the first one alone.

    REVERSE_SEQUENCE(x, lengths)   ->   REVERSE_SEQUENCE(x, GATHER([0, 1, … steps], lengths))

Of a longer one that is not the first, its kernel reads memory behind the tensor. GATHER refuses it, as TensorFlow does.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value


def check_sequence_lengths(program: Program) -> None:
    """Puts the look-up in front of each operation that takes several lengths which are not known when compiling."""
    operations: list[Operation] = []
    for operation in program.operations:
        if operation.code == "REVERSE_SEQUENCE":
            source, lengths = operation.operands
            if lengths.constant is None and lengths.size > 1:
                steps = source.shape[operation.options["sequence_axis"]]
                allowed = Constant.of(np.arange(steps + 1, dtype=lengths.dtype.numpy))
                result = operation.outputs[0].name
                table = Value(f"{result}/allowed_lengths", lengths.dtype, allowed.shape, allowed)
                checked = Value(f"{result}/checked_lengths", lengths.dtype, lengths.shape)
                options = {"axis": 0, "batch_dims": 0}
                operations.append(Operation("GATHER", [table, lengths], [checked], options, operation.nodes))
                operation = operation.replace(inputs=[source, checked])
        operations.append(operation)
    program.operations = operations
