"""Ops on variables against TensorFlow: parts assigned in place, and optimizers' steps, some rows at a time or all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.cases import Case, assert_each, by_op, cases
from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, opdefs
from pocketgraph.kernels import evaluate
from pocketgraph.kernels.state.variables import Variable, change
from pocketgraph.kernels.training.sparse_optimizers import STEPS

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "complex64": 2.0**-23}
FLOAT = DType.named("float")
ULPS = 2
"""Float results may differ by this many units in the last place of the largest element for each step that a row
takes: a step is six to ten roundings in an order that is Eigen's own, with its own square root and power."""


def variable(value: Any, name: str = "var") -> Variable:
    made = Variable(name)
    made.assign(np.asarray(value))
    return made


def is_variable(op: str, place: int) -> bool:
    argument = opdefs.definition(op).inputs[place]
    return argument.is_ref or argument.dtype is DType.named("resource")


@pytest.mark.parametrize("found", by_op(case for group in ("variables", "steps") for case in cases(group)))
def test_variables_become_what_tensorflow_makes_of_them(found: list[Case]) -> None:
    assert_each(assert_becomes, found)


def assert_becomes(case: Case) -> None:
    inputs = [variable(v) if is_variable(case.node.op, i) else v for i, v in enumerate(case.inputs)]
    held = [value for value in inputs if isinstance(value, Variable)]
    with np.errstate(all="ignore"):
        results = evaluate(case.node, inputs)
    assert results == ((held[0],) if opdefs.definition(case.node.op).outputs else ())
    assert len(held) == len(case.expected)
    for made, expected in zip(held, case.expected, strict=True):
        actual = made.read()
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        quotients = case.node.op.endswith("Div") and expected.dtype.kind == "c"
        if not ("Apply" in case.node.op or quotients) or not expected.size:
            np.testing.assert_array_equal(actual, expected)
            continue
        steps = 3 if case.node.name.endswith("_again") else 1
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        found, wanted = actual.astype(wide), expected.astype(wide)
        finite = np.isfinite(wanted)
        unit = EPSILON.get(expected.dtype.name, 2.0**-52) * np.abs(wanted[finite]).max(initial=0)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=ULPS * steps * unit)


def test_every_sparse_optimizer_has_goldens() -> None:
    ops = {case.node.op for case in cases("variables")}
    assert {f"ResourceSparseApply{name}" for name in STEPS} <= ops


def scatter(op: str, value: Any, indices: Any, updates: Any, **attributes: Any) -> Any:
    made = variable(value)
    evaluate(Node("scatter", op, (), attributes), [made, np.array(indices), np.array(updates, made.read().dtype)])
    return made.read().tolist()


def test_places_outside_are_refused_or_skipped() -> None:
    with pytest.raises(RunError, match="scatter"):
        scatter("ScatterNdAdd", [1.0, 2], [[2]], [1])
    with pytest.raises(RunError, match="scatter"):
        scatter("ResourceScatterNdUpdate", [1.0, 2], [[-1]], [1])
    assert scatter("ScatterNdAdd", [1.0, 2], [[2], [0]], [5, 1], bad_indices_policy=b"IGNORE") == [2, 2]
    with pytest.raises(RunError, match="not 'NEVER'"):
        scatter("ScatterNdUpdate", [1.0, 2], [[1]], [1], bad_indices_policy=b"NEVER")


@pytest.mark.parametrize(
    ("indices", "updates", "problem"),
    [
        ([[0]], [1.0, 2], r"updates of shape \[2\] where \[1\] is wanted"),
        ([[0, 0]], [1.0], r"indices of shape \[1, 2\] do not index a variable of shape \[2\]"),
        (0, 1.0, r"indices of shape \[\]"),
    ],
)
def test_shapes_that_do_not_fit_a_scatter(indices: Any, updates: Any, problem: str) -> None:
    with pytest.raises(RunError, match=problem):
        scatter("ScatterNdUpdate", [1.0, 2], indices, updates)


