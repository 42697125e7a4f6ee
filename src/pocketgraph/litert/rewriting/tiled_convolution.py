"""The operations that compute a convolution by Winograd's method; which ones, and in which tiles, says winograd.py."""

from __future__ import annotations

import numpy as np

from pocketgraph.kernels.nn.tile_transforms import BIAS_POINT, TileTransform, Tiling, tile_transform
from pocketgraph.litert.constant import Array
from pocketgraph.litert.program import Operation, Value
from pocketgraph.litert.rewriting.tile_operations import TileOperations


def transformed_weights(weights: Array, by_row: TileTransform, by_column: TileTransform) -> Array:
    """float32 (points of a tile's rows, of its columns, outputs, channels) of (outputs, rows, columns, channels).

    One product over the whole window: a window's elements are few, so that float32 loses nothing that counts.
    """
    count, height, width, depth = weights.shape
    both = np.kron(by_row.filter, by_column.filter).astype(np.float32)
    windows = np.ascontiguousarray(weights.transpose(1, 2, 0, 3)).reshape(height * width, -1)
    made: Array = np.matmul(both, windows).reshape(len(by_row.data), len(by_column.data), count, depth)
    return made


class TiledConvolution(TileOperations):
    """Makes the operations that compute a convolution in tiles."""

    def __init__(self, whole: Operation, tiling: Tiling) -> None:
        super().__init__(whole.outputs[0].name, whole.nodes, tiling, str(whole.options["activation"]))
        self._whole = whole
        self._write()

    def _write(self) -> None:
        source, weights, bias = self._whole.operands
        tiling, (result,) = self.tiling, self._whole.outputs
        count, height, width, _ = weights.shape
        before = ((height - 1) // 2, (width - 1) // 2) if self._whole.options["padding"] == "SAME" else (0, 0)
        by_row, by_column = tile_transform(tiling.rows, height), tile_transform(tiling.columns, width)
        filters = transformed_weights(weights.content.numpy(), by_row, by_column)
        no_bias = self.zeros(count)
        offset = self.constant("bias", bias.content.numpy().reshape(-1))
        # where there is no transform along an axis, its only point has the bias
        biased = min(BIAS_POINT, len(by_row.data) - 1), min(BIAS_POINT, len(by_column.data) - 1)
        lines = self.transformed(self.padded(source, before, (height, width)), by_row.data, 0)
        columns: list[list[Value]] = []
        for i, line in enumerate(lines):
            parts = []
            for j, tile in enumerate(self.transformed(line, by_column.data, 1)):
                parts.append(self._product(tile, filters[i, j], offset if (i, j) == biased else no_bias))
            columns.append(self.combined(parts, by_column, is_last=len(lines) == 1))
        across = [self.combined(list(parts), by_row, is_last=len(lines) > 1) for parts in zip(*columns, strict=True)]
        self.joined(across, result.shape)
        self.operations[-1].outputs = [result]

    def _product(self, tiles: Value, weights: Array, bias: Value) -> Value:
        """The channels of each tile's point, times (outputs, channels)."""
        count, depth = weights.shape
        operands = [tiles, self.constant("weights", weights.reshape(count, 1, 1, depth)), bias]
        options = {**self._whole.options, "padding": "VALID", "activation": ""}
        return self.add("CONV_2D", operands, (*tiles.shape[:3], count), options)
