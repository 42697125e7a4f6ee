"""Sparse matrices kept by rows, on a graph that TensorFlow 2 ran (tests/fixtures/make_csr_matrices.py)."""

from __future__ import annotations

import gzip
import pathlib

import numpy as np
import pytest

from pocketgraph import formats
from pocketgraph.errors import PocketgraphError
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

FOLDER = pathlib.Path(__file__).parents[2] / "fixtures" / "csr_matrices"
RESULTS = dict(np.load(FOLDER / "results.npz"))


@pytest.mark.parametrize("engine", ["reference", None])
def test_every_result_is_tensorflows(engine: str | None) -> None:
    graph = formats.from_bytes(gzip.decompress((FOLDER / "graph.pb.gz").read_bytes()))
    found = Session(graph, engine=engine).run(list(RESULTS), {})
    assert len(found) > 150
    for name, result in zip(RESULTS, found, strict=True):
        expected = RESULTS[name]
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape), name
        if expected.dtype.kind in "iu":
            np.testing.assert_array_equal(result, expected, name)
        elif expected.size:
            finite = expected[np.isfinite(expected)]
            unit = float(np.finfo(expected.dtype).eps) * float(np.abs(finite).max(initial=0))
            np.testing.assert_allclose(result, expected, rtol=0, atol=2 * unit, err_msg=name)


ONE = """
    where = Const(int64 [[0, 1], [1, 0]])
    values = Const(float [2, 3])
    shape = Const(int64 [2, 2])
    a = SparseTensorToCSRSparseMatrix(where, values, shape, T=float)
"""


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("y = CSRSparseMatrixToDense(a, type=double)", "dtype of input is not equal to 'type': float32 vs. double"),
        (
            "n = Const(int32 1)\n p = CSRSparseMatrixComponents(a, n, type=float)\n y = Identity(p:2, T=float)",
            r"index \(1\) not in \[0, 1\)",
        ),
        (
            "b = Const(float [[1, 2, 3]])\n y = SparseMatrixMatMul(a, b, T=float)",
            r"do not agree. Shapes are: \[2, 2\] vs. \[1, 3\]",
        ),
        (
            "b = Const(float [[1, 2], [3, 4]])\n"
            " y = SparseMatrixMatMul(a, b, T=float, transpose_a=true, adjoint_a=true)",
            "Only one of adjoint_a and transpose_a",
        ),
        (
            "o = Const(int64 [[0, 2]])\n v = Const(float [1])\n"
            " b = SparseTensorToCSRSparseMatrix(o, v, shape, T=float)\n y = SparseMatrixNNZ(b)",
            r"indices\[0\] = \[0, 2\] does not index into \[2, 2\]",
        ),
        (
            "d = Const(float [1, 2])\n o = Const(int64 [[0]])\n b = DenseToCSRSparseMatrix(d, o, T=float)\n"
            " y = SparseMatrixNNZ(b)",
            "params must have rank 2 or 3",
        ),
        (
            "s = Const(int64 [1000000000000, 2])\n b = SparseTensorToCSRSparseMatrix(where, values, s, T=float)\n"
            " y = SparseMatrixNNZ(b)",
            "would take",
        ),
        (
            "o = Const(int64 [[0, 0, 1]])\n v = Const(float [1])\n s = Const(int64 [1000000000, 2, 2])\n"
            " b = SparseTensorToCSRSparseMatrix(o, v, s, T=float)\n y = SparseMatrixNNZ(b)",
            "of which there may be 65,536",
        ),
    ],
)
def test_what_fits_no_matrix(nodes: str, message: str) -> None:
    graph = parse(ONE + "\n".join("    " + line.strip() for line in nodes.split("\n")))
    with pytest.raises(PocketgraphError, match=message):
        Session(graph).run("y", {})


@pytest.mark.parametrize("engine", ["reference", None])
def test_conjugates_of_matrices(engine: str | None) -> None:
    graph = parse("""
        x = Placeholder(dtype=complex64, shape=[2,2])
        places = Const(int64 [[0, 1], [1, 0]])
        matrix = DenseToCSRSparseMatrix(x, places, T=complex64)
        turned = Conj(matrix, T=variant)
        dense = CSRSparseMatrixToDense(turned, type=complex64)
    """)
    x = np.array([[1, 2 + 3j], [4 - 5j, 6]], np.complex64)
    with Session(graph, engine=engine) as session:
        assert session.run("dense", {"x": x})[0].tolist() == [[0, 2 - 3j], [4 + 5j, 0]]