def test_integers_are_divided_as_integers() -> None:
    large = [2**62 + 1, -7]
    assert scatter("ScatterDiv", np.int64(large), [0, 1, 0], [1, 2, 3]) == [(2**62 + 1) // 3, -3]
    with pytest.raises(RunError, match="zero"):
        scatter("ScatterDiv", np.int32([4]), [0], [0])


def test_a_resource_is_not_divided_by_0() -> None:
    """Of any type, as TensorFlow 2.21; what a reference variable is divided by is looked at for integers alone."""
    inputs = [variable(np.float32([4, 2])), np.array([0, 1]), np.float32([0, 1])]
    with pytest.raises(RunError, match="updates must not contain 0"):
        evaluate(Node("div", "ResourceScatterDiv", (), {"dtype": FLOAT}), inputs)
    assert scatter("ScatterDiv", np.float32([4, 2]), [0, 1], np.float32([0, 1])) == [np.inf, 2]


def test_updates_of_one_row_are_not_those_of_all() -> None:
    inputs = [variable(np.ones((3, 3), np.float32)), np.array([0, 2]), np.ones(3, np.float32)]
    with pytest.raises(RunError, match=r"updates of shape \[3\] where \[2, 3\], or a scalar, is wanted"):
        evaluate(Node("max", "ScatterMax", (), {"T": FLOAT}), inputs)


def test_a_failed_change_leaves_the_variable_as_it_was() -> None:
    made = variable(np.float32([1, 2]))
    with pytest.raises(RunError):
        evaluate(Node("s", "ScatterNdAdd"), [made, np.array([[0], [7]]), np.float32([1, 1])])
    assert made.read().tolist() == [1, 2]


@pytest.mark.parametrize("op", ["StridedSliceAssign", "ResourceStridedSliceAssign", "TensorStridedSliceUpdate"])
@pytest.mark.parametrize(
    ("value", "end", "rows"),
    [
        (1.0, 2, [[1, 1], [1, 1], [0, 0]]),
        ([1.0, 2.0], 2, [[1, 2], [1, 2], [0, 0]]),
        ([[1.0], [2.0]], 2, [[1, 1], [2, 2], [0, 0]]),
        ([[[1.0, 2.0]]], 2, [[1, 2], [1, 2], [0, 0]]),
        ([[1.0, 2.0, 3.0]], 0, [[0, 0], [0, 0], [0, 0]]),
    ],
)
def test_a_slice_takes_what_broadcasts_to_it(op: str, value: Any, end: int, rows: list[list[float]]) -> None:
    """The rows are those of TensorFlow 2.21, which asks nothing of what is put into no place."""
    given: Any = np.zeros((3, 2), np.float32)
    if op.endswith("Assign"):
        given = variable(given)
    bounds = [np.array([0]), np.array([end]), np.array([1])]
    found = evaluate(Node("assign", op, (), {"T": FLOAT}), [given, *bounds, np.array(value, np.float32)])
    assert (given.read() if op.endswith("Assign") else found[0]).tolist() == rows


@pytest.mark.parametrize("op", ["StridedSliceAssign", "ResourceStridedSliceAssign"])
def test_a_slice_takes_only_what_has_its_shape(op: str) -> None:
    bounds = [np.array([0]), np.array([2]), np.array([1])]
    with pytest.raises(RunError, match=r"value of shape \[3\] does not fit the slice of shape \[2\]"):
        evaluate(Node("assign", op), [variable(np.zeros(4)), *bounds, np.zeros(3)])
    with pytest.raises(RunError, match=r"strides\[0\] must be non-zero"):
        evaluate(Node("assign", op), [variable(np.zeros(4)), *bounds[:2], np.array([0]), np.zeros(2)])
    with pytest.raises(RunError, match="uninitialized"):
        evaluate(Node("assign", op), [Variable("var"), *bounds, np.zeros(2)])


@pytest.mark.parametrize(
    ("shapes", "indices", "problem"),
    [
        (((3, 2), (3, 2), (2, 2)), [0, 3], "Index 3 is out of range: the variable has 3 rows"),
        (((3, 2), (3, 2), (2, 2)), [-1, 0], "Index -1 is out of range"),
        (((3, 2), (3, 2), (2, 2)), [0], r"1 rows of a variable of shape \[3, 2\] ask for \[1, 2\]"),
        (((3, 2), (3, 2), (2, 2)), [[0, 1]], "one-dimensional"),
        (((3, 2), (2, 2), (2, 2)), [0, 1], r"'accum' has the shape \[2, 2\]"),
        (((), (), ()), [0], "at least 1 dimensional"),
    ],
)
def test_rows_that_do_not_fit(shapes: tuple[tuple[int, ...], ...], indices: Any, problem: str) -> None:
    var, accum = variable(np.ones(shapes[0], np.float32)), variable(np.ones(shapes[1], np.float32), "accum")
    node = Node("step", "SparseApplyAdagrad", (), {"T": FLOAT})
    with pytest.raises(RunError, match=problem):
        evaluate(node, [var, accum, np.float32(0.1), np.ones(shapes[2], np.float32), np.array(indices)])
    assert (var.read() == 1).all()
    assert (accum.read() == 1).all()


def test_a_new_value_is_taken_as_it_is_and_one_that_others_have_is_copied() -> None:
    variable = Variable("v")
    variable.assign(np.zeros(3, np.float32))
    first = variable.read()
    others = np.arange(3, dtype=np.float32)
    for by, expected in (
        (lambda now: now + 1, [1, 1, 1]),
        (lambda now: now, [1, 1, 1]),
        (lambda _: others, [0, 1, 2]),
        (lambda _: others[::-1], [2, 1, 0]),
        (lambda now: now.astype(np.float64) * 2, [4, 2, 0]),
    ):
        change(variable, by)
        assert variable.read().tolist() == expected
        assert variable.read().dtype == np.float32
        assert not variable.read().flags.writeable
        assert not np.shares_memory(variable.read(), others)
    others[:] = 9  # still its owner's
    assert variable.read().tolist() == [4, 2, 0]
    assert first.tolist() == [0, 0, 0]
