"""More linear algebra: other decompositions, functions of matrices, systems with few diagonals, Cholesky's gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import INT32
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.math.linear_algebra import solved, square_matrices
from pocketgraph.kernels.math.matrix_product import adjoint_of
from pocketgraph.kernels.registry import kernel

ROUNDED = 1e-13  # share of the largest element below which an eigenvalue's imaginary part is rounding
MOST_ROOTS = 60  # before a logarithm's series
SMALL = 0.25  # distance from the unit matrix at which a logarithm's series is taken
LOG_POINTS = 12


@kernel("SelfAdjointEig", "BatchSelfAdjointEig")
def self_adjoint_eig(input: Array) -> Array:
    """(…, n + 1, n): the eigenvalues, smallest first, above the eigenvectors, whose signs are free."""
    values, vectors = np.linalg.eigh(square_matrices(input))
    return np.concatenate([values[..., None, :], vectors], axis=-2).astype(input.dtype)


@kernel("Eig")
def eig(input: Array, *, Tout: DType, compute_v: bool = True) -> tuple[Array, Array]:
    """(eigenvalues, eigenvectors of length 1), in the order that LAPACK finds them in; their phases are free.

    Raises:
        ValueError: ``Tout`` is not the complex type of the input's precision.
    """
    made = np.result_type(input.dtype, np.complex64)
    if made != Tout.numpy:
        raise ValueError(f"Invalid output dtype: of {input.dtype} it is {made}, not {Tout.numpy}")
    values, vectors = np.linalg.eig(square_matrices(input))
    return values.astype(Tout.numpy), vectors.astype(Tout.numpy) if compute_v else np.zeros(0, Tout.numpy)


@kernel("Lu")
def lu(input: Array, *, output_idx_type: DType = INT32) -> tuple[Array, Array]:
    """(L below the diagonal and U on and above it, the order of the rows), the largest pivot taken in each column.

    Raises:
        ValueError: the matrix is singular.
    """
    work = square_matrices(input).copy()
    size = work.shape[-1]
    flat = work.reshape(math.prod(work.shape[:-2]), size, size)
    orders = np.tile(np.arange(size), (flat.shape[0], 1))
    for matrix, order in zip(flat, orders, strict=True):
        for column in range(size):
            best = column + int(np.argmax(np.abs(matrix[column:, column])))
            if matrix[best, column] == 0:
                raise ValueError("Input is not invertible.")
            matrix[[column, best]] = matrix[[best, column]]
            order[[column, best]] = order[[best, column]]
            matrix[column + 1 :, column] /= matrix[column, column]
            matrix[column + 1 :, column + 1 :] -= np.outer(matrix[column + 1 :, column], matrix[column, column + 1 :])
    places = orders.reshape(*input.shape[:-2], size).astype(output_idx_type.numpy)
    return flat.reshape(input.shape).astype(input.dtype), places


@kernel("CholeskyGrad", "BatchCholeskyGrad")
def cholesky_grad(l: Array, grad: Array) -> Array:  # noqa: E741 — the op's own name
    """The gradient by A of A = L L* (Murray, Differentiation of the Cholesky decomposition, 2016): symmetric."""
    if l.shape != grad.shape:
        raise ValueError(f"All input tensors must have the same rank: {list(l.shape)} and {list(grad.shape)}")
    lower, given = np.tril(square_matrices(l)), np.tril(square_matrices(grad))
    inner = np.tril(adjoint_of(lower) @ given)
    inner = inner - 0.5 * np.asarray(inner * np.eye(inner.shape[-1]))
    back = np.linalg.inv(lower)
    found = adjoint_of(back) @ inner @ back
    return np.asarray((0.5 * (found + adjoint_of(found))).astype(l.dtype))


@kernel("MatrixExponential")
def matrix_exponential(input: Array) -> Array:
    """By Taylor's series of a matrix halved until it is small, then squared as often."""
    wide = square_matrices(input)
    if not wide.size:
        return np.asarray(input.copy())
    norm = float(np.abs(wide).sum(axis=-1).max())
    if not np.isfinite(norm):
        return np.full_like(input, np.nan)
    halvings = max(0, int(np.ceil(np.log2(norm / SMALL)))) if norm > SMALL else 0
    small = wide / 2.0**halvings
    term = total = np.broadcast_to(np.eye(wide.shape[-1], dtype=wide.dtype), wide.shape)
    for k in range(1, 20):
        term = term @ small / k
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return np.asarray(total).astype(input.dtype)


