"""Linear algebra on batches of matrices: inverses, determinants, factorisations, solutions."""

from __future__ import annotations

import numpy as np

from pocketgraph.kernels.arrays import Array, reserve
from pocketgraph.kernels.math.matrix_product import adjoint_of
from pocketgraph.kernels.registry import kernel


def square_matrices(x: Array) -> Array:
    """``x`` in double precision, once it is sure to hold square matrices.

    Raises:
        ValueError: it does not.
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"Input matrix must be square, its shape is {list(x.shape)}")
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


@kernel("Cholesky", "BatchCholesky")
def cholesky(input: Array) -> Array:
    """The lower triangular L with L L* = input; only the lower triangle of the input counts.

    Raises:
        ValueError: the input is not positive definite.
    """
    wide = square_matrices(input)
    lower = np.tril(wide)
    whole = lower + adjoint_of(np.tril(wide, -1))
    try:
        return np.linalg.cholesky(whole).astype(input.dtype)
    except np.linalg.LinAlgError as error:
        raise ValueError("Cholesky decomposition was not successful. The input might not be valid.") from error


@kernel("MatrixInverse", "BatchMatrixInverse")
def matrix_inverse(input: Array, *, adjoint: bool = False) -> Array:
    wide = square_matrices(input)
    try:
        return np.linalg.inv(adjoint_of(wide) if adjoint else wide).astype(input.dtype)
    except np.linalg.LinAlgError as error:
        raise ValueError("Input is not invertible.") from error


@kernel("MatrixDeterminant", "BatchMatrixDeterminant")
def matrix_determinant(input: Array) -> Array:
    return np.asarray(np.linalg.det(square_matrices(input))).astype(input.dtype)


@kernel("LogMatrixDeterminant")
def log_matrix_determinant(input: Array) -> tuple[Array, Array]:
    """(sign, log |determinant|)."""
    sign, logarithm = np.linalg.slogdet(square_matrices(input))
    return np.asarray(sign).astype(input.dtype), np.asarray(logarithm).astype(input.dtype)


@kernel("MatrixSolve", "BatchMatrixSolve")
def matrix_solve(matrix: Array, rhs: Array, *, adjoint: bool = False) -> Array:
    return solved(square_matrices(matrix), rhs, adjoint=adjoint)


def solved(wide: Array, rhs: Array, *, adjoint: bool = False) -> Array:
    """x of A x = rhs in the type of ``rhs``, for matrices in double precision.

    Raises:
        ValueError: there is none.
    """
    try:
        return np.linalg.solve(adjoint_of(wide) if adjoint else wide, rhs.astype(wide.dtype)).astype(rhs.dtype)
    except np.linalg.LinAlgError as error:
        raise ValueError("Input matrix is not invertible.") from error


@kernel("MatrixTriangularSolve", "BatchMatrixTriangularSolve")
def matrix_triangular_solve(matrix: Array, rhs: Array, *, lower: bool = True, adjoint: bool = False) -> Array:
    wide = square_matrices(matrix)
    return matrix_solve(np.tril(wide) if lower else np.triu(wide), rhs, adjoint=adjoint)


@kernel("MatrixSolveLs", "BatchMatrixSolveLs")
def matrix_solve_ls(matrix: Array, rhs: Array, l2_regularizer: Array, *, fast: bool = True) -> Array:
    """The least squares solution, regularised when fast."""
    kind = np.complex128 if matrix.dtype.kind == "c" else np.float64
    if matrix.ndim < 2 or matrix.shape[:-1] != rhs.shape[:-1] or matrix.ndim != rhs.ndim:
        raise ValueError(f"a matrix {list(matrix.shape)} and a right side {list(rhs.shape)} do not fit")
    if not float(l2_regularizer) >= 0:
        raise ValueError(f"l2_regularizer must be >= 0, not {float(l2_regularizer)}")
    wide, right = matrix.astype(kind), rhs.astype(kind)
    if not fast:
        endless = np.asarray(~np.isfinite(wide).all(axis=(-2, -1)))  # on which the decomposition may go on for ever
        found = np.linalg.pinv(np.where(endless[..., None, None], 0, wide)) @ right
        return np.asarray(np.where(endless[..., None, None], np.nan, found)).astype(rhs.dtype)
    turned = adjoint_of(wide)
    weight = float(l2_regularizer)
    if wide.shape[-2] >= wide.shape[-1]:
        gram = turned @ wide + weight * np.eye(wide.shape[-1])
        return np.linalg.solve(gram, turned @ right).astype(rhs.dtype)
    gram = wide @ turned + weight * np.eye(wide.shape[-2])
    return np.asarray(turned @ np.linalg.solve(gram, right)).astype(rhs.dtype)


@kernel("Svd", "BatchSvd")
def svd(input: Array, *, compute_uv: bool = True, full_matrices: bool = False) -> tuple[Array, Array, Array]:
    """(singular values, u, v), input = u diag(s) v*; the signs of the vectors are free. Of a matrix that holds what is
    not finite, all three are NaN."""
    wide = input.astype(np.complex128 if input.dtype.kind == "c" else np.float64)
    endless = ~np.isfinite(wide).all(axis=(-2, -1))
    if endless.any():
        wide[endless] = 0
    nan = input.dtype.type(np.nan)

    def marked(found: Array) -> Array:
        found = found.astype(input.dtype)
        found[endless] = nan
        return found

    if not compute_uv:
        values = np.linalg.svd(wide, compute_uv=False)
        none = np.zeros(0, dtype=input.dtype)  # as TensorFlow infers; its kernel leaves a scalar of memory as it was
        return marked(values), none, none
    if full_matrices:
        reserve((*wide.shape[:-1], wide.shape[-2]), wide.dtype)
        reserve((*wide.shape[:-2], wide.shape[-1], wide.shape[-1]), wide.dtype)
    u, values, v = np.linalg.svd(wide, full_matrices=full_matrices)
    return marked(values), marked(u), marked(adjoint_of(v))


@kernel("Qr")
def qr(input: Array, *, full_matrices: bool = False) -> tuple[Array, Array]:
    wide = input.astype(np.complex128 if input.dtype.kind == "c" else np.float64)
    q, r = np.linalg.qr(wide, mode="complete" if full_matrices else "reduced")
    return q.astype(input.dtype), r.astype(input.dtype)


@kernel("SelfAdjointEigV2", "BatchSelfAdjointEigV2")
def self_adjoint_eig_v2(input: Array, *, compute_v: bool = True) -> tuple[Array, Array]:
    """(eigenvalues, smallest first, eigenvectors); the signs of the vectors are free."""
    wide = square_matrices(input)
    if not compute_v:
        return np.linalg.eigvalsh(wide).astype(input.dtype), np.zeros(0, dtype=input.dtype)
    values, vectors = np.linalg.eigh(wide)
    return values.astype(input.dtype), vectors.astype(input.dtype)
