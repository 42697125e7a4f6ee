"""Lowerings of element-wise arithmetic: unary, binary with broadcasting, comparison, selection, conversion.

Where they have other values than TensorFlow, for NaN and the largest numbers, says ``litert/nan_and_overflow.py``.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import DType, Node
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32, INT64
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import MOVED, lowers
from pocketgraph.litert.lowerings.pieces import number
from pocketgraph.litert.narrow_floats import NARROW, keeps_digits
from pocketgraph.litert.operator_traits import ARITHMETIC
from pocketgraph.litert.program import Value

MOST_DIMENSIONS = 4  # more are not broadcast by every LiteRT kernel; equal shapes are flattened instead

_NUMBERS = ("float", "int32", "int64")

UNARY: dict[str, tuple[str, tuple[str, ...]]] = {
    "Sigmoid": ("LOGISTIC", ("float",)),
    "Tanh": ("TANH", ("float",)),
    "Exp": ("EXP", ("float",)),
    "Log": ("LOG", ("float",)),
    "Sqrt": ("SQRT", ("float",)),
    "Abs": ("ABS", ("float", "int32")),
    "Neg": ("NEG", _NUMBERS),
    "Floor": ("FLOOR", ("float",)),
    "Ceil": ("CEIL", ("float",)),
    "Round": ("ROUND", ("float",)),
    "Rint": ("ROUND", ("float",)),
    "Sin": ("SIN", ("float",)),
    "Cos": ("COS", ("float",)),
    "Sign": ("SIGN", ("float", "int32")),
    "LogicalNot": ("LOGICAL_NOT", ("bool",)),
}
"""For each op its operator and the element types for which that operator computes the same."""

BINARY: dict[str, tuple[str, tuple[str, ...]]] = {
    "Add": ("ADD", _NUMBERS),
    "AddV2": ("ADD", _NUMBERS),
    "Sub": ("SUB", _NUMBERS),
    "Mul": ("MUL", _NUMBERS),
    "RealDiv": ("DIV", ("float",)),
    "Maximum": ("MAXIMUM", _NUMBERS),
    "Minimum": ("MINIMUM", _NUMBERS),
    "Pow": ("POW", ("float",)),
}

COMPARISONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Equal": ("EQUAL", (*_NUMBERS, "bool")),
    "NotEqual": ("NOT_EQUAL", (*_NUMBERS, "bool")),
    "Less": ("LESS", _NUMBERS),
    "LessEqual": ("LESS_EQUAL", _NUMBERS),
    "Greater": ("GREATER", _NUMBERS),
    "GreaterEqual": ("GREATER_EQUAL", _NUMBERS),
    "LogicalAnd": ("LOGICAL_AND", ("bool",)),
    "LogicalOr": ("LOGICAL_OR", ("bool",)),
}


@lowers(*UNARY)
def unary(emit: Emit, node: Node) -> Value:
    code, dtypes = UNARY[node.op]
    source = emit.require(emit.input(0), *dtypes)
    return emit.add(code, [source], source.shape)


def binary(emit: Emit, code: str, left: Value, right: Value, dtype: DType | None = None) -> Value:
    """An element-wise operation with broadcasting."""
    try:
        shape = np.broadcast_shapes(left.shape, right.shape)
    except ValueError:
        raise emit.unsupported(f"{list(left.shape)} and {list(right.shape)} do not broadcast") from None
    options = {"activation": ""} if code in ARITHMETIC else {}
    left = _single(emit, left, right.shape)
    right = _single(emit, right, left.shape)
    if len(shape) <= MOST_DIMENSIONS:
        return emit.add(code, [left, right], shape, dtype, **options)
    left, right = _flattened(emit, left, right)
    inner = np.broadcast_shapes(left.shape, right.shape)
    return emit.reshape(emit.add(code, [left, right], inner, dtype, **options), shape)


def _single(emit: Emit, value: Value, other: tuple[int, ...]) -> Value:
    """A constant of one number throughout as that number, where the other operand has all sizes: such a constant stands
    for a size that is fixed, as of ``0.5 * ones_like(x)``, and takes as much of a file as a picture.

    One over channels stays a vector, which a layer before may take in.
    """
    if value.constant is None or value.shape != other or len(other) < 2 or value.size <= other[-1]:
        return value
    numbers = value.constant.numpy().reshape(-1)
    bits = numbers.view(f"u{numbers.itemsize}")  # -0 is not 0, and NaN is NaN
    return emit.const(numbers[0], numbers.dtype) if (bits == bits[0]).all() else value


def choice(emit: Emit, condition: Value, yes: Value, no: Value) -> Value:
    """Elements of ``yes`` where a condition holds, else those of ``no``, with broadcasting."""
    shape = np.broadcast_shapes(condition.shape, yes.shape, no.shape)
    if len(shape) <= MOST_DIMENSIONS:
        return emit.add("SELECT_V2", [condition, yes, no], shape, yes.dtype)
    condition, yes, no = _flattened(emit, condition, yes, no)
    inner = np.broadcast_shapes(condition.shape, yes.shape, no.shape)
    return emit.reshape(emit.add("SELECT_V2", [condition, yes, no], inner, yes.dtype), shape)


def _flattened(emit: Emit, *operands: Value) -> list[Value]:
    """Operands with neighbouring dimensions merged where they broadcast alike."""
    rank = max(len(operand.shape) for operand in operands)
    shapes = [(1,) * (rank - len(operand.shape)) + operand.shape for operand in operands]
    merged: list[list[int]] = []
    kinds: list[list[bool]] = []
    for sizes in zip(*shapes, strict=True):
        if set(sizes) == {1}:
            continue
        kind = [size == 1 for size in sizes]
        if kinds and kinds[-1] == kind:
            merged[-1] = [before * size for before, size in zip(merged[-1], sizes, strict=True)]
        else:
            merged.append(list(sizes))
            kinds.append(kind)
    if len(merged) > MOST_DIMENSIONS:
        raise emit.unsupported("broadcasting " + " with ".join(str(list(operand.shape)) for operand in operands))
    return [emit.reshape(operand, [sizes[at] for sizes in merged]) for at, operand in enumerate(operands)]


@lowers(*BINARY)
def arithmetic(emit: Emit, node: Node) -> Value:
    code, dtypes = BINARY[node.op]
    left, right = (emit.require(value, *dtypes) for value in emit.inputs(0, 2))
    if code == "POW" and right.constant is not None and not right.shape and right.constant.numpy() == 2:
        return emit.add("SQUARE", [left], left.shape)  # which XNNPACK has
    return binary(emit, code, left, right)


@lowers(*COMPARISONS)
def comparison(emit: Emit, node: Node) -> Value:
    code, dtypes = COMPARISONS[node.op]
    left, right = (emit.require(value, *dtypes) for value in emit.inputs(0, 2))
    return binary(emit, code, left, right, BOOL)


@lowers("Square", takes=_NUMBERS)
def square(emit: Emit, node: Node, source: Value) -> Value:
    if source.dtype is FLOAT:
        return emit.add("SQUARE", [source], source.shape)
    else:
        return binary(emit, "MUL", source, source)


@lowers("SquaredDifference", takes=_NUMBERS)
def squared_difference(emit: Emit, node: Node, left: Value, right: Value) -> Value:
    if left.dtype is not INT64:
        return binary(emit, "SQUARED_DIFFERENCE", left, right)
    difference = binary(emit, "SUB", left, right)
    return binary(emit, "MUL", difference, difference)


@lowers("Rsqrt", takes=("float",))
def reciprocal_root(emit: Emit, node: Node, source: Value) -> Value:
    """By division: XNNPACK's own operator makes NaN of 0."""
    root = emit.add("SQRT", [source], source.shape)
    return binary(emit, "DIV", emit.const(1, np.float32), root)


