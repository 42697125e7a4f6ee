"""Elements found by index."""

from __future__ import annotations

import math
from typing import Any

from pocketgraph.exporting.c.operators.elementwise import sum_of
from pocketgraph.exporting.c.operators.emitter_table import emits, moves
from pocketgraph.exporting.c.operators.shapes import strides
from pocketgraph.exporting.c.unit import Unit, array_of, c_type, operand
from pocketgraph.litert.program import Operation, Value


@moves("GATHER")
def gather(unit: Unit, operation: Operation, source: Value, places: Value, result: Value) -> None:
    batch = operation.options.get("batch_dims", 0) or 0
    batch += len(places.shape) if batch < 0 else 0
    axis = (operation.options.get("axis", 0) or 0) % len(source.shape)
    batches = math.prod(source.shape[:batch])
    fields = [
        batches, math.prod(source.shape[batch:axis]), source.shape[axis], places.size // max(batches, 1),
        math.prod(source.shape[axis + 1 :]) * source.dtype.size,
    ]  # fmt: skip
    name = f"pg_gather_{places.dtype.name}"
    unit.call(
        "lookup.h", name, unit.table("pg_gathered", fields), source, places, result,
        definition=f"PG_GATHER({name}, {c_type(places.dtype)})",
    )  # fmt: skip


def points(places: Value, indexed: Value) -> list[Any]:
    """The fields of pg_points: how many places, how many axes they name, the bytes at each, and the way to it."""
    depth = places.shape[-1]
    inner = math.prod(indexed.shape[depth:])
    steps = [step // max(inner, 1) for step in strides(indexed.shape)[:depth]]
    return [places.size // depth, depth, inner * indexed.dtype.size, indexed.shape[:depth], steps]


@moves("GATHER_ND")
def gather_nd(unit: Unit, operation: Operation, source: Value, places: Value, result: Value) -> None:
    fields = points(places, source)
    name = f"pg_gather_nd_{places.dtype.name}"
    unit.call(
        "lookup.h", name, unit.table("pg_points", fields), source, places, result,
        definition=f"PG_GATHER_ND({name}, {c_type(places.dtype)})",
    )  # fmt: skip


@emits("SCATTER_ND")
def scatter_nd(unit: Unit, operation: Operation, places: Value, updates: Value, result: Value) -> None:
    fields = points(places, result)
    name = f"pg_scatter_nd_{places.dtype.name}_{result.dtype.name}"
    kinds = f"{c_type(places.dtype)}, {c_type(result.dtype)}"
    unit.call(
        "lookup.h", name, unit.table("pg_points", fields), result.size, places, updates, result,
        definition=f"PG_SCATTER_ND({name}, {kinds}, {sum_of(result.dtype)})",
    )  # fmt: skip


@emits("ONE_HOT")
def one_hot(unit: Unit, operation: Operation) -> None:
    places, depth, on, off = (operand(operation, place) for place in range(4))
    result = operation.outputs[0]
    axis = operation.options.get("axis", -1)
    axis = len(places.shape) if axis == -1 else axis % len(result.shape)
    name = f"pg_one_hot_{places.dtype.name}_{result.dtype.name}"
    unit.call(
        "lookup.h", name, math.prod(places.shape[:axis]), int(array_of(depth).reshape(-1)[0]),
        math.prod(places.shape[axis:]), places, on, off, result,
        definition=f"PG_ONE_HOT({name}, {c_type(places.dtype)}, {c_type(result.dtype)})",
    )  # fmt: skip
