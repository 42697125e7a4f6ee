"""Rewritings of programs: passes over them, copies and parts of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pocketgraph.graph.named_pass import Pass
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.thread_map import mapped


def run_passes(program: Program, passes: Iterable[Pass], without: Collection[str] = ()) -> None:
    """Runs the passes in order, but those of the names in ``without``."""
    for each in passes:
        if each.name not in without:
            each.run(program)


def store_constants(program: Program, threads: int) -> None:
    """Computes constants once that many steps read, such as weights in LiteRT's order of axes, in place."""
    values = dict.fromkeys(v for operation in program.operations for v in operation.inputs if v is not None)
    constants = list({id(value.constant): value.constant for value in values if value.constant is not None}.values())
    stored = dict(zip(map(id, constants), mapped(Constant.stored, constants, threads), strict=True))
    for value in values:
        if value.constant is not None:
            value.constant = stored[id(value.constant)]


def subprogram(program: Program, outputs: Sequence[Value]) -> Program:
    """The part of a program that makes these of its tensors; the program stays as it is."""
    result = Program(list(program.inputs), list(outputs), list(program.operations))
    result.drop_unused()
    return result


def copied(program: Program) -> Program:
    """A program with operations of its own and the same tensors."""
    operations = [
        Operation(op.code, list(op.inputs), list(op.outputs), dict(op.options), op.nodes) for op in program.operations
    ]
    return Program(list(program.inputs), list(program.outputs), operations)
