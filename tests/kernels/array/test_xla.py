"""Products, windows, orders and precisions as XLA's ops give them; the numbers are TensorFlow 2.21's on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Graph, Node, Shape
from pocketgraph.kernels import evaluate
from pocketgraph.kernels.shapes.infer import infer
from pocketgraph.protobuf.wire import bytes_field, number_field
from pocketgraph.runtime import Session


def axes(*lists: list[int], vector: int | None = None) -> bytes:
    """A message with these fields, 1, 2, 3, …; ``vector`` is the number 4 of a gathering."""
    packed = b"".join(bytes_field(number, bytes(each)) for number, each in enumerate(lists, 1) if each)
    return packed if vector is None else packed + number_field(4, vector)


def run(op: str, *inputs: np.ndarray[Any, Any], **attrs: Any) -> np.ndarray[Any, Any]:
    """The kernel's result, whose shape the shape rule has to know, and a session to give as well."""
    result = evaluate(Node("node", op, (), attrs), list(inputs))[0]
    types = {"T": DType.of_numpy(inputs[0].dtype)} | (
        {"Tindices": DType.of_numpy(inputs[1].dtype)} if op == "XlaGather" else {}
    )
    sources = [
        Node(f"x{n}", "Placeholder", (), {"dtype": DType.of_numpy(value.dtype), "shape": Shape(value.shape)})
        for n, value in enumerate(inputs)
    ]
    graph = Graph([*sources, Node("node", op, tuple(s.name for s in sources), {**types, **attrs})])
    known = infer(graph).shape("node:0").dims or ()
    assert [size in (None, found) for size, found in zip(known, result.shape, strict=True)] == [True] * result.ndim
    with Session(graph) as session:
        found = session.run("node", {s.name: value for s, value in zip(sources, inputs, strict=True)})[0]
    np.testing.assert_array_equal(found, result)
    return result


def test_products_along_named_axes() -> None:
    a, b = np.arange(12, dtype="f4").reshape(3, 4) * 0.5 - 2, np.arange(20, dtype="f4").reshape(4, 5) * 0.25
    found = run("XlaDot", a, b, dimension_numbers=axes([1], [0]), precision_config=b"")
    np.testing.assert_array_equal(
        found, [[-6.25, -7.5, -8.75, -10, -11.25], [8.75, 9.5, 10.25, 11, 11.75], [23.75, 26.5, 29.25, 32, 34.75]]
    )
    c, d = np.arange(24, dtype="f4").reshape(2, 3, 4), np.arange(40, dtype="f4").reshape(4, 5, 2)
    found = run("XlaDot", c, d, dimension_numbers=axes([2], [0], [0], [2]), precision_config=b"")
    assert found.shape == (2, 3, 5)
    assert found[0, 0].tolist() == [140, 152, 164, 176, 188]
    assert found[1, 2].tolist() == [1426, 1598, 1770, 1942, 2114]
    found = run("XlaDot", a[:2, 0], b[:3, 0], dimension_numbers=b"", precision_config=b"")
    assert found.tolist() == [[0, -2.5, -5], [0, 0, 0]]
    square = np.array([[1, 2], [3, 4]], "i4")
    found = run("XlaDot", square, square, dimension_numbers=axes([0], [1]), precision_config=b"")
    assert found.tolist() == [[7, 15], [10, 22]]


def test_windows_at_starts() -> None:
    g = np.arange(20, dtype="f4").reshape(4, 5)

    def gathered(starts: Any, sizes: list[int], numbers: bytes, kind: str = "i4") -> list[Any]:
        found = run(
            "XlaGather", g, np.array(starts, kind), np.array(sizes, kind), dimension_numbers=numbers,
            indices_are_sorted=False,
        )  # fmt: skip
        return list(found.tolist())

    rows = gathered([2, 0, 9, -3], [1, 5], axes([1], [0], [0], vector=1))  # moved inside
    assert rows == [g[2].tolist(), g[0].tolist(), g[3].tolist(), g[0].tolist()]
    windows = gathered([[2, 0], [3, 4], [0, 1]], [2, 2], axes([1, 2], [], [0, 1], vector=1))
    assert windows == [[[10, 11], [15, 16]], [[13, 14], [18, 19]], [[1, 2], [6, 7]]]
    assert gathered([[2, 0, 1], [3, 4, 0]], [1, 2], axes([0], [0], [0, 1], vector=0)) == [[13, 3, 5], [14, 4, 6]]
    assert gathered([[2, 0], [4, 3]], [1, 1], axes([], [0, 1], [1, 0], vector=1), "i8") == [2, 19]