def _schur(x: Array) -> tuple[Array, Array]:
    """Unitary matrices and upper triangular ones, ``unitary @ triangular @ adjoint(unitary)`` of which is ``x``; NaN
    where ``x`` is not finite. One eigenvector after the other is split off, which holds for defective matrices too.
    Eigenvalues of matrices of real numbers that are real but for rounding are so."""
    size = x.shape[-1]
    finite = np.isfinite(x).all(axis=(-2, -1), keepdims=True)
    triangular = np.where(finite, x, 0).astype(np.complex128)
    unitary = np.broadcast_to(np.eye(size, dtype=np.complex128), x.shape).copy()
    for row in range(size - 1):
        block = triangular[..., row:, row:]
        one = np.eye(size - row)
        basis = np.concatenate([_eigenvector(block), one + 0 * block], axis=-1)
        turned = np.linalg.qr(basis)[0]
        triangular[..., row:, row:] = adjoint_of(turned) @ block @ turned
        triangular[..., :row, row:] = triangular[..., :row, row:] @ turned
        unitary[..., row:] = unitary[..., row:] @ turned
    bound = ROUNDED * np.abs(triangular).max(axis=(-2, -1), keepdims=True)
    rounded = np.eye(size, dtype=bool) & (x.imag == 0).all(axis=(-2, -1), keepdims=True)
    triangular.imag[rounded & (np.abs(triangular.imag) <= bound)] = 0
    return unitary, np.where(finite, np.triu(triangular), np.nan)


def _eigenvector(x: Array) -> Array:
    """A column for each matrix. LAPACK's own scales the matrix before, and is wrong where elements are rounding."""
    value = np.linalg.eigvals(x)[..., :1, None]
    for _ in range(2):  # the second time for an eigenvalue that scaling put off
        vector = adjoint_of(np.linalg.svd(x - value * np.eye(x.shape[-1]))[2])[..., -1:]
        value = adjoint_of(vector) @ x @ vector
    return np.asarray(vector)


def _triangular_root(x: Array) -> Array:
    """The principal square root of upper triangular matrices (Björck and Hammarling, 1983)."""
    root = np.zeros_like(x)
    for column in range(x.shape[-1]):
        root[..., column, column] = np.sqrt(x[..., column, column])
        for row in reversed(range(column)):
            between = slice(row + 1, column)
            inner = (root[..., row, between] * root[..., between, column]).sum(axis=-1)
            both = root[..., row, row] + root[..., column, column]
            root[..., row, column] = (x[..., row, column] - inner) / both
    return root


def _back(function: Array, unitary: Array, like: Array) -> Array:
    """A function of the triangular matrices as one of the matrices that they were made of."""
    result = unitary @ function @ adjoint_of(unitary)
    return np.asarray(result if like.dtype.kind == "c" else result.real).astype(like.dtype)


@kernel("MatrixSquareRoot")
def matrix_square_root(input: Array) -> Array:
    """The principal square root; NaN where there is none, as of a real matrix with an eigenvalue below 0."""
    wide = square_matrices(input)
    if not input.size:
        return np.asarray(input.copy())
    unitary, triangular = _schur(wide)
    root = _back(_triangular_root(triangular), unitary, input)
    if input.dtype.kind == "c":
        return root
    values = np.linalg.eigvals(np.where(np.isfinite(wide), wide, 0))
    no_root = ((values.real < 0) & (values.imag == 0)).any(axis=-1)
    return np.asarray(np.where(no_root[..., None, None], np.asarray(np.nan, input.dtype), root))