@lowers("AddN", "AccumulateNV2")
def add_n(emit: Emit, node: Node) -> Value:
    first, *others = (emit.require(value, *_NUMBERS) for value in emit.inputs())
    total = first
    for value in others:
        total = binary(emit, "ADD", total, value)
    return total


@lowers("Reciprocal", "Inv", takes=("float",))
def reciprocal(emit: Emit, node: Node, source: Value) -> Value:
    return binary(emit, "DIV", emit.const(1, np.float32), source)


@lowers("ClipByValue", takes=_NUMBERS)
def clip(emit: Emit, node: Node, source: Value, low: Value, high: Value) -> Value:
    if any(bound.shape not in ((), source.shape) for bound in (low, high)):
        raise emit.unsupported(
            f"bounds of the shapes {list(low.shape)} and {list(high.shape)} for {list(source.shape)}"
        )
    return binary(emit, "MAXIMUM", binary(emit, "MINIMUM", source, high), low)


@lowers("Select", "SelectV2", takes=("bool",))
def select(emit: Emit, node: Node, condition: Value) -> Value:
    yes, no = (
        emit.require(value, "float", "int32", "int64", "bool", "uint8", "int8", "int16") for value in emit.inputs(1, 3)
    )
    shape = emit.output()[1]
    if node.op == "Select" and len(condition.shape) == 1 and len(shape) > 1:
        condition = emit.reshape(condition, (condition.shape[0], *[1] * (len(shape) - 1)))
    return choice(emit, condition, yes, no)


@lowers("Cast", takes=MOVED)
def cast(emit: Emit, node: Node, source: Value) -> Value:
    target = emit.output()[0]
    if target.name not in MOVED:
        raise emit.unsupported(f"LiteRT does not convert to {target.name}")
    wanted, narrow = node.attr("DstT"), emit.narrow_type()
    if isinstance(wanted, DType) and wanted.base.name in NARROW:
        if node.attr("Truncate", False):
            raise emit.unsupported(f"LiteRT does not cut floats to {wanted.name}")
        if narrow is not None and narrow is not wanted.base:
            source = emit.rounded(source, narrow)
        whole = source if source.dtype is FLOAT else emit.add("CAST", [source], source.shape, FLOAT)
        if not keeps_digits(wanted.base, whole.size) or whole not in emit.computed:
            return emit.rounded(whole, wanted.base)
        emit.unrounded.add(whole)
        return whole
    if narrow is not None:
        is_to_round = target is not FLOAT or source in emit.unrounded
        if is_to_round or not keeps_digits(narrow, source.size):
            source = emit.rounded(source, narrow)
    if source.dtype is FLOAT and target.name in ("uint8", "int8", "int16"):
        return _narrowed(emit, source, target)
    if target is source.dtype:
        return source
    return emit.add("CAST", [source], source.shape, target)


