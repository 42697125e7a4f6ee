"""Operators with one result for each element, or pair of elements."""

from __future__ import annotations

import numpy as np

from pocketgraph.exporting.c.operators.convolution import activation
from pocketgraph.exporting.c.operators.emitter_table import emits, moves
from pocketgraph.exporting.c.operators.shapes import joined, paired_walk, stretched
from pocketgraph.exporting.c.unit import Unit, array_of, c_type, number, operand
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32, INT64
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.narrow_floats import NARROW
from pocketgraph.litert.program import Operation, Value

FLOAT_PAIRS = {
    "ADD": "a + b", "SUB": "a - b", "MUL": "a * b", "DIV": "a / b", "POW": "powf(a, b)",
    "MAXIMUM": "a > b || a != a ? a : b", "MINIMUM": "a < b || a != a ? a : b",
    "SQUARED_DIFFERENCE": "(a - b) * (a - b)", "FLOOR_DIV": "floorf(a / b)", "FLOOR_MOD": "pg_floor_mod_float(a, b)",
    "PRELU": "a < 0 ? a * b : a", "ATAN2": "atan2f(a, b)",
}  # fmt: skip
"""What becomes of two floats a and b."""
WHOLE_PAIRS = {
    "ADD": "pg_add_{t}(a, b)", "SUB": "pg_sub_{t}(a, b)", "MUL": "pg_mul_{t}(a, b)", "DIV": "pg_div_{t}(a, b)",
    "MAXIMUM": "a > b ? a : b", "MINIMUM": "a < b ? a : b", "FLOOR_DIV": "pg_floor_div_{t}(a, b)",
    "FLOOR_MOD": "pg_floor_mod_{t}(a, b)", "POW": "pg_power_{t}(a, b)",
    "SQUARED_DIFFERENCE": "pg_mul_{t}(pg_sub_{t}(a, b), pg_sub_{t}(a, b))",
}  # fmt: skip
"""The same of two int32 or int64."""
COMPARISONS = {
    "LESS": "a < b", "GREATER": "a > b", "LESS_EQUAL": "a <= b", "GREATER_EQUAL": "a >= b", "EQUAL": "a == b",
    "NOT_EQUAL": "a != b", "LOGICAL_AND": "a && b", "LOGICAL_OR": "a || b",
}  # fmt: skip
FLOAT_SINGLES = {
    "ABS": "fabsf(a)", "CEIL": "ceilf(a)", "COS": "cosf(a)", "ELU": "a < 0 ? expm1f(a) : a", "EXP": "expf(a)",
    "FLOOR": "floorf(a)", "LOG": "logf(a)", "LOGISTIC": "pg_sigmoid(a)", "NEG": "-a", "RELU": "a < 0 ? 0 : a",
    "RELU6": "pg_clamp(a, 0, 6)", "RELU_N1_TO_1": "pg_clamp(a, -1, 1)", "ROUND": "rintf(a)",
    "RSQRT": "1.0F / sqrtf(a)", "SIGN": "pg_sign(a)", "SIN": "sinf(a)", "SQRT": "sqrtf(a)", "SQUARE": "a * a",
    "TANH": "tanhf(a)",
}  # fmt: skip
WHOLE_SINGLES = {
    "ABS": "a < 0 ? pg_sub_{t}(0, a) : a", "NEG": "pg_sub_{t}(0, a)", "SQUARE": "pg_mul_{t}(a, a)",
    "SIGN": "(a > 0) - (a < 0)",
}  # fmt: skip
WHOLE = {INT32: "int32", INT64: "int64"}
LOGICAL = ("LOGICAL_AND", "LOGICAL_OR", "EQUAL", "NOT_EQUAL")


def sum_of(dtype: DType) -> str:
    """What becomes of two elements a and b that are added; whole numbers wrap round."""
    return WHOLE_PAIRS["ADD"].format(t=WHOLE[dtype]) if dtype in WHOLE else "a + b"


@emits(*FLOAT_PAIRS, *COMPARISONS, in_place=True)
def pairs(unit: Unit, operation: Operation, left: Value, right: Value, result: Value) -> None:
    code, kind = operation.code, c_type(left.dtype)
    name = f"pg_{code.lower()}_{left.dtype.name}s"
    if code in COMPARISONS:
        if left.dtype is BOOL and code not in LOGICAL:
            raise Unsupported(f"{code} of bool")
        text = COMPARISONS[code]
    elif left.dtype is FLOAT:
        text = FLOAT_PAIRS[code]
        low, high = activation(operation)
        if (low, high) != (-np.inf, np.inf):
            text = f"pg_clamp({text}, {number(low)}, {number(high)})"
            name += f"_{operation.options['activation'].lower()}"
    elif left.dtype in WHOLE and code in WHOLE_PAIRS and not operation.options.get("activation"):
        text = WHOLE_PAIRS[code].format(t=WHOLE[left.dtype])
    else:
        raise Unsupported(f"{code} of {left.dtype.name}")
    emit_pairs(unit, name, kind, c_type(result.dtype), text, left, right, result)


