"""Rewritings of programs: copies and parts of them, and what a pass is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from pocketgraph.litert.program import Operation, Program, Value


@dataclass(frozen=True)
class CanonicalPass:
    """A rewriting of a program that needs to know nothing else.

    Attributes:
        name: what it is called in ``without``.
        purpose: what it is for, a sentence.
        run: rewrites the program in place.
    """

    name: str
    purpose: str
    run: Callable[[Program], None]


def run_passes(program: Program, passes: Iterable[CanonicalPass], without: Collection[str] = ()) -> None:
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
        Operation(op.code, list(op.inputs), list(op.outputs), dict(op.options), op.nodes) for op in program.operations
    ]
    return Program(list(program.inputs), list(program.outputs), operations)
