"""Chooses whole rows by one truth each, where it was repeated for all elements of a row or spread over them.

    truths [8] ─RESHAPE [8,1] ─TILE [8,256] ─SELECT_V2(…, yes [8,256], no [8,256])
becomes
    truths [8] ─SELECT(…, yes, no)

So recurrent layers keep the state of texts that have ended. LiteRT's SELECT copies rows as they are; SELECT_V2 looks at
each element, and where it broadcasts at each index.
"""

from __future__ import annotations

from pocketgraph.litert.program import Operation, Program, Value


def choose_whole_rows(program: Program) -> None:
    """Rewrites such choices; rows of any number of axes."""
    producers = program.producers()
    for operation in program.operations:
        if operation.code != "SELECT_V2":
            continue
        condition, yes, no = operation.operands
        shape = operation.outputs[0].shape
        if len(shape) < 2 or not yes.shape == no.shape == shape:
            continue
        truths = _truths_of_rows(condition, shape[0], producers)
        if truths is not None:
            operation.code, operation.inputs, operation.options = "SELECT", [truths, yes, no], {}
    program.drop_unused()


def _truths_of_rows(condition: Value, rows: int, producers: dict[Value, Operation]) -> Value | None:
    """The vector that has the truth of each row, where the condition is the same all along a row; else None."""
    value = condition
    if len(value.shape) < 2 or value.shape[0] != rows:
        return None
    made = producers.get(value)
    if made is not None and made.code == "TILE":
        value = made.operands[0]  # of one element a row and as many rows: only rows are repeated along
        made = producers.get(value)
    if value.shape[0] != rows or value.size != rows or made is None or made.code != "RESHAPE":
        return None
    vector = made.operands[0]
    return vector if vector.shape == (rows,) and vector.constant is None else None