def test_floats_are_sorted_with_nans_at_both_ends() -> None:
    given = np.array([[3, -0.0, np.nan, 0.0, -np.inf, -np.nan, 1]], "f4")
    found = run("XlaSort", given)
    np.testing.assert_array_equal(found, [[np.nan, -np.inf, 0, 0, 1, 3, np.nan]])
    assert np.signbit(found[0]).tolist() == [True, True, True, False, False, False, False]
    assert run("XlaSort", np.array([[3, 1], [9, 2]], "i4")).tolist() == [[1, 3], [2, 9]]
    assert run("XlaSort", np.array([True, False])).tolist() == [False, True]


NUMBERS = [
    1.1,
    3.14159,
    1e30,
    -1e-30,
    65504,
    65520,
    65519.9,
    6e-8,
    3e-5,
    6.2e-5,
    1e-40,
    2049,
    2051,
    -0.0,
    np.inf,
    np.nan,
]
INF = np.inf


@pytest.mark.parametrize(
    ("exponent", "mantissa", "right"),
    [
        (5, 10, [1.099609375, 3.140625, INF, 0, 65504, INF, 65504, 0, 0, 6.198883056640625e-05, 0, 2048, 2052, 0]),
        (8, 7, [1.1015625, 3.140625, 1.0002555517425873e30, -9.98402083170343e-31, 65536, 65536, 65536, 6.007030606e-08,
                3.0040740966796875e-05, 6.198883056640625e-05, 9.183549615799121e-41, 2048, 2048, 0]),
        (4, 3, [1.125, 3.25, INF, 0, INF, INF, INF, 0, 0, 0, 0, INF, INF, 0]),
        (1, 3, [0, INF, INF, 0, INF, INF, INF, 0, 0, 0, 0, INF, INF, 0]),
        (8, 0, [1, 4, 1.2676506002282294e30, -7.888609052210118e-31, 65536, 65536, 65536, 5.960464477539063e-08,
                3.0517578125e-05, 6.103515625e-05, 0, 2048, 2048, 0]),
    ],
)  # fmt: skip
def test_floats_of_fewer_bits(exponent: int, mantissa: int, right: list[float]) -> None:
    found = run("XlaReducePrecision", np.array(NUMBERS, "f4"), exponent_bits=exponent, mantissa_bits=mantissa)
    np.testing.assert_array_equal(found, np.array([*right, INF, np.nan], "f4"))
    assert np.signbit(found[[3, 13]]).all()


def test_halves_and_doubles_of_fewer_bits() -> None:
    halves, doubles = np.array(NUMBERS, "f2"), np.array(NUMBERS, "f8")
    found = run("XlaReducePrecision", halves, exponent_bits=4, mantissa_bits=3)
    np.testing.assert_array_equal(found[[0, 1, 4, 7, 9, 11]], np.array([1.125, 3.25, INF, 0, 0, INF], "f2"))
    found = run("XlaReducePrecision", doubles, exponent_bits=8, mantissa_bits=23)
    np.testing.assert_array_equal(found[[0, 2, 6, 10]], [1.100000023841858, 1.0000000150474662e30, 65519.8984375, 0])


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "says"),
    [
        ("XlaDot", [np.ones((2, 3)), np.ones((3, 2))], {"dimension_numbers": axes([1], [])}, "not as many"),
        ("XlaDot", [np.ones((2, 3)), np.ones((3, 2))], {"dimension_numbers": axes([5], [0])}, "of 2 dimensions"),
        ("XlaDot", [np.ones((2, 3)), np.ones((3, 2))], {"dimension_numbers": axes([0], [0])}, "is 2 here and 3 there"),
        ("XlaDot", [np.ones(2), np.ones(2)], {"dimension_numbers": b"\x0a\x09"}, "field of 9 bytes"),
        (
            "XlaGather",
            [np.ones((2, 3)), np.zeros(2, "i4"), np.array([3, 1], "i4")],
            {"dimension_numbers": axes([0], [1], [0, 1], vector=0)},
            "do not fit",
        ),
        ("XlaSort", [np.array(3.0)], {}, "with an axis"),
        ("XlaReducePrecision", [np.ones(2)], {"exponent_bits": 0, "mantissa_bits": 3}, "0 bits of an exponent"),
    ],
)
def test_what_does_not_fit_is_refused(op: str, inputs: list[Any], attrs: dict[str, Any], says: str) -> None:
    with pytest.raises(RunError, match=says):
        evaluate(Node("node", op, (), attrs), inputs)
