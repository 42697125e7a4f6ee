"""Loops and branches, between whose marks their operations stand (``inline_loops.py``), and writes into arrays."""

from __future__ import annotations

import math

from pocketgraph.exporting.c.inline_loops import ELSE, END, IF, LOOP, TEST, UPDATE
from pocketgraph.exporting.c.operators.emitter_table import emits, moves
from pocketgraph.exporting.c.unit import Unit, operand
from pocketgraph.graph.dtype import INT32
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.program import Operation, Value


def _copy(unit: Unit, source: Value, result: Value) -> None:
    unit.call("copy.h", "memcpy", result, source, result.size * result.dtype.size)


@moves(LOOP)
def loop(unit: Unit, operation: Operation) -> None:
    for start, state in zip(operation.operands, operation.outputs, strict=True):
        _copy(unit, start, state)
    unit.line("for (;;) {")


@moves(TEST)
def test(unit: Unit, operation: Operation) -> None:
    unit.line("if (!*(const uint8_t *)%s) break;", operand(operation, 0))


@moves(IF)
def begin_branch(unit: Unit, operation: Operation) -> None:
    unit.line("if (*(const uint8_t *)%s) {", operand(operation, 0))


@moves(ELSE)
def other_branch(unit: Unit, operation: Operation) -> None:
    _hand_on(unit, operation)
    unit.line("} else {")


@moves(END)
def end(unit: Unit, operation: Operation) -> None:
    _hand_on(unit, operation)
    unit.line("}")


def _hand_on(unit: Unit, operation: Operation) -> None:
    """What comes of a round becomes what the next one begins with: first aside what lies where another is to lie."""
    count = operation.options["count"]
    following, states = operation.operands[:count], operation.operands[count : 2 * count]
    places = {id(unit.storage.buffer(state)) for state in states}
    aside = []
    for source, state in zip(following, states, strict=True):
        buffer = unit.storage.buffer(source)
        if buffer is unit.storage.buffer(state):
            continue
        if id(buffer) in places:
            size = state.size * state.dtype.size
            room = unit.scratch(size)
            unit.call("copy.h", "memcpy", room, source, size)
            aside.append((room, state, size))
    for source, state in zip(following, states, strict=True):
        buffer = unit.storage.buffer(source)
        if buffer is not unit.storage.buffer(state) and id(buffer) not in places:
            _copy(unit, source, state)
    for room, state, size in aside:
        unit.call("copy.h", "memcpy", state, room, size)


@emits(UPDATE)
def update(unit: Unit, operation: Operation) -> None:
    array, rows, starts = (operand(operation, place) for place in range(3))
    (result,) = operation.outputs
    if rows.shape[1:] != array.shape[1:] or starts.dtype is not INT32:
        raise Unsupported(f"{UPDATE} of parts of rows has no kernel in C")
    if unit.storage.buffer(array) is not unit.storage.buffer(result):
        _copy(unit, array, result)
    row = math.prod(rows.shape[1:]) * rows.dtype.size
    unit.call("update.h", "pg_update_rows", starts, array.shape[0] - rows.shape[0], row, rows.size * rows.dtype.size,
              rows, result)  # fmt: skip
