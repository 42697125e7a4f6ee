"""The tables of operators: what emits each one, found by its name. The modules beside this one are the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias, TypeVar

from pocketgraph.exporting.c.unit import Unit, operand
from pocketgraph.graph.dtype import INT8
from pocketgraph.kernels.op_table import OpTable
from pocketgraph.litert.program import Operation, Value

Emit: TypeAlias = Callable[[Unit, Operation], None]
Function = TypeVar("Function", bound=Callable[..., None])


class Entry(NamedTuple):
    """How an operator becomes calls of kernels.

    Attributes:
        emit: writes the calls.
        in_place: whether its result may take the place of an operand of the same shape.
    """

    emit: Emit
    in_place: bool


PACKAGE = "pocketgraph.exporting.c.operators"
PLAIN: OpTable[Entry] = OpTable("emitter", PACKAGE, "PLAIN")
"""Operators on plain numbers."""
CODED: OpTable[Entry] = OpTable("emitter on codes", PACKAGE, "CODED")
"""Operators on int8 codes."""


def emits(*codes: str, in_place: bool = False, coded: bool = False) -> Callable[[Function], Function]:
    """Enters the decorated function for these operators; ``coded``: for those on int8 codes.

    Its parameters behind the operation are the first operands, which have to be there, and the first result.
    """

    def enter(function: Function) -> Function:
        count = function.__code__.co_argcount - 2

        def emit(unit: Unit, operation: Operation) -> None:
            values = [operand(operation, place) for place in range(count - 1)]
            function(unit, operation, *values, *operation.outputs[: min(count, 1)])

        for code in codes:
            (CODED if coded else PLAIN).add(code, Entry(emit, in_place))
        return function

    return enter


def moves(*codes: str) -> Callable[[Function], Function]:
    """Enters the decorated function for operators that only put elements elsewhere, whatever they stand for."""

    def enter(function: Function) -> Function:
        emits(*codes)(function)
        return emits(*codes, coded=True)(function)

    return enter


def entry_of(operation: Operation) -> Entry | None:
    """What emits an operation; None where nothing does."""
    return (CODED if is_coded(operation) else PLAIN).row(operation.code)


def is_coded(operation: Operation) -> bool:
    """Whether an operation takes or gives int8 codes."""
    return any(value is not None and is_code(value) for value in (*operation.inputs, *operation.outputs))


def is_code(value: Value) -> bool:
    """Whether a tensor holds int8 codes."""
    return value.dtype is INT8 and value.quantization is not None
