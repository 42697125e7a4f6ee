"""Rewritings of programs: passes over them, copies and parts of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pocketgraph.graph.named_pass import Pass
from pocketgraph.litert.program import Operation, Program, Value


def run_passes(program: Program, passes: Iterable[Pass], without: Collection[str] = ()) -> None:
    """Runs the passes in order, but those of the names in ``without``."""
    for each in passes:
        if each.name not in without:
            each.run(program)


def subprogram(program: Program, outputs: Sequence[Value]) -> Program:
    """The part of a program that makes these of its tensors; the program stays as it is."""
    result = Program(list(program.inputs), list(outputs), list(program.operations))
    result.drop_unused()
    return result


def copied(program: Program) -> Program:
    """A program with operations of its own and the same tensors."""
    operations = [
        Operation(
            op.code, list(op.inputs), list(op.outputs), dict(op.options), op.nodes, bodies=tuple(map(copied, op.bodies))
        )
        for op in program.operations
    ]
    return Program(list(program.inputs), list(program.outputs), operations)
