"""Sums, means and extremes over some dimensions, and what goes along one dimension."""

from __future__ import annotations

import math

from pocketgraph.exporting.c.operators.elementwise import emit_singles, known, sum_of
from pocketgraph.exporting.c.operators.emitter_table import emits, moves
from pocketgraph.exporting.c.operators.shapes import reduced_walk
from pocketgraph.exporting.c.unit import Unit, c_type, number, operand
from pocketgraph.graph.dtype import BOOL, FLOAT, INT8, INT32, INT64
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.program import Operation, Value

REDUCTIONS = {
    ("SUM", FLOAT): ("0", "a + b"), ("MEAN", FLOAT): ("0", "a + b"), ("REDUCE_PROD", FLOAT): ("1", "a * b"),
    ("REDUCE_MAX", FLOAT): ("-INFINITY", "a > b || a != a ? a : b"),
    ("REDUCE_MIN", FLOAT): ("INFINITY", "a < b || a != a ? a : b"),
    ("SUM", INT32): ("0", "pg_add_int32(a, b)"), ("SUM", INT64): ("0", "pg_add_int64(a, b)"),
    ("REDUCE_PROD", INT32): ("1", "pg_mul_int32(a, b)"), ("REDUCE_PROD", INT64): ("1", "pg_mul_int64(a, b)"),
    ("MEAN", INT32): ("0", "pg_add_int32(a, b)"), ("MEAN", INT64): ("0", "pg_add_int64(a, b)"),
    ("REDUCE_MAX", INT32): ("INT32_MIN", "a > b ? a : b"), ("REDUCE_MAX", INT64): ("INT64_MIN", "a > b ? a : b"),
    ("REDUCE_MIN", INT32): ("INT32_MAX", "a < b ? a : b"), ("REDUCE_MIN", INT64): ("INT64_MAX", "a < b ? a : b"),
    ("REDUCE_MAX", INT8): ("INT8_MIN", "a > b ? a : b"), ("REDUCE_MIN", INT8): ("INT8_MAX", "a < b ? a : b"),
    ("REDUCE_ANY", BOOL): ("0", "a || b"), ("REDUCE_ALL", BOOL): ("1", "a && b"),
}  # fmt: skip
"""For each operator and element type what nothing gives, and what becomes of the result so far (a) and an element."""


@emits("SUM", "MEAN", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL")
@emits("REDUCE_MAX", "REDUCE_MIN", coded=True)
def reduction(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    found = REDUCTIONS.get((operation.code, source.dtype))
    if found is None:
        raise Unsupported(f"{operation.code} of {source.dtype.name}")
    axes = {axis % max(len(source.shape), 1) for axis in known(operation.inputs[1])}
    sizes, to = reduced_walk(source.shape, axes) if source.size else ([0], [0])
    kind, (first, text) = c_type(source.dtype), found
    code = "SUM" if operation.code == "MEAN" else operation.code
    name = f"pg_{code.lower()}_{source.dtype.name}"
    unit.call(
        "reduce.h", name, unit.table("pg_reduced", [len(sizes), sizes, to, result.size]), source, result,
        definition=f"PG_REDUCE({name}, {kind}, {first}, {text})",
    )  # fmt: skip
    if operation.code == "MEAN":
        count = math.prod(source.shape[axis] for axis in axes)
        if source.dtype is FLOAT:
            definition = "PG_UNARY_BY(pg_scale_float, float, float, a * b)"
            factor = number(1 / count) if count else "NAN"
            unit.call("unary.h", "pg_scale_float", result.size, factor, result, result, definition=definition)
        else:
            text = f"a / {max(count, 1)}"
            emit_singles(unit, f"pg_over_{count}_{source.dtype.name}", kind, kind, text, result, result)


@moves("ARG_MAX", "ARG_MIN")
def arg(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    axis = known(operation.inputs[1])[0] % len(source.shape)
    name = f"pg_{operation.code.lower()}_{source.dtype.name}_{result.dtype.name}"
    better = "a > b" if operation.code == "ARG_MAX" else "a < b"
    better += " || (b != b && a == a)" if source.dtype is FLOAT else ""  # NaN is passed over, as in TensorFlow
    definition = f"PG_ARG({name}, {c_type(source.dtype)}, {c_type(result.dtype)}, {better})"
    outer, inner = math.prod(source.shape[:axis]), math.prod(source.shape[axis + 1 :])
    unit.call("ranking.h", name, outer, source.shape[axis], inner, source, result, definition=definition)


@moves("TOPK_V2")
def top_k(unit: Unit, operation: Operation) -> None:
    source = operand(operation, 0)
    values, places = operation.outputs
    name, n = f"pg_topk_{source.dtype.name}", source.shape[-1]
    if places.dtype is not INT32:
        raise Unsupported(f"TOPK_V2 with places of {places.dtype.name}")
    unit.call(
        "ranking.h", name, source.size // max(n, 1), n, values.shape[-1], source, values, places,
        definition=f"PG_TOPK({name}, {c_type(source.dtype)})",
    )  # fmt: skip


@emits("CUMSUM")
def cumulative_sum(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    axis = known(operation.inputs[1])[0] % len(source.shape)
    name = f"pg_cumsum_{source.dtype.name}"
    outer, inner = math.prod(source.shape[:axis]), math.prod(source.shape[axis + 1 :])
    unit.call(
        "ranking.h", name, outer, source.shape[axis], inner, int(operation.options.get("exclusive", False)),
        int(operation.options.get("reverse", False)), source, result,
        definition=f"PG_CUMSUM({name}, {c_type(source.dtype)}, {sum_of(source.dtype)})",
    )  # fmt: skip