@lowers("Bitcast", takes=("float", "int32"))
def bits(emit: Emit, node: Node, source: Value) -> Value:
    target, shape = emit.output()
    if target not in (FLOAT, INT32):
        raise emit.unsupported(f"LiteRT does not read the bits of {source.dtype.name} as {target.name}")
    return source if target is source.dtype else emit.add("BITCAST", [source], shape, target)


@lowers("BitwiseAnd", takes=("int32",))
def sign_bits(emit: Emit, node: Node, source: Value, mask: Value) -> Value:
    """Of a mask of nothing but the sign bit, as Keras tells -0 from 0 by before it looks for the largest number."""
    lowest = np.iinfo(np.int32).min
    if mask.constant is None or mask.constant.numpy().tolist() != lowest:
        raise emit.unsupported("LiteRT has no operator for bits other than the sign")
    zero = emit.const(0, np.int32)
    return choice(emit, binary(emit, "LESS", source, zero, BOOL), emit.const(lowest, np.int32), zero)


def _narrowed(emit: Emit, source: Value, target: DType) -> Value:
    """Floats as small integers: as in TensorFlow, whole groups are limited to the type, what is left over is cut.

    LiteRT's operator limits; by way of int32 it cuts. Beyond int32 it limits where TensorFlow has the smallest number.
    """
    from pocketgraph.kernels.math.elementwise import cast_group  # the other lowerings need no kernels

    body = source.size - source.size % cast_group("float32", target.name)
    if body == source.size:
        return emit.add("CAST", [source], source.shape, target)
    if not body:
        return emit.add("CAST", [emit.add("CAST", [source], source.shape, INT32)], source.shape, target)
    flat, parts = emit.reshape(source, (source.size,)), []
    for begin, count in ((0, body), (body, source.size - body)):
        part = emit.add("SLICE", [flat, emit.const([begin], np.int32), emit.const([count], np.int32)], (count,))
        if begin:
            part = emit.add("CAST", [part], (count,), INT32)
        parts.append(emit.add("CAST", [part], (count,), target))
    return emit.reshape(emit.concatenated(parts, 0), source.shape)


def log_of_one_more(emit: Emit, source: Value) -> Value:
    """log(u) + (x - (u - 1)) with u = 1 + x: what rounding u took away is put back, so that a small x keeps its digits.

    It is put back where x is at most 1. There u - 1 is exact, and that the difference is not divided by u is an error
    of half a unit in the last place of x; further up log(u) is right by itself. XNNPACK has all these operators, of
    choices by value it has none.

    Source: Goldberg, "What every computer scientist should know about floating-point arithmetic", theorem 4.
    """
    one = number(emit, 1)
    small = binary(emit, "MINIMUM", source, one)
    kept = binary(emit, "SUB", binary(emit, "ADD", small, one), one)
    u = binary(emit, "ADD", source, one)
    logarithm = emit.add("LOG", [u], u.shape)
    return binary(emit, "ADD", logarithm, binary(emit, "SUB", small, kept))


lowers("Log1p", takes=("float",))(lambda emit, node, source: log_of_one_more(emit, source))


@lowers("Expm1", takes=("float",))
def exponential_less_one(emit: Emit, node: Node, source: Value) -> Value:
    """2 t / (1 - t) with t = tanh(x / 2) from -1 to 1, so that a small x keeps its digits; exp(x) - 1 elsewhere.

    Source: the definition of tanh by exponentials.
    """
    one, half = number(emit, 1), number(emit, 0.5)
    small = binary(emit, "MINIMUM", binary(emit, "MAXIMUM", source, number(emit, -1)), one)
    t = emit.add("TANH", [binary(emit, "MUL", small, half)], source.shape)
    near = binary(emit, "DIV", binary(emit, "ADD", t, t), binary(emit, "SUB", one, t))
    far = binary(emit, "SUB", emit.add("EXP", [source], source.shape), one)
    is_far = binary(emit, "GREATER", emit.add("ABS", [source], source.shape), one, BOOL)  # NaN is near: its EXP is 0
    return emit.add("SELECT_V2", [is_far, far, near], source.shape, FLOAT)


@lowers("IsNan", "IsInf", "IsFinite", takes=("float",))
def kind_of_number(emit: Emit, node: Node, source: Value) -> Value:
    if node.op == "IsNan":
        return binary(emit, "NOT_EQUAL", source, source, BOOL)
    size = emit.add("ABS", [source], source.shape)
    return binary(emit, "EQUAL" if node.op == "IsInf" else "LESS", size, number(emit, np.inf), BOOL)
