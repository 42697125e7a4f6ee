"""Recognises functions that a graph spells out in many operations by their values.

    x ─MUL(0.7071)─ … twenty operations of an error function … ─MUL(x)─ y      is      x ─GELU─ y

Everything between x and y is computed for a row of numbers; what comes out says which function it is, however it is
spelled. Codes are then looked up once instead of being rounded in every step.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core.program_runner import ProgramRunner

BY_NUMBER = frozenset((
    "ABS", "ADD", "CEIL", "COS", "DIV", "ELU", "EXP", "FLOOR", "GREATER", "GREATER_EQUAL", "LEAKY_RELU", "LESS",
    "LESS_EQUAL", "LOG", "LOGISTIC", "MAXIMUM", "MINIMUM", "MUL", "NEG", "POW", "RELU", "RELU6", "RELU_N1_TO_1",
    "ROUND", "RSQRT", "SELECT_V2", "SIGN", "SIN", "SQRT", "SQUARE", "SQUARED_DIFFERENCE", "SUB", "TANH",
))  # fmt: skip
"""Operators that compute each number of their result from the numbers in the same place."""
FEWEST, MOST = 3, 48  # operations that are looked at together
MOST_TRIED = 200  # stretches of operations that are computed, in all of a program
LARGEST_CONSTANT = 1 << 22  # elements of a constant that may hold one number everywhere
GRID = np.concatenate([np.linspace(-10, 10, 1601), np.linspace(-0.5, 0.5, 401)]).astype(np.float32)
NEAR = 3e-5  # absolute; LiteRT's error function is good to 5e-7, which x of up to 10 multiplies


def _gelu(x: Array) -> Array:
    result: Array = 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    return result


def _gelu_by_tanh(x: Array) -> Array:
    result: Array = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return result


KNOWN: tuple[tuple[str, Mapping[str, Any], Callable[[Array], Array]], ...] = (
    ("GELU", {"approximate": False}, _gelu),
    ("GELU", {"approximate": True}, _gelu_by_tanh),
    ("ELU", {}, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    ("TANH", {}, np.tanh),
    ("LOGISTIC", {}, lambda x: 1 / (1 + np.exp(-x))),
)
"""Operators, their options, and what they compute."""


def recognise_functions(program: Program) -> None:
    """Puts one operator in place of the operations that spell it."""
    operations = program.operations
    makers = {value: place for place, operation in enumerate(operations) for value in operation.outputs}
    wanted = [known(GRID.astype(np.float64)) for _, _, known in KNOWN]
    number_of = cache(_only_number)
    taken: set[Operation] = set()
    tried = 0
    for place, operation in reversed(list(enumerate(operations))):
        if tried >= MOST_TRIED:
            break
        if operation.code not in BY_NUMBER or operation in taken or operation.outputs[0].dtype is not FLOAT:
            continue
        for source, inside in _stretches(place, operations, makers, number_of):
            if len(inside) < FEWEST or tried >= MOST_TRIED:
                continue
            tried += 1
            given = _computed(source, operation.outputs[0], inside, number_of)
            found = next((at for at, values in enumerate(wanted) if _are_near(given, values)), None)
            if found is not None:
                operation.code, options, _ = KNOWN[found]
                operation.inputs, operation.options = [source], dict(options)
                operation.nodes = tuple(dict.fromkeys(name for one in inside for name in one.nodes))
                taken.update(inside)
                break
    program.drop_unused()


def _stretches(
    last: int, operations: Sequence[Operation], makers: Mapping[Value, int], number_of: Callable[[Value], Value | None]
) -> Iterator[tuple[Value, list[Operation]]]:
    """Each value that all of an operation's result depends on alone, and the operations in between, in order."""
    shape = operations[last].outputs[0].shape
    inside: list[Operation] = []
    open_values = {operations[last].outputs[0]}
    waiting = [-last]  # makers of open values, as a heap with the latest one first
    while waiting and len(inside) < MOST:
        latest = operations[-heapq.heappop(waiting)]
        if latest.code not in BY_NUMBER or len(latest.outputs) != 1 or latest.outputs[0].shape != shape:
            return
        inside.append(latest)
        open_values.discard(latest.outputs[0])
        for value in latest.inputs:
            if value is None or value in open_values:
                continue
            if value.constant is None:
                open_values.add(value)
                if value in makers:
                    heapq.heappush(waiting, -makers[value])
            elif number_of(value) is None:
                return
        if len(open_values) == 1:
            (source,) = open_values
            if source.shape == shape and source.dtype is FLOAT:
                yield source, inside[::-1]


def _computed(
    source: Value, result: Value, inside: list[Operation], number_of: Callable[[Value], Value | None]
) -> Array | None:
    """What these operations make of GRID in place of ``source``; None where LiteRT does not take them."""
    row: dict[Value, Value] = {}

    def of(value: Value) -> Value:
        number = number_of(value)
        if number is not None:
            return number
        return row.setdefault(value, Value(value.name, value.dtype, GRID.shape))

    operations = [
        Operation(o.code, [None if v is None else of(v) for v in o.inputs], [of(v) for v in o.outputs], dict(o.options))
        for o in inside
    ]
    try:
        (values,) = ProgramRunner(Program([of(source)], [of(result)], operations))([GRID])
    except PocketgraphError:
        return None
    return values


def _only_number(value: Value) -> Value | None:
    """A constant that holds one number everywhere, as a scalar; None for any other."""
    if value.constant is None or not 0 < value.size <= LARGEST_CONSTANT:
        return None
    numbers = value.constant.numpy().reshape(-1)
    return Value(value.name, value.dtype, (), Constant.of(numbers[0])) if (numbers == numbers[0]).all() else None


def _are_near(given: Array | None, wanted: Array) -> bool:
    return given is not None and bool(np.all(np.abs(given - wanted) <= NEAR))
