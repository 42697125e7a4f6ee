"""The table of operators: what emits each one, found by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias, TypeVar

from pocketgraph.exporting.c.unit import Unit
from pocketgraph.litert.program import Operation

Emit: TypeAlias = Callable[[Unit, Operation], None]
Function = TypeVar("Function", bound=Emit)


class Entry(NamedTuple):
    """How an operator becomes calls of kernels.

    Attributes:
        emit: writes the calls.
        in_place: whether its result may take the place of an operand of the same shape.
    """

    emit: Emit
    in_place: bool


OPERATORS: dict[str, Entry] = {}


def emits(*codes: str, in_place: bool = False) -> Callable[[Function], Function]:
    """Enters the decorated function for these operators."""

    def enter(function: Function) -> Function:
        for code in codes:
            OPERATORS[code] = Entry(function, in_place)
        return function

    return enter
