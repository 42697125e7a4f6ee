"""Lowerings of quotients and remainders, where integers ask for care: LiteRT's kernels end the process or give the
largest number where the lowest number of a type is divided by -1.

TensorFlow and the reference engine wrap: ``low // -1`` is ``low``, ``low % -1`` is 0. Division by 0 is an error on
both engines, which LiteRT's kernels report themselves.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32, INT64
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.math.elementwise import MOST_DIMENSIONS, binary, choice, log_of_one_more
from pocketgraph.litert.program import Value


@lowers("Div", "FloorDiv", "TruncateDiv")
def quotient(emit: Emit, node: Node) -> Value:
    left, right = (emit.require(_as_int32(emit, value), "float", "int32") for value in emit.inputs(0, 2))
    if left.dtype is not FLOAT:
        whole = _whole_quotient(emit, "FLOOR_DIV" if node.op == "FloorDiv" else "DIV", left, right)
        return whole if emit.output()[0] is INT32 else emit.add("CAST", [whole], whole.shape, INT64)
    if node.op == "TruncateDiv":
        raise emit.unsupported("a division of floats, cut towards 0")
    ratio = binary(emit, "DIV", left, right)  # LiteRT's FLOOR_DIV refuses to divide floats by 0
    return ratio if node.op == "Div" else emit.add("FLOOR", [ratio], ratio.shape)


@lowers("FloorMod", takes=("float", "int32", "int64"))
def remainder(emit: Emit, node: Node, left: Value, right: Value) -> Value:
    if left.dtype is not FLOAT and not _is_safe(emit):
        _, right = _apart(emit, left, right)
    return binary(emit, "FLOOR_MOD", left, right)


def _as_int32(emit: Emit, value: Value) -> Value:
    """Places of the largest, and constants that fit, as int32: LiteRT divides no int64. Other values as they are."""
    if value.dtype is not INT64:
        return value
    if value.constant is not None:
        numbers = value.constant.numpy()
        narrow = numbers.astype(np.int32)
        return emit.const(narrow) if np.array_equal(numbers, narrow) else value
    is_place = any(value in made.outputs and made.code in ("ARG_MAX", "ARG_MIN") for made in emit.operations)
    return emit.add("CAST", [value], value.shape, INT32) if is_place else value


def _whole_quotient(emit: Emit, code: str, left: Value, right: Value) -> Value:
    """Integers divided: DIV cuts towards 0, as C does."""
    if _is_safe(emit):
        return binary(emit, code, left, right)
    negates, safe = _apart(emit, left, right)
    divided, negated = binary(emit, code, left, safe), emit.add("NEG", [left], left.shape)
    return emit.add("SELECT_V2", [negates, negated, divided], divided.shape, divided.dtype)


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


@lowers("TruncateMod", takes=("float", "int32"))
def cut_remainder(emit: Emit, node: Node, left: Value, right: Value) -> Value:
    if left.dtype is FLOAT:
        raise emit.unsupported("a division of floats, cut towards 0")
    whole = binary(emit, "MUL", _whole_quotient(emit, "DIV", left, right), right)
    return binary(emit, "SUB", left, whole)


@lowers("DivNoNan", "MulNoNan", "Xdivy", "Xlogy", "Xlog1py", takes=("float",))
def guarded(emit: Emit, node: Node, left: Value, right: Value) -> Value:
    """0 wherever the operand that guards is 0, whatever the other one is there."""
    guard = right if node.op in ("DivNoNan", "MulNoNan") else left
    if node.op in ("DivNoNan", "Xdivy"):
        value = binary(emit, "DIV", left, right)
    elif node.op == "MulNoNan":
        value = binary(emit, "MUL", left, right)
    else:
        factor = emit.add("LOG", [right], right.shape) if node.op == "Xlogy" else log_of_one_more(emit, right)
        value = binary(emit, "MUL", left, factor)
    zero = emit.const(0, np.float32)
    is_zero = binary(emit, "EQUAL", guard, zero, BOOL)
    return choice(emit, is_zero, zero, value)
