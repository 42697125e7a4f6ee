"""Linear algebra held to the equations that define it."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import Node
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels import evaluate
from pocketgraph.runtime import Session

RANDOM = np.random.default_rng(3)


def run(op: str, *inputs: np.ndarray, **attrs: object) -> tuple[np.ndarray, ...]:
    return evaluate(Node("node", op, ["x"] * len(inputs), attrs), inputs)  # type: ignore[arg-type]


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (4, 2), (2, 5)])
@pytest.mark.parametrize("full", [False, True])
def test_svd(rows: int, columns: int, full: bool) -> None:
    x = RANDOM.normal(size=(2, rows, columns)).astype(np.float32)
    s, u, v = run("Svd", x, compute_uv=True, full_matrices=full)
    k = min(rows, columns)
    assert s.dtype == u.dtype == v.dtype == np.float32
    assert u.shape == (2, rows, rows if full else k)
    assert v.shape == (2, columns, columns if full else k)
    assert (np.diff(s) <= 0).all()
    np.testing.assert_allclose((u[..., :k] * s[:, None]) @ v[..., :k].swapaxes(1, 2), x, atol=1e-5)


def test_qr_and_eigenvectors() -> None:
    x = RANDOM.normal(size=(3, 4, 4))
    q, r = run("Qr", x)
    np.testing.assert_allclose(q @ r, x, atol=1e-12)
    np.testing.assert_allclose(np.tril(r, -1), 0, atol=1e-12)
    symmetric = x + x.swapaxes(1, 2)
    values, vectors = run("SelfAdjointEigV2", symmetric)
    np.testing.assert_allclose(symmetric @ vectors, vectors * values[:, None], atol=1e-12)


def test_solutions() -> None:
    x, right = RANDOM.normal(size=(2, 4, 4)), RANDOM.normal(size=(2, 4, 3))
    np.testing.assert_allclose(x @ run("MatrixSolve", x, right)[0], right, atol=1e-10)
    np.testing.assert_allclose(x.swapaxes(1, 2) @ run("MatrixSolve", x, right, adjoint=True)[0], right, atol=1e-10)
    upper = np.triu(x) + 3 * np.eye(4)
    solved = run("MatrixTriangularSolve", np.where(upper == 0, 7.0, upper), right, lower=False)[0]
    np.testing.assert_allclose(upper @ solved, right, atol=1e-10)
    np.testing.assert_allclose(run("MatrixInverse", x)[0] @ x, np.broadcast_to(np.eye(4), (2, 4, 4)), atol=1e-10)
    sign, logarithm = run("LogMatrixDeterminant", x)
    np.testing.assert_allclose(sign * np.exp(logarithm), run("MatrixDeterminant", x)[0], rtol=1e-10)
    tall = RANDOM.normal(size=(6, 3))
    wanted = np.linalg.lstsq(tall, np.ones((6, 1)), rcond=None)[0]
    np.testing.assert_allclose(run("MatrixSolveLs", tall, np.ones((6, 1)), np.array(0.0))[0], wanted, rtol=1e-8)


def test_vectors_that_nobody_asked_for_are_empty() -> None:
    symmetric = np.stack([np.eye(3), 2 * np.eye(3)]).astype(np.float32)
    values, vectors = run("SelfAdjointEigV2", symmetric, compute_v=False)
    assert (values.shape, vectors.shape, vectors.dtype) == ((2, 3), (0,), np.float32)
    assert [part.shape for part in run("Svd", symmetric, compute_uv=False)] == [(2, 3), (0,), (0,)]


@pytest.mark.parametrize("op", ["MatrixInverse", "MatrixSolve", "Cholesky"])
def test_a_matrix_that_does_not_allow_it(op: str) -> None:
    singular = np.array([[1.0, 2.0], [2.0, 4.0]]) - 3 * (op == "Cholesky")
    inputs = (singular, np.ones((2, 1))) if op == "MatrixSolve" else (singular,)
    with pytest.raises(RunError, match=r"not invertible|not successful"):
        run(op, *inputs)
    with pytest.raises(RunError, match="square"):
        run(op, np.ones((2, 3)), *inputs[1:])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(4, 3), (3, 3), (2, 5)])
def test_least_squares_of_what_is_not_finite(bad: float, shape: tuple[int, int]) -> None:
    """LAPACK's iterations need not end on such matrices, so they are kept from it; the others of a batch are solved."""
    x = RANDOM.normal(size=(2, *shape))
    x[1, 0, 1] = bad
    right = RANDOM.normal(size=(2, shape[0], 1))
    (found,) = run("MatrixSolveLs", x, right, np.float64(0), fast=False)
    np.testing.assert_allclose(found[0], np.linalg.lstsq(x[0], right[0], rcond=None)[0], atol=1e-12)
    assert np.isnan(found[1]).all()


@pytest.mark.parametrize("engine", [{"engine": "reference"}, {}], ids=["reference", "default"])
@pytest.mark.parametrize(
    ("equation", "want"),
    [
        ("ab->aab", [[[1, 2, 3], [0, 0, 0]], [[0, 0, 0], [4, 5, 6]]]),
        ("a...->a...a", [[[1, 0], [2, 0], [3, 0]], [[0, 4], [0, 5], [0, 6]]]),
        ("...a->...aa", [[[1, 0, 0], [0, 2, 0], [0, 0, 3]], [[4, 0, 0], [0, 5, 0], [0, 0, 6]]]),
    ],
)
def test_a_label_that_stands_twice_in_an_einsums_result_writes_a_diagonal(
    equation: str, want: list[object], engine: dict[str, str]
) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[2,3])
        y = Einsum(x, N=1, T=float, equation="{equation}")
    """)
    with Session(graph, **engine) as session:
        assert session.run(["y"], {"x": [[1, 2, 3], [4, 5, 6]]})[0].tolist() == want  # TensorFlow 2.21's


def test_an_einsum_of_two_may_write_a_diagonal() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2,2])
        z = Placeholder(dtype=float, shape=[2,3])
        y = Einsum(x, z, N=2, T=float, equation="aa,ab->baa")
    """)
    feeds = {"x": [[1, 2], [3, 4]], "z": [[1, 2, 3], [4, 5, 6]]}
    with Session(graph) as session:
        found = session.run(["y"], feeds)[0].tolist()
    assert found == [[[1, 0], [0, 16]], [[2, 0], [0, 20]], [[3, 0], [0, 24]]]  # TensorFlow 2.21's
