"""Lowerings of quotients and remainders, where integers ask for care: LiteRT's kernels end the process or give the
largest number where the lowest number of a type is divided by -1.

TensorFlow and the reference engine wrap: ``low // -1`` is ``low``, ``low % -1`` is 0. Division by 0 is an error on
both engines, which LiteRT's kernels report themselves.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL, FLOAT
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.math.elementwise import MOST_DIMENSIONS, binary
from pocketgraph.litert.program import Value


@lowers("Div", "FloorDiv")
def quotient(emit: Emit, node: Node) -> None:
    left, right = (emit.require(value, "float", "int32") for value in emit.inputs(0, 2))
    if left.dtype is not FLOAT:
        code = "DIV" if node.op == "Div" else "FLOOR_DIV"
        if _is_safe(emit):
            emit.result(binary(emit, code, left, right))
            return
        negates, safe = _apart(emit, left, right)
        divided, negated = binary(emit, code, left, safe), emit.add("NEG", [left], left.shape)
        emit.result(emit.add("SELECT_V2", [negates, negated, divided], divided.shape, divided.dtype))
        return
    ratio = binary(emit, "DIV", left, right)  # LiteRT's FLOOR_DIV refuses to divide floats by 0
    emit.result(ratio if node.op == "Div" else emit.add("FLOOR", [ratio], ratio.shape))


@lowers("FloorMod")
def remainder(emit: Emit, node: Node) -> None:
    left, right = (emit.require(value, "float", "int32", "int64") for value in emit.inputs(0, 2))
    if left.dtype is not FLOAT and not _is_safe(emit):
        _, right = _apart(emit, left, right)
    emit.result(binary(emit, "FLOOR_MOD", left, right))


def _is_safe(emit: Emit) -> bool:
    """Whether the node's divisor is known and nowhere 0 or -1."""
    divisor = emit.static_or_none(1)
    return divisor is not None and not np.isin(divisor, (0, -1)).any()


def _apart(emit: Emit, left: Value, right: Value) -> tuple[Value, Value]:
    """Where the divisor is -1, and the divisor with 1 in these places, which leaves the same remainder."""
    if max(len(left.shape), len(right.shape)) > MOST_DIMENSIONS:
        raise emit.unsupported(f"a division of rank {max(len(left.shape), len(right.shape))} by computed integers")
    minus, one = (emit.const(number, right.dtype.numpy) for number in (-1, 1))
    negates = binary(emit, "EQUAL", right, minus, BOOL)
    return negates, emit.add("SELECT_V2", [negates, one, right], right.shape, right.dtype)
