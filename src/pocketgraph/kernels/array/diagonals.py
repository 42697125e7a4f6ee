"""Matrices' diagonals and bands: made, read, replaced, cut."""

from __future__ import annotations

import numpy as np

from pocketgraph.kernels.arrays import Array, integer, ints, reserve
from pocketgraph.kernels.registry import kernel


def _span(k: Array) -> tuple[int, int]:
    """(lowest, highest) diagonal: 0 the main one, above it positive."""
    values = ints(k)
    if len(values) not in (1, 2) or values[0] > values[-1]:
        raise ValueError(f"k must be one diagonal, or a lower and an upper one, not {list(values)}")
    return values[0], values[-1]


def _length(rows: int, columns: int, diagonal: int) -> int:
    return max(0, min(rows + min(diagonal, 0), columns - max(diagonal, 0)))


def _start(diagonal: int, length: int, width: int, align: str) -> int:
    """Where a diagonal begins in its row of a compact band: superdiagonals go by the first word of ``align``."""
    above, _, below = align.partition("_")
    return width - length if (above if diagonal >= 0 else below) == "RIGHT" else 0


def _places(rows: int, columns: int, low: int, high: int, align: str) -> list[tuple[int, int, Array, Array]]:
    """For each diagonal, highest first: its row in the band, where it begins there, and its matrix indices."""
    lengths = {d: _length(rows, columns, d) for d in range(low, high + 1)}
    width = max(lengths.values(), default=0)
    found = []
    for row, diagonal in enumerate(range(high, low - 1, -1)):
        steps = np.arange(lengths[diagonal])
        found.append(
            (
                row,
                _start(diagonal, lengths[diagonal], width, align),
                steps + max(-diagonal, 0),
                steps + max(diagonal, 0),
            )
        )
    return found


def _checked(rows: int, columns: int, low: int, high: int) -> None:
    if rows and columns and not (-rows < low < columns and -rows < high < columns):
        raise ValueError(f"diagonals {low}..{high} lie outside a matrix of {rows} x {columns}")


@kernel("MatrixDiagPartV2")
def matrix_diag_part_v2(input: Array, k: Array, padding_value: Array) -> Array:
    return matrix_diag_part_v3(input, k, padding_value, align="LEFT_LEFT")


@kernel("MatrixDiagPartV3")
def matrix_diag_part_v3(input: Array, k: Array, padding_value: Array, *, align: str = "RIGHT_LEFT") -> Array:
    """The diagonals of each matrix; several as the rows of a band, highest first, filled up with ``padding_value``."""
    low, high = _span(k)
    rows, columns = input.shape[-2:]
    _checked(rows, columns, low, high)
    width = max((_length(rows, columns, d) for d in range(low, high + 1)), default=0)
    band = np.empty(reserve((*input.shape[:-2], high - low + 1, width), input.dtype), dtype=input.dtype)
    band[...] = padding_value
    for row, start, down, along in _places(rows, columns, low, high, align):
        band[..., row, start : start + down.size] = input[..., down, along]
    return band[..., 0, :] if low == high else band


@kernel("MatrixDiagPart", "BatchMatrixDiagPart")
def matrix_diag_part(input: Array) -> Array:
    return matrix_diag_part_v3(input, np.array(0), np.zeros((), input.dtype))


def _with_diagonals(base: Array, diagonal: Array, low: int, high: int, align: str, checked: bool = True) -> Array:
    rows, columns = base.shape[-2:]
    if checked:
        _checked(rows, columns, low, high)
    band = diagonal[..., None, :] if low == high else diagonal
    width = max((_length(rows, columns, d) for d in range(low, high + 1)), default=0)
    if band.shape != (*base.shape[:-2], high - low + 1, width):
        raise ValueError(f"diagonals of shape {list(diagonal.shape)} do not fit {list(base.shape)}")
    for row, start, down, along in _places(rows, columns, low, high, align):
        base[..., down, along] = band[..., row, start : start + down.size]
    return base


