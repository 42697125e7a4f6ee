"""Arithmetic prepared for small tensors: the kernels' values to the bit, and their errors."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pocketgraph.graph import Node
from pocketgraph.runtime.engines.specialized_kernels import prepared
from pocketgraph.runtime.engines.step_calls import bound

SPECIAL = np.array([[np.nan, 1, -0.0], [np.inf, -np.inf, 0.0]], np.float32)
KINDS = (np.float32, np.float64, np.int32, np.bool_)
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


def both(node: Node, inputs: list[Any], constants: dict[int, Any] | None = None) -> None:
    """The prepared call gives what the kernel gives, or raises what it raises; twice, for what it remembers."""
    kernel, _ = bound(node, lambda name: True)
    call = prepared(node, constants or {}, kernel)
    with np.errstate(all="ignore"):
        for _ in range(2):
            try:
                expected = np.asarray(kernel(*inputs))
            except Exception as error:
                with pytest.raises(type(error), match=re.escape(str(error))):
                    call(*inputs)
                continue
            found = call(*inputs)
            assert isinstance(found, np.ndarray)
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            assert found.tobytes() == expected.tobytes() or np.array_equal(found, expected, equal_nan=True)


@st.composite
def tensors(draw: st.DrawFn, kinds: Any = KINDS) -> Any:
    kind = np.dtype(draw(st.sampled_from(kinds)))
    return draw(arrays.arrays(kind, draw(SHAPES)))


@settings(max_examples=200, deadline=None)
@given(tensors(), st.sampled_from(["Max", "Min"]), st.integers(-3, 2), st.booleans())
def test_reductions(values: Any, op: str, axis: int, keeps: bool) -> None:
    node = Node("n", op, ["a", "b"], {"keep_dims": keeps})
    if values.dtype == np.bool_:
        node = Node("n", "All" if axis % 2 else "Any", ["a", "b"], {"keep_dims": keeps})
    index = np.array([axis], np.int32)
    both(node, [values, index], {1: index})
    both(node, [values, index])


@pytest.mark.parametrize("op", ["Max", "Min"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_reductions_of_special_values(op: str, axis: int) -> None:
    index = np.array(axis, np.int32)
    both(Node("n", op, ["a", "b"]), [SPECIAL, index], {1: index})


@settings(max_examples=100, deadline=None)
@given(tensors([np.bool_]))
def test_opposites(values: Any) -> None:
    before = values.copy()
    both(Node("n", "LogicalNot", ["a"]), [values])
    np.testing.assert_array_equal(values, before)  # an input is never changed


@settings(max_examples=100, deadline=None)
@given(tensors(), tensors())
def test_functions_of_two_tensors(a: Any, b: Any) -> None:
    with np.errstate(all="ignore"):
        both(Node("n", "MatMul", ["a", "b"]), [a.astype(np.float32), b.astype(np.float32)])
    for axis in (0, 1):
        both(Node("n", "Pack", ["a", "b"], {"axis": axis}), [a, b])
        both(Node("n", "Pack", ["a", "b"], {"axis": axis}), [a, a + a if a.dtype != np.bool_ else a])


def test_products() -> None:
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(3, 4)
    for node in (Node("n", "MatMul", ["a", "b"]), Node("n", "MatMul", ["a", "b"], {"transpose_a": True})):
        both(node, [a, b])
        both(node, [a.T, b])
    both(Node("n", "MatMul", ["a", "b"]), [a.astype(np.int32), b.astype(np.int32)])


@pytest.mark.parametrize("begin", [[1], [-1], [5], [1, 2], 1])
def test_rows_at_computed_places(begin: Any) -> None:
    node = Node("n", "StridedSlice", ["a", "b", "c", "d"], {"shrink_axis_mask": 1})
    start = np.array(begin, np.int32)
    for values in (np.arange(4, dtype=np.float32), np.arange(12).reshape(4, 3), np.float32(1) * np.ones(())):
        for stride in (1, 2, -1, 0):
            both(node, [values, start, start + 1, np.full_like(start, stride)])


@pytest.mark.parametrize("rows", [1, 32, 33])
def test_products_with_weights_at_odd_places(rows: int) -> None:
    """As a mapped file has them: products after the first take a copy, of those weights alone."""
    random = np.random.default_rng(rows)
    places = np.empty(2 * (1 + 4 * 96 * 64), np.uint8)
    odd = [np.ndarray((96, 64), np.float32, places, start) for start in (1, 2 + 4 * 96 * 64)]
    for weights in odd:
        weights[...] = random.standard_normal(weights.shape)
        assert not weights.flags.aligned
    node = Node("n", "MatMul", ["a", "b"])
    kernel, _ = bound(node, lambda name: True)
    call = prepared(node, {}, kernel)
    for weights in (odd[0], odd[0], odd[0], odd[1], odd[1], odd[0], odd[0]):
        x = random.standard_normal((rows, 96)).astype(np.float32)
        np.testing.assert_array_equal(call(x, weights), kernel(x, weights))