def emit_pairs(
    unit: Unit, name: str, kind: str, made: str, text: str, left: Value, right: Value, result: Value
) -> None:
    """Calls a kernel that makes ``text`` of each pair."""
    unit.call(
        "binary.h", name, unit.table("pg_pair", paired_walk(result.shape, left.shape, right.shape)), left, right,
        result, definition=f"PG_BINARY({name}, {kind}, {made}, {text})",
    )  # fmt: skip


@emits(*FLOAT_SINGLES, "LOGICAL_NOT", "GELU", in_place=True)
def singles(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    code, kind = operation.code, c_type(source.dtype)
    name = f"pg_{code.lower()}_{source.dtype.name}s"
    if code == "LOGICAL_NOT":
        text = "!a"
    elif code == "GELU":
        is_approximate = operation.options.get("approximate")
        text, name = ("pg_tanh_gelu(a)", f"{name}_tanh") if is_approximate else ("pg_erf_gelu(a)", name)
    elif source.dtype is FLOAT:
        text = FLOAT_SINGLES[code]
    elif source.dtype in WHOLE and code in WHOLE_SINGLES:
        text = WHOLE_SINGLES[code].format(t=WHOLE[source.dtype])
    else:
        raise Unsupported(f"{code} of {source.dtype.name}")
    emit_singles(unit, name, kind, c_type(result.dtype), text, source, result)


def emit_singles(unit: Unit, name: str, kind: str, made: str, text: str, source: Value, result: Value) -> None:
    """Calls a kernel that makes ``text`` of each element."""
    definition = f"PG_UNARY({name}, {kind}, {made}, {text})"
    unit.call("unary.h", name, result.size, source, result, definition=definition)


@emits("LEAKY_RELU", in_place=True)
def leaky_relu(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    if source.dtype is not FLOAT:
        raise Unsupported(f"LEAKY_RELU of {source.dtype.name}")
    definition = "PG_UNARY_BY(pg_leaky_relu_floats, float, float, a < 0 ? a * b : a)"
    slope = number(operation.options.get("alpha", 0.0))
    unit.call("unary.h", "pg_leaky_relu_floats", result.size, slope, source, result, definition=definition)


@emits("CAST", in_place=True)
def cast(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    narrow = [value.dtype.name in NARROW for value in (source, result)]
    if any(narrow) and FLOAT in (source.dtype, result.dtype):
        _round(unit, source, result)
        return
    before, after = c_type(source.dtype), c_type(result.dtype)
    if result.dtype is BOOL:
        text = "a != 0"
    elif source.dtype is FLOAT and result.dtype in WHOLE:
        text = f"pg_{WHOLE[result.dtype]}_of(a)"
    elif source.dtype is FLOAT and result.dtype is not FLOAT:
        info = np.iinfo(result.dtype.numpy)
        text = f"pg_between(a, {float(info.min)}F, {float(info.max)}F)"
        if info.bits > 16:
            text = "a < 0 ? 0 : pg_int64_of(a)"
    else:
        text = "a"
    emit_singles(unit, f"pg_cast_{source.dtype.name}s_to_{result.dtype.name}", before, after, text, source, result)


def _round(unit: Unit, source: Value, result: Value) -> None:
    """Floats to or from 16 bits; nothing else computes with those, so that they have no C type elsewhere."""
    is_rounded = source.dtype is FLOAT
    narrow = (result if is_rounded else source).dtype.name
    text = f"pg_{narrow}_of(a)" if is_rounded else f"pg_of_{narrow}(a)"
    before, after = ("float", "uint16_t") if is_rounded else ("uint16_t", "float")
    name = f"pg_cast_{source.dtype.name}s_to_{result.dtype.name}"
    emit_singles(unit, name, before, after, text, source, result)


@moves("SELECT_V2")
def select(unit: Unit, operation: Operation) -> None:
    condition, left, right = (operand(operation, place) for place in range(3))
    result = operation.outputs[0]
    steps = [stretched(value.shape, result.shape) for value in (condition, left, right)]
    sizes, (c, a, b) = joined(result.shape, *steps)
    kind, name = c_type(result.dtype), f"pg_select_{result.dtype.name}"
    unit.call(
        "select.h", name, unit.table("pg_choice", [len(sizes), sizes, c, a, b]), condition, left, right, result,
        definition=f"PG_SELECT({name}, {kind})",
    )  # fmt: skip


@emits("SOFTMAX", "LOG_SOFTMAX", in_place=True)
def softmax(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    if source.dtype is not FLOAT:
        raise Unsupported(f"{operation.code} of {source.dtype.name}")
    classes = source.shape[-1]
    rows = source.size // max(classes, 1)
    beta = [number(operation.options.get("beta", 1.0))] if operation.code == "SOFTMAX" else []
    unit.call("softmax_f32.h", f"pg_{operation.code.lower()}_f32", rows, classes, *beta, source, result)


@emits("LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    options, channels = operation.options, source.shape[-1]
    unit.call(
        "lrn_f32.h", "pg_lrn_f32", source.size // channels, channels, options["radius"], number(options["bias"]),
        number(options["alpha"]), number(options["beta"]), source, result,
    )  # fmt: skip


def known(value: Value | None) -> list[int]:
    """The whole numbers of an operand that is known."""
    return [int(item) for item in array_of(value).reshape(-1)]
