"""Winograd's method for convolutions whose weights are computed, as in training, and for their gradients.

LiteRT has no quick convolution with such weights, so that windows are laid out and multiplied (computed_weights.py).
Tiles take the place of that:

    plain       PAD, the tiles' transforms x products with the transformed weights, back to results
    turned      the same, by the weights transformed from their last element to the first
    by weights  the transforms of the images, turned x those of the gradient, back to weights

The gradient by the weights is the transpose of that, ``filter' ((data x)' (result' dy))`` where ' turns a matrix.
Many images are taken in groups, whose tiles fit the processor's cache.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.kernels.nn.tile_transforms import Tiling, tile_transform
from pocketgraph.litert.constant import Array
from pocketgraph.litert.cost_model import LAID_OUT_SHARE
from pocketgraph.litert.program import ComputedConvolution, Operation, Program, Value
from pocketgraph.litert.rewriting.tile_operations import TileOperations
from pocketgraph.litert.rewriting.winograd import best_tiling, images_together, is_used, time_in_groups

MOST_CONCATENATED = 4  # values that XNNPACK puts side by side at once


def convolve_computed_in_tiles(program: Program) -> None:
    """Convolutions with computed weights and gradients by weights go by Winograd's method where that is quicker.

    Where a value is infinite, what it makes NaN reaches as far as its tile, or the whole gradient by the weights.
    """
    operations: list[Operation] = []
    for operation in program.operations:
        tiling = computed_tiling_of(operation)
        made = _TiledComputed(operation, tiling).operations if tiling else [operation]
        if made:
            made[-1].outputs = operation.outputs
        operations += made
    program.operations = operations


def computed_tiling_of(operation: Operation) -> Tiling | None:
    """The tiles of what an operation ends; None where that stays as it is."""
    mark = operation.convolution
    if mark is None or not is_used() or mark.source.dtype is not FLOAT or mark.other.dtype is not FLOAT:
        return None
    by_weights = mark.kind == "by weights"
    result = mark.other if by_weights else operation.outputs[0]
    return best_tiling(result.shape, mark.window, mark.source.shape[3], LAID_OUT_SHARE, time_in_groups)


class _TiledComputed(TileOperations):
    """Makes the operations that compute a convolution with computed weights, or its gradient, in tiles."""

    def __init__(self, whole: Operation, tiling: Tiling) -> None:
        super().__init__(whole.outputs[0].name, whole.nodes, tiling)
        assert whole.convolution is not None
        self._mark: ComputedConvolution = whole.convolution
        self._shape = whole.outputs[0].shape
        height, width = self._mark.window
        self._by_row, self._by_column = tile_transform(tiling.rows, height), tile_transform(tiling.columns, width)
        if self._mark.kind == "by weights":
            self._write_gradient()
        else:
            self._write_convolution()

    def _groups(self, batch: int, depth: int, count: int) -> list[tuple[int, int]]:
        """The first image, and how many there are, of each group."""
        size = images_together(batch, self._mark.window, depth, count, self.tiling)
        return [(first, min(size, batch - first)) for first in range(0, batch, size)]

    def _write_convolution(self) -> None:
        mark, (batch, *sizes, count) = self._mark, self._shape
        weights = self._transformed_weights()
        results = []
        for first, images in self._groups(batch, mark.source.shape[3], count):
            lines = []
            for i, line in enumerate(self._tiles(first, images)):
                parts = [self._product(tiles, weights[i][j], count) for j, tiles in enumerate(line)]
                lines.append(self.combined(parts, self._by_column, is_last=False))
            across = [self.combined(list(parts), self._by_row, is_last=False) for parts in zip(*lines, strict=True)]
            results.append(self.joined(across, (images, *sizes, count)))
        self._side_by_side(results)

    def _write_gradient(self) -> None:
        mark, (height, width, depth, count) = self._mark, self._shape
        rows, columns = self._by_row.result.T, self._by_column.result.T
        sums: list[list[Value]] = []
        for first, images in self._groups(mark.source.shape[0], depth, count):
            gradient = self.padded(self._images(mark.other, first, images), (0, 0), (1, 1))
            products: list[Value] = []
            for line, slopes in zip(self._tiles(first, images), self.transformed(gradient, rows, 0), strict=True):
                for tiles, slope in zip(line, self.transformed(slopes, columns, 1), strict=True):
                    places = tiles.size // depth
                    left, right = self.reshaped(tiles, (places, depth)), self.reshaped(slope, (places, count))
                    products.append(self._multiplied(left, right, (depth, count), adj_x=True))
            sums.append(products)
        totals = sums[0]
        for others in sums[1:]:
            totals = [
                self.add("ADD", [total, product], total.shape, {"activation": ""})
                for total, product in zip(totals, others, strict=True)
            ]
        whole = self._side_by_side([self.reshaped(total, (1, depth * count)) for total in totals])
        back = self.constant("back", self._both_filters().T)
        flat = self._multiplied(back, whole, (height * width, depth * count))
        self.reshaped(flat, self._shape)

    def _tiles(self, first: int, images: int) -> list[list[Value]]:
        """The transformed tiles of some images, by rows, then columns, of points."""
        source = self.padded(self._images(self._mark.source, first, images), self._mark.before, self._mark.window)
        lines = self.transformed(source, self._by_row.data, 0)
        return [self.transformed(line, self._by_column.data, 1) for line in lines]

    def _images(self, value: Value, first: int, images: int) -> Value:
        if images == value.shape[0]:
            return value
        return self.cut(value, [first, 0, 0, 0], (images, *value.shape[1:]))

    def _both_filters(self) -> Array:
        """float32 (points, elements of the window): the transform of the weights along both axes."""
        return np.kron(self._by_row.filter, self._by_column.filter).astype(np.float32)

    def _transformed_weights(self) -> list[list[Value]]:
        """(channels in, out) of the window, or (out, in) where it is turned, by rows and columns of points."""
        height, width, depth, count = self._mark.other.shape
        both = self._both_filters()
        if self._mark.kind == "turned":
            both = np.ascontiguousarray(both[:, ::-1])
        flat = self.reshaped(self._mark.other, (height * width, depth * count))
        made = self._multiplied(self.constant("weights", both), flat, (len(both), depth * count))
        columns = len(self._by_column.data)
        parts = [
            self.reshaped(self.cut(made, [point, 0], (1, depth * count)), (depth, count)) for point in range(len(both))
        ]
        return [parts[start : start + columns] for start in range(0, len(parts), columns)]

    def _product(self, tiles: Value, weights: Value, count: int) -> Value:
        """The channels of each tile's point, times the weights."""
        *places, depth = tiles.shape
        flat = self.reshaped(tiles, (tiles.size // depth, depth))
        made = self._multiplied(flat, weights, (flat.shape[0], count), adj_y=self._mark.kind == "turned")
        return self.reshaped(made, (*places, count))

    def _multiplied(
        self, left: Value, right: Value, shape: tuple[int, ...], *, adj_x: bool = False, adj_y: bool = False
    ) -> Value:
        return self.add("BATCH_MATMUL", [left, right], shape, {"adj_x": adj_x, "adj_y": adj_y})

    def _side_by_side(self, parts: list[Value]) -> Value:
        """Along the first axis, a few at once."""
        while len(parts) > 1:
            parts = [
                self.concatenated(parts[start : start + MOST_CONCATENATED], 0)
                for start in range(0, len(parts), MOST_CONCATENATED)
            ]
        return parts[0]
