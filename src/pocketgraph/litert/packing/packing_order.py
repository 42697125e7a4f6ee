"""The order in which XNNPACK's kernels read weights, as this processor's were seen to: blocks of columns.

Weights are a matrix here: a column for each output channel, a row for each element of the window, as TensorFlow keeps
them. A block is some columns: their biases, then row by row their weights. The last block is filled up.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

import numpy as np

from pocketgraph.litert.constant import Array
from pocketgraph.litert.host import is_x86

WIDTHS = (4, 8, 16, 32, 64)  # columns of a block
ROWS_TOGETHER = 64  # that are multiplied at a time


class PackingOrder(NamedTuple):
    """How weights are packed.

    Attributes:
        width: columns of a block.
        turned: whether the rows of a window come column by column.
    """

    width: int
    turned: bool = False

    def size(self, rows: int, columns: int) -> int:
        """Bytes that packed weights take, filled up to what XNNPACK allocates at once (XNN_ALLOCATION_ALIGNMENT)."""
        step = 64 if is_x86() else 16
        return -(-(rows + 1) * self.blocks(columns) * self.width * 4 // step) * step

    def blocks(self, columns: int) -> int:
        """How many blocks so many columns are."""
        return -(-columns // self.width)

    def pack(self, matrix: Array, bias: Array | None, factors: Array | None, into: Array) -> None:
        """Packs columns that begin a block.

        Args:
            matrix: float32, rows by columns.
            bias: of each column; None for zeros.
            factors: what each column is multiplied by; None for 1.
            into: room for whole blocks, in one dimension.
        """
        rows, columns = matrix.shape
        width, whole = self.width, columns // self.width
        blocks = into[: self.blocks(columns) * (rows + 1) * width].reshape(-1, rows + 1, width)
        if whole:
            end = whole * width
            _fill(
                blocks[:whole],
                matrix[:, :end].reshape(rows, whole, width).transpose(1, 0, 2),
                None if bias is None else bias[:end].reshape(whole, width),
                None if factors is None else factors[:end].reshape(whole, 1, width),
            )
        if whole < len(blocks):
            rest = columns - whole * width
            blocks[whole, :, rest:] = 0
            _fill(
                blocks[whole:, :, :rest],
                matrix[None, :, whole * width :],
                None if bias is None else bias[None, whole * width :],
                None if factors is None else factors[None, None, whole * width :],
            )
        into[blocks.size :] = 0


def _fill(target: Array, source: Array, bias: Array | None, factors: Array | None) -> None:
    """Writes blocks (blocks, rows + 1, columns)."""
    target[:, 0] = 0 if bias is None else bias
    weights = target[:, 1:]
    count, rows, width = weights.shape
    if width < target.strides[1] // target.itemsize:  # a block that is not full
        np.multiply(source, 1 if factors is None else factors, out=weights)
        return
    if source.strides[-1] == source.itemsize:  # rows of a block are moved whole
        moved = np.dtype((np.void, width * source.itemsize))
        np.copyto(weights.view(moved), source.view(moved))
    else:
        np.copyto(weights, source)
    if factors is not None:
        together = gcd(rows, ROWS_TOGETHER)
        several = weights.reshape(count, rows // together, together * width)  # no copy: blocks are whole
        repeated = np.empty((count, together, width), factors.dtype)
        repeated[:] = factors.reshape(count, 1, width)
        np.multiply(several, repeated.reshape(count, 1, together * width), out=several)


def order_of(packed: Array, matrix: Array, bias: Array | None, window: tuple[int, int] | None) -> PackingOrder | None:
    """In which order weights were packed whose elements all differ; None where it is another one than are known.

    Args:
        packed: float32, in one dimension.
        matrix, bias: the weights.
        window: the rows and columns of a window whose elements may have been turned.
    """
    rows, columns = matrix.shape
    for turned in (False, True) if window is not None else (False,):
        given = matrix if not turned or window is None else turned_rows(matrix, window)
        for width in WIDTHS:
            order = PackingOrder(width, turned)
            if order.size(rows, columns) != packed.nbytes or packed[width] != given[0, 0]:
                continue
            expected = np.empty(packed.size, np.float32)
            order.pack(given, bias, None, expected)
            meant = np.zeros(packed.size, np.float32)  # what fills a block up is whatever was there
            order.pack(np.ones_like(given), np.ones(columns, np.float32), None, meant)
            if np.array_equal(packed[meant != 0], expected[meant != 0]):
                return order
    return None


def turned_rows(matrix: Array, window: tuple[int, int]) -> Array:
    """A matrix whose rows, those of a window, come column by column."""
    columns = matrix.shape[1]
    turned: Array = matrix.reshape(*window, columns).transpose(1, 0, 2).reshape(-1, columns)
    return turned