kernel("MatrixSetDiagV2")(lambda input, diagonal, k: _with_diagonals(input.copy(), diagonal, *_span(k), "LEFT_LEFT"))


@kernel("MatrixSetDiagV3")
def matrix_set_diag_v3(input: Array, diagonal: Array, k: Array, *, align: str = "RIGHT_LEFT") -> Array:
    return _with_diagonals(input.copy(), diagonal, *_span(k), align)


@kernel("MatrixSetDiag", "BatchMatrixSetDiag")
def matrix_set_diag(input: Array, diagonal: Array) -> Array:
    return _with_diagonals(input.copy(), diagonal, 0, 0, "LEFT_LEFT")


@kernel("MatrixDiagV2")
def matrix_diag_v2(diagonal: Array, k: Array, num_rows: Array, num_cols: Array, padding_value: Array) -> Array:
    return matrix_diag_v3(diagonal, k, num_rows, num_cols, padding_value, align="LEFT_LEFT")


@kernel("MatrixDiagV3")
def matrix_diag_v3(
    diagonal: Array, k: Array, num_rows: Array, num_cols: Array, padding_value: Array, *, align: str = "RIGHT_LEFT"
) -> Array:
    """Matrices with these diagonals; a size of -1 becomes the smallest that fits, square where nothing says more."""
    low, high = _span(k)
    rows, columns = integer(num_rows), integer(num_cols)
    width = diagonal.shape[-1]
    least_rows, least_columns = width - min(high, 0), width + max(low, 0)
    if rows == -1 and columns == -1:
        rows = columns = max(least_rows, least_columns)
    elif rows == -1:
        rows = least_rows
    elif columns == -1:
        columns = least_columns
    outer = diagonal.shape[:-1] if low == high else diagonal.shape[:-2]
    base = np.empty(reserve((*outer, rows, columns), diagonal.dtype), dtype=diagonal.dtype)
    base[...] = padding_value
    return _with_diagonals(base, diagonal, low, high, align, checked=False)


@kernel("MatrixDiag", "BatchMatrixDiag")
def matrix_diag(diagonal: Array) -> Array:
    free = np.array(-1)
    return matrix_diag_v3(diagonal, np.array(0), free, free, np.zeros((), diagonal.dtype))


@kernel("MatrixBandPart", "BatchMatrixBandPart")
def matrix_band_part(input: Array, num_lower: Array, num_upper: Array) -> Array:
    """What lies further from the main diagonal than said becomes 0; a negative number keeps that whole side."""
    lower, upper = integer(num_lower), integer(num_upper)
    if input.ndim < 2:
        raise ValueError(f"input must be at least 2-dim, received shape: {list(input.shape)}")
    for name, count, size in (("num_lower", lower, input.shape[-2]), ("num_upper", upper, input.shape[-1])):
        if count > size:
            raise ValueError(f"{name} must be negative or at most {size}, got: {count}")
    away = np.arange(input.shape[-1])[None, :] - np.arange(input.shape[-2])[:, None]
    kept = ((lower < 0) | (-away <= lower)) & ((upper < 0) | (away <= upper))
    return np.asarray(np.where(kept, input, np.zeros((), input.dtype)))


@kernel("Diag")
def diag(diagonal: Array) -> Array:
    """A tensor of twice the rank whose generalised diagonal this is."""
    result: Array = np.zeros(reserve((diagonal.size, diagonal.size), diagonal.dtype), dtype=diagonal.dtype)
    np.fill_diagonal(result, diagonal.ravel())
    return np.asarray(result.reshape(diagonal.shape * 2))


@kernel("DiagPart")
def diag_part(input: Array) -> Array:
    half = input.shape[: input.ndim // 2]
    if input.ndim % 2 or half != input.shape[input.ndim // 2 :]:
        raise ValueError(f"the two halves of the shape {list(input.shape)} differ")
    size = int(np.prod(half, dtype=np.int64))
    return np.asarray(np.array(np.diagonal(input.reshape(size, size))).reshape(half))
