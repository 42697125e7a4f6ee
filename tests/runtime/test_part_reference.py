"""The reference engine on a part's nodes: float32 without kernels, and where an operand lies that nobody needs."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime.certificates.part_reference import PartReference

SHARED = """
    x = Placeholder(dtype=float, shape=[?, ?])
    a = Const(float [1.0, 2.0, 3.0])
    minus = Neg(x, T=float)                  # the output 'minus' is read by others, too
    early = Add(minus, a, T=float)
    same = Identity(early, T=float)          # the same array under another name
    late = Mul(early, a, T=float)
    negative = Neg(same, T=float)
    row = Square(a, T=float)                 # smaller than what it is added to
    wide = Add(row, x, T=float)
    mixed = Sub(wide, negative, T=float)
    squared = Mul(mixed, mixed, T=float)
    both = Sub(squared, late, T=float)
    rows = Const(int32 [-1])
    flat = Reshape(both, rows, T=float, Tshape=int32)  # a view
    rectified = Relu(both, T=float)
    y = Sub(flat, a0, T=float)
    a0 = Const(float 1.0)
"""
BIASES = """
    x = Placeholder(dtype=float, shape=[?, ?, ?, ?])
    one = Const(float [1.0, 2.0, 4.0])
    turned = Neg(x, T=float)
    y = BiasAdd(turned, one, T=float, data_format="NCHW")
"""


def run(text: str, x: Array, *outputs: str, without: frozenset[str] = frozenset()) -> list[Array]:
    ends = [Endpoint(name, 0) for name in outputs]
    return PartReference(parse(text), [Endpoint("x", 0)], ends, without).run([x])


@pytest.mark.parametrize("without", [frozenset(), frozenset({"recycled_arrays"})])
def test_nothing_is_overwritten_that_is_read_again(without: frozenset[str]) -> None:
    x = np.arange(12, dtype="f4").reshape(4, 3) - 5
    before, a = x.copy(), np.float32([1, 2, 3])
    minus, rectified, y = run(SHARED, x, "minus", "rectified", "y", without=without)
    mixed = a * a + x + (a - x)
    both = mixed * mixed - (a - x) * a
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(minus, -x)
    np.testing.assert_array_equal(rectified, np.maximum(both, 0))
    np.testing.assert_array_equal(y, both.reshape(-1) - 1)


def test_biases_of_a_middle_axis_stay_there() -> None:
    x = np.arange(27, dtype="f4").reshape(1, 3, 3, 3)
    (y,) = run(BIASES, x, "y")
    np.testing.assert_array_equal(y, -x + np.float32([1, 2, 4]).reshape(1, 3, 1, 1))


MIXED = """
    x = Placeholder(dtype=float, shape=[?, ?])
    column = Placeholder(dtype=float, shape=[?, ?])
    turned = Neg(x, T=float)
    same = StopGradient(turned, T=float)
    square = Square(same, T=float)
    grown = Add(x, column, T=float)          # each is spread along an axis of the other
    y = Sub(grown, square, T=float)
    i = Cast(x, SrcT=float, DstT=int32)
    doubled = Add(i, i, T=int32)
    z = RealDiv(one, zero, T=float)
    one = Const(float 1.0)
    zero = Const(float 0.0)
    n = Relu(wrong, T=float)
    wrong = Sub(z, z, T=float)
"""


def test_other_types_and_shapes_are_their_kernels() -> None:
    x, column = np.float32([[1.5, -2.5, 3.5]]), np.float32([[10], [20]])
    ends = [Endpoint(name, 0) for name in ("y", "doubled", "z", "n", "turned")]
    reference = PartReference(parse(MIXED), [Endpoint("x", 0), Endpoint("column", 0)], ends)
    y, doubled, z, n, turned = reference.run([x, column])
    np.testing.assert_array_equal(y, [[9.25, 1.25, 1.25], [19.25, 11.25, 11.25]])
    np.testing.assert_array_equal(doubled, [[2, -4, 6]])
    np.testing.assert_array_equal(turned, -x)
    assert doubled.dtype == np.int32
    assert z == np.inf
    assert np.isnan(n)
    assert n.shape == z.shape == ()
    with pytest.raises(RunError, match="shapes that do not fit"):
        reference.run([x, np.ones((2, 2), "f4")])


def test_a_chain_of_element_wise_ops_takes_the_memory_of_one() -> None:
    chain = "x = Placeholder(dtype=float, shape=[?])\nk = Const(float 2.0)\nfirst = Mul(x, k, T=float)\n"
    chain += "second = Add(first, k, T=float)\nthird = Relu(second, T=float)\nfourth = Neg(third, T=float)\n"
    x = np.linspace(-3, 3, 1 << 18, dtype="f4")
    peaks = {}
    for without in (frozenset[str](), frozenset({"recycled_arrays"})):
        reference = PartReference(
            parse(chain + "fifth = Square(fourth, T=float)\ny = Sub(fifth, k, T=float)\nz = Sum(y, axis)\n"
                  "axis = Const(int32 [0])"),
            [Endpoint("x", 0)], [Endpoint("z", 0)], without,
        )  # fmt: skip
        reference.run([x])
        tracemalloc.start()
        (z,) = reference.run([x])
        peaks[without] = tracemalloc.get_traced_memory()[1] / x.nbytes
        tracemalloc.stop()
        np.testing.assert_allclose(z, np.sum(np.square(np.maximum(x * 2.0 + 2.0, 0)) - 2.0, dtype="f8"), rtol=1e-6)
    assert peaks[frozenset()] < 1.2 < 1.8 < peaks[frozenset({"recycled_arrays"})]
