"""Calls prepared for single numbers, ranges, fills, new axes and choices: the kernels' values to the bit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pocketgraph.graph import Node
from pocketgraph.runtime.engines import scalar_arithmetic
from pocketgraph.runtime.engines.kernel_makers import MAKERS
from pocketgraph.runtime.engines.specialized_kernels import prepared
from pocketgraph.runtime.engines.step_calls import bound, holding
from runtime.test_small_tensor_math import both

LOGICAL = ("LogicalAnd",)
NUMBERS = {op for op, maker in MAKERS.items() if maker.__module__ == scalar_arithmetic.__name__}
EDGES = {
    "int32": [0, 1, -1, 7, -3, 2**31 - 1, -(2**31)],
    "int64": [0, 1, -1, 7, -3, 2**63 - 1, -(2**63)],
    "float32": [0.0, -0.0, 1.0, 0.1, -2.5, 3.4e38, 1e-45, np.inf, -np.inf, np.nan],
    "float64": [0.0, 0.1, np.nan],
    "uint8": [0, 200],
}


def test_rows_of_all_files_are_in_the_table() -> None:
    assert {"AddV2", "LogicalAnd", "GreaterEqual"} <= NUMBERS
    assert {"Range", "MatMul", "StridedSlice"} <= MAKERS.keys()


@pytest.mark.parametrize("op", [*sorted(NUMBERS - set(LOGICAL)), "Equal", "NotEqual"])
@pytest.mark.parametrize("kind", EDGES)
def test_single_numbers(op: str, kind: str) -> None:
    values = [np.asarray(value, kind) for value in EDGES[kind]]
    for x in values:
        for y in values:
            both(Node("n", op, ["x", "y"]), [x, y])


@pytest.mark.parametrize("op", LOGICAL)
def test_truths(op: str) -> None:
    for x in (False, True):
        for y in (False, True):
            both(Node("n", op, ["x", "y"]), [np.asarray(x), np.asarray(y)])
            both(Node("n", op, ["x", "y"]), [np.array([x, not x]), np.asarray(y)])


@settings(max_examples=300, deadline=None)
@given(st.data(), st.sampled_from(sorted([*NUMBERS, "Equal", "NotEqual"])))
def test_whatever_else_comes(data: st.DataObject, op: str) -> None:
    kinds = [np.bool_] if op in LOGICAL else [np.float32, np.int32, np.int64, np.float64]
    shapes = arrays.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3)
    x, y = (
        data.draw(arrays.arrays(np.dtype(data.draw(st.sampled_from(kinds))), data.draw(shapes), fill=st.nothing()))
        for _ in "xy"
    )
    both(Node("n", op, ["x", "y"]), [x, y])


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float32])
@pytest.mark.parametrize("numbers", [(0, 5, 1), (3, 3, 1), (2, 9, 3), (5, 0, 1), (5, 0, -2), (0, 4, 0), (-3, 3, 2)])
def test_ranges(kind: Any, numbers: tuple[int, int, int]) -> None:
    both(Node("n", "Range", ["a", "b", "c"]), [np.asarray(number, kind) for number in numbers])


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -2, -5])
def test_new_axes(axis: int) -> None:
    place = np.asarray(axis, np.int32)
    for shape in ((), (2,), (2, 3)):
        both(Node("n", "ExpandDims", ["a", "b"]), [np.ones(shape, np.float32), place], {1: place})


def test_truths_that_are_given_again_are_not_written_to() -> None:
    node = Node("n", "Less", ["x", "y"])
    found = prepared(node, {}, bound(node, lambda name: True)[0])(np.asarray(1), np.asarray(2))
    with pytest.raises(ValueError, match="read-only"):
        found[...] = False


def test_an_assertion_asks_the_kernel_only_when_it_fails() -> None:
    asked: list[Any] = []

    def kernel(run: Any, condition: Any, *data: Any) -> tuple[()]:
        asked.append(condition)
        return ()

    call = holding(kernel)
    assert call(None, np.asarray(True), b"said") == ()
    assert not asked
    call(None, np.asarray(False))
    call(None, np.array([True, True]))
    assert len(asked) == 2
