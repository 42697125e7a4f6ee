"""Guards of sizes: what they say is what the function says that they were noted of, for any sizes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Value
from pocketgraph.litert.sizes.operator_sizes import NotCertain, OperatorSizes
from pocketgraph.litert.sizes.size_guards import MOST_NOTED, PLAIN_CALLS, Guarded

Rows = Sequence[Sequence[int]]


class Counted:
    """A function of sizes, and how often it was run."""

    def __init__(self, function: Any) -> None:
        self.function, self.runs = function, 0

    def __call__(self, shapes: Rows, numbers: Rows) -> bool:
        self.runs += 1
        return bool(self.function(shapes, numbers))


def test_what_was_noted_is_not_run_again() -> None:
    def divided(shapes: Rows, numbers: Rows) -> bool:
        (size,), (other,) = shapes
        whole, rest = divmod(size * 3, 2)
        return not rest and -(-whole // 4) == other and size in (-1, size) and size not in ((other,), 0)

    counted = Counted(divided)
    guarded = Guarded(counted)
    for size in range(2, 40, 2):
        assert guarded([(size,), (-(-size * 3 // 8),)], [])
    assert counted.runs == PLAIN_CALLS + 1
    assert not guarded([(6,), (4,)], [])
    assert not guarded([(7,), (3,)], [])


@pytest.mark.parametrize(
    "function",
    [
        lambda shapes, numbers: shapes[0][0] >= 3 and shapes[0][1] % shapes[0][0] == 0,
        lambda shapes, numbers: list(range(20))[shapes[0][0]] < shapes[0][1],  # takes it as a number
        lambda shapes, numbers: max(1, 5 - shapes[0][0]) // 2 <= min(shapes[0][1], numbers[0][0]),
        lambda shapes, numbers: 20 // (shapes[0][0] + 1) > 2 if shapes[0][1] > 2 else bool(numbers[0][0]),
        lambda shapes, numbers: len({shapes[0][0], 1}) == 2 if numbers[0][0] > 99 else shapes[0][0] != numbers[0][0],
        lambda shapes, numbers: (10 - shapes[0][0]) % 3 == 1 or (shapes[0][0], 2) == (numbers[0][0], shapes[0][1]),
    ],
)
def test_guards_say_what_the_function_says(function: Any) -> None:
    places = [*itertools.product(range(9), range(9), range(0, 12, 3))]
    for order in (places, places[::-1], places[7:] + places[:7]):
        guarded = Guarded(function)
        for one, two, number in order:
            assert guarded([(one, two)], [(number,)]) == function([(one, two)], [(number,)]), (one, two, number)


def test_of_more_ways_than_are_noted_the_function_is_asked() -> None:
    counted = Counted(lambda shapes, numbers: shapes[0][0].__index__() > 0)
    guarded = Guarded(counted)
    for size in range(1, 30):
        assert guarded([(size,)], [])
    assert counted.runs == 29
    for size in range(PLAIN_CALLS + 1, PLAIN_CALLS + 1 + MOST_NOTED):
        assert guarded([(size,)], [])
    assert counted.runs == 29
    assert not guarded([(0,)], [])


def test_shapes_of_other_ranks_are_other_ways() -> None:
    guarded = Guarded(lambda shapes, numbers: len(shapes[0]) == 2 and shapes[0][0] > 1)
    assert all(guarded([(size, 1)], []) for size in range(2, 9))
    assert not guarded([(5,), (1,)], [])
    assert not guarded([(5, 1, 1)], [])
    assert not guarded([(5,)], [(1,)])


STARTS = (None, 0, 1, 3, 9, -1, -4, -9)


def test_a_slice_takes_as_many_elements_as_pythons() -> None:
    def vector(number: int | None) -> Value:
        return Value("", INT32, (1,), None if number is None else constant(number))

    for size, first, last, step in itertools.product(range(7), STARTS, STARTS, (1, 2, 3, -1, -2)):
        source, made = Value("x", FLOAT, (size,)), Value("y", FLOAT, (1,))
        masks = {"begin_mask": int(first is None), "end_mask": int(last is None)}
        places = [vector(first or 0), vector(last or 0), vector(step)]
        operation = Operation("STRIDED_SLICE", [source, *places], [made], masks)
        assert OperatorSizes({}, {}).result(operation) == (len(range(size)[first:last:step]),), (
            size,
            first,
            last,
            step,
        )


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        ([(2, 3), (3,)], (2, 3)),
        ([(2, 1), (1, 5)], (2, 5)),
        ([(None, 1), (None, 4)], (None, 4)),
        ([(1,), (None, 1)], (None, 1)),
        ([(1, 1), ()], (1, 1)),
        ([(0, 1), (1, 3)], (0, 3)),
        ([(None,), (4,)], None),
        ([(2,), (3,)], None),
        ([(2,), (1,), (3,)], None),
    ],
)
def test_operands_meet(sizes: list[tuple[int | None, ...]], wanted: tuple[int | None, ...] | None) -> None:
    values = [Value(f"x{place}", FLOAT, tuple(size or 7 for size in each)) for place, each in enumerate(sizes)]
    made = Value("y", FLOAT, (1,) * max(map(len, sizes)))
    found = OperatorSizes(dict(zip(values, sizes, strict=True)), {})
    operation = Operation("ADD", list(values), [made], {})
    if wanted is None:
        with pytest.raises(NotCertain):
            found.result(operation)
    else:
        assert found.result(operation) == wanted


def constant(number: int) -> Constant:
    return Constant.of(np.asarray([number], np.int32))
