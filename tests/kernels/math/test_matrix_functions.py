"""Square roots and logarithms of matrices with eigenvalues at and below 0; TensorFlow 2.21 gave the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.graph import DType, Node
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.registry import evaluate

NAN = np.nan * (1 + 1j)
ONE_BELOW_ZERO = [[1, 2], [3, 4]]  # eigenvalues 5.37 and -0.37
CASES: dict[str, list[tuple[Any, Any]]] = {
    "MatrixSquareRoot": [
        (ONE_BELOW_ZERO, [[0.55368857 + 0.46439416j, 0.80696073 - 0.21242648j],
                          [1.21044109 - 0.31863972j, 1.7641297 + 0.14575444j]]),
        ([[-2, 0], [0, 3]], [[1.41421356j, 0], [0, 1.73205081]]),
        ([[0, 0], [0, 3]], [[0, 0], [0, 1.73205081]]),
        ([[0, 0], [0, 0]], [[NAN, NAN], [NAN, NAN]]),
    ],
    "MatrixLogarithm": [
        (ONE_BELOW_ZERO, [[-0.35043981 + 2.39111795j, 0.92935121 - 1.09376217j],
                          [1.39402681 - 1.64064326j, 1.04358699 + 0.7504747j]]),
        ([[-2, 0], [0, -3]], [[0.69314718 + 3.14159265j, 0], [0, 1.09861229 + 3.14159265j]]),
        ([[2, 1], [0, 2]], [[0.69314718, 0.5], [0, 0.69314718]]),
        ([[0, 1], [0, 0]], [[NAN, NAN], [NAN, NAN]]),
    ],
}  # fmt: skip


def function(op: str, matrix: Any, dtype: type) -> Array:
    value = np.array(matrix, dtype)
    (result,) = evaluate(Node("y", op, ("x",), {"T": DType.of_numpy(value.dtype)}), [value])
    assert result.dtype == value.dtype
    return result


@pytest.mark.parametrize(("op", "matrix", "expected"), [(op, *case) for op, cases in CASES.items() for case in cases])
def test_complex_matrices_have_principal_functions(op: str, matrix: Any, expected: Any) -> None:
    np.testing.assert_allclose(function(op, matrix, np.complex128), np.array(expected), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(function(op, matrix, np.complex64), np.array(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("matrix", [[[-0.64]], [[-2, 0], [0, 3]], ONE_BELOW_ZERO, [[np.inf, 1], [1, 2]]])
def test_a_real_matrix_with_an_eigenvalue_below_zero_has_no_square_root(matrix: Any) -> None:
    for dtype in (np.float32, np.float64):
        assert np.isnan(function("MatrixSquareRoot", matrix, dtype)).all()


def test_a_matrix_of_a_batch_that_has_no_square_root_leaves_the_others_theirs() -> None:
    root = function("MatrixSquareRoot", [[[-0.64]], [[0.25]], [[np.nan]]], np.float32)
    np.testing.assert_array_equal(root.ravel(), np.array([np.nan, 0.5, np.nan], np.float32))


def test_a_row_of_zeros_keeps_its_root() -> None:
    """Balanced, as LAPACK does it for eigenvectors, such a matrix lost half of its digits, or all."""
    matrix = [[0, 0, 0, 0], [-1.1, 1.0, 0.4, -1.3], [0, -1.5, 0.2, 0.7], [-2.2, -0.6, -0.4, 2.0]]
    expected = [
        [0, 0, 0, 0],
        [-1.990129, 0.9950528, 0.18777, -0.5608703],
        [-2.5311033, -0.9083401, 0.622182, 0.0963673],
        [-2.4168668, -0.3216947, -0.1717541, 1.355036],
    ]
    np.testing.assert_allclose(function("MatrixSquareRoot", matrix, np.complex128), expected, rtol=1e-6, atol=1e-6)