@kernel("MatrixLogarithm")
def matrix_logarithm(input: Array) -> Array:
    """The principal logarithm: roots are taken until the matrix is near 1, where an integral over Gauss' points has it
    (Higham, Functions of Matrices, 2008, 11.4). NaN where there is none, as of a singular matrix."""
    wide = square_matrices(input)
    if not input.size:
        return np.asarray(input.copy())
    unitary, work = _schur(wide)
    singular = (np.diagonal(work, axis1=-2, axis2=-1) == 0).any(axis=-1)
    one, doublings = np.eye(work.shape[-1]), 0
    work = np.where(singular[..., None, None], one, work)
    while float(np.nanmax(np.abs(work - one), initial=0)) > SMALL and doublings < MOST_ROOTS:
        work, doublings = _triangular_root(work), doublings + 1
    points, weights = np.polynomial.legendre.leggauss(LOG_POINTS)
    away = work - one
    total: Any = 0
    for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
        total = total + weight * np.linalg.solve(one + point * away, away)
    result = _back(np.asarray(total * 2.0**doublings), unitary, input)
    return np.asarray(np.where(singular[..., None, None], np.asarray(np.nan * (1 + 1j), input.dtype), result))


@kernel("TridiagonalMatMul")
def tridiagonal_mat_mul(superdiag: Array, maindiag: Array, subdiag: Array, rhs: Array) -> Array:
    """rhs (…, m, n) times the matrix with these diagonals (…, 1, m); the last number of the upper and the first of the
    lower one lie outside."""
    up, main, down = (np.swapaxes(d, -1, -2) for d in (superdiag, maindiag, subdiag))
    wanted = (*rhs.shape[:-2], 1, rhs.shape[-2])
    if any(d.shape != wanted for d in (superdiag, maindiag, subdiag)):
        raise ValueError(f"diagonals of {main.shape[-2]} for a right side of shape {list(rhs.shape)}")
    result = main * rhs
    result[..., :-1, :] += up[..., :-1, :] * rhs[..., 1:, :]
    result[..., 1:, :] += down[..., 1:, :] * rhs[..., :-1, :]
    return np.asarray(result)


@kernel("TridiagonalSolve")
def tridiagonal_solve(diagonals: Array, rhs: Array) -> Array:
    """x of A x = rhs (…, m, n), for A by its upper, main and lower diagonal (…, 3, m).

    Raises:
        ValueError: the matrix is singular.
    """
    if (
        diagonals.ndim != rhs.ndim
        or diagonals.ndim < 2
        or diagonals.shape[-2] != 3
        or diagonals.shape[-1] != rhs.shape[-2]
    ):
        raise ValueError(f"diagonals {list(diagonals.shape)} for a right side of shape {list(rhs.shape)}")
    size = rhs.shape[-2]
    kind = np.complex128 if rhs.dtype.kind == "c" else np.float64
    whole = np.zeros((*diagonals.shape[:-2], size, size), kind)
    at = np.arange(size)
    whole[..., at, at] = diagonals[..., 1, :]
    whole[..., at[:-1], at[1:]] = diagonals[..., 0, :-1]
    whole[..., at[1:], at[:-1]] = diagonals[..., 2, 1:]
    return solved(whole, rhs)


@kernel("BandedTriangularSolve")
def banded_triangular_solve(matrix: Array, rhs: Array, *, lower: bool = True, adjoint: bool = False) -> Array:
    """x of A x = rhs, for a triangular A by its diagonals (…, bands, m): a lower one from the main one on downwards, an
    upper one from the uppermost down to the main one."""
    bands, size = matrix.shape[-2:]
    kind = np.complex128 if rhs.dtype.kind == "c" else np.float64
    whole = np.zeros((*matrix.shape[:-2], size, size), kind)
    for band in range(bands):
        distance = band if lower else bands - 1 - band
        at = np.arange(distance, size) if lower else np.arange(size - distance)
        rows, columns = (at, at - distance) if lower else (at, at + distance)
        whole[..., rows, columns] = matrix[..., band, at]
    return solved(whole, rhs, adjoint=adjoint)
