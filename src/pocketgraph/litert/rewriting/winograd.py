"""Wide convolutions by Winograd's method: fewer multiplications, in products of matrices.

A tile of 2 x 2 results of a 3x3 window takes 16 multiplications instead of 36, one of 4 x 4 takes 36 instead of 144.
XNNPACK's convolutions with larger windows moreover run at two thirds of the rate of its 1x1 ones (AVX-512, LiteRT 2.3):

    x ─CONV_2D 3x3
becomes
    x ─PAD┬ DEPTHWISE_CONV_2D 4x1, stride 2x1 ┬ DEPTHWISE_CONV_2D 1x4, stride 1x2 ─ CONV_2D 1x1 ┬ ADD, SUB, …
          ├ … (4 of them)                     ├ … (16 of them)                                  ├ …

The depthwise windows are the transform of the tiles, row by row, then column by column, the same in every channel.
Results differ from those of the plain convolution by rounding: by 3e-6 of the largest for tiles of 2 and
windows of 3, 1e-5 for windows of 5 and 7, 2e-5 for tiles of 4, under windows of 3 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.cost_model import (
    FEWEST_TILED_CHANNELS,
    LARGER_TILE_SHARE,
    MOVED_PER_MEGABYTE,
    ROWS_OF_A_PRODUCT,
    SMALL_OPERATION,
    TILED_ELEMENT,
    TILED_PRODUCT,
    TILED_SHARE,
    TILED_WEIGHT,
)
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.narrow_convolutions import has_wide_kernels
from pocketgraph.litert.rewriting.tile_transforms import BIAS_POINT, TileTransform, tile_transform

TILES = {1: (1,), 3: (2, 4), 5: (2, 4), 7: (2,)}
"""Results of a tile along an axis, for windows of so many elements; larger ones lose digits (7x7 by 4: 6e-5)."""


class Tiling(NamedTuple):
    """How results are cut into tiles.

    Attributes:
        rows, columns: of a tile.
        down, across: how many tiles there are of an image.
    """

    rows: int
    columns: int
    down: int
    across: int


def convolve_in_tiles(program: Program) -> None:
    """Convolutions with many channels are computed by Winograd's method where that is quicker.

    Where a value is infinite, what it makes NaN reaches as far as its tile.
    """
    if not is_used():
        return
    operations: list[Operation] = []
    for operation in program.operations:
        tiling = tiling_of(operation)
        operations += _Tiled(operation, tiling).operations if tiling else [operation]
    program.operations = operations


def is_used() -> bool:
    """Whether tiles are used on this processor; on others they were not measured."""
    return has_wide_kernels()


def tiling_of(operation: Operation) -> Tiling | None:
    """The tiles of a convolution; None where it stays as it is."""
    if operation.code != "CONV_2D" or len(operation.inputs) != 3:
        return None
    source, weights, bias = operation.inputs
    if source is None or weights is None or weights.constant is None or bias is None or bias.constant is None:
        return None
    if weights.dtype is not FLOAT or weights.quantization is not None or source.dtype is not FLOAT:
        return None
    if any(operation.options[key] != 1 for key in ("stride_h", "stride_w", "dilation_h", "dilation_w")):
        return None
    count, height, width, depth = weights.shape
    if depth != source.shape[3] or min(count, depth) < FEWEST_TILED_CHANNELS or height == width == 1:
        return None
    found: list[tuple[float, Tiling]] = []
    for rows, columns in product(TILES.get(height, ()), TILES.get(width, ())):
        if max(rows, columns) > 2 and 1 not in (height, width) and rows != columns:
            continue
        down, across = (
            -(-size // tile) for size, tile in zip(operation.outputs[0].shape[1:3], (rows, columns), strict=True)
        )
        tiling = Tiling(rows, columns, down, across)
        found.append((_time(operation, tiling) * (1 if max(rows, columns) <= 2 else 1 / LARGER_TILE_SHARE), tiling))
    if not found:
        return None
    best, tiling = min(found)
    direct = operation.outputs[0].size * height * width * depth
    return tiling if best <= TILED_SHARE * direct else None


def _time(operation: Operation, tiling: Tiling) -> float:
    """About how long it takes in tiles, in multiplications of a plain convolution."""
    source, weights, _ = operation.inputs
    assert source is not None
    assert weights is not None
    count, height, width, depth = weights.shape
    batch = source.shape[0]
    down, across = tiling.rows + height - 1, tiling.columns + width - 1  # elements of a tile of the source
    tiles, points = batch * tiling.down * tiling.across, down * across
    rows = -(-tiles // ROWS_OF_A_PRODUCT) * ROWS_OF_A_PRODUCT
    image = batch * (tiling.down * tiling.rows + height - 1) * (tiling.across * tiling.columns + width - 1)
    lines = batch * tiling.down * (tiling.across * tiling.columns + width - 1) * down * depth
    sums = 2 * down * across + 2 * tiling.columns * down + (across > 4) * 2 * points
    made = tiles * tiling.rows * tiling.columns * count
    moved = (
        image * depth + lines * (height > 1) + tiles * points * depth * (width > 1) + sums * tiles * count + 2 * made
    )
    each = TILED_ELEMENT + MOVED_PER_MEGABYTE * made * 4 / 1e6
    operations = down + 2 * points + sums + tiling.rows + 3
    return (
        TILED_PRODUCT * rows * points * count * depth
        + TILED_WEIGHT * points * count * depth
        + each * moved
        + SMALL_OPERATION * operations
    )


def transformed_weights(weights: Array, by_row: TileTransform, by_column: TileTransform) -> Array:
    """float32 (points of a tile's rows, of its columns, outputs, channels) of (outputs, rows, columns, channels).

    One product over the whole window: a window's elements are few, so that float32 loses nothing that counts.
    """
    count, height, width, depth = weights.shape
    both = np.kron(by_row.filter, by_column.filter).astype(np.float32)
    windows = np.ascontiguousarray(weights.transpose(1, 2, 0, 3)).reshape(height * width, -1)
    made: Array = np.matmul(both, windows).reshape(len(by_row.data), len(by_column.data), count, depth)
    return made


class _Tiled:
    """Makes the operations that compute a convolution in tiles."""

    def __init__(self, whole: Operation, tiling: Tiling) -> None:
        self.operations: list[Operation] = []
        self._whole, self._tiling = whole, tiling
        self._activation = str(whole.options["activation"])
        self._shared: dict[tuple[str, object], Value] = {}  # constants that several operations read
        self._write()

    def _write(self) -> None:
        source, weights, bias = self._whole.inputs
        assert source is not None
        assert weights is not None
        assert weights.constant is not None
        assert bias is not None
        assert bias.constant is not None
        tiling, (result,) = self._tiling, self._whole.outputs
        count, height, width, _ = weights.shape
        by_row, by_column = tile_transform(tiling.rows, height), tile_transform(tiling.columns, width)
        filters = transformed_weights(weights.constant.numpy(), by_row, by_column)
        no_bias = self._zeros(count)
        offset = self._constant("bias", bias.constant.numpy().reshape(-1))
        # where there is no transform along an axis, its only point has the bias
        biased = min(BIAS_POINT, len(by_row.data) - 1), min(BIAS_POINT, len(by_column.data) - 1)
        lines = self._transformed(self._padded(source, height, width), by_row, 0)
        columns: list[list[Value]] = []
        for i, line in enumerate(lines):
            parts = []
            for j, tile in enumerate(self._transformed(line, by_column, 1)):
                parts.append(self._product(tile, filters[i, j], offset if (i, j) == biased else no_bias))
            columns.append(self._combined(parts, by_column, is_last=len(lines) == 1))
        across = [self._combined(list(parts), by_row, is_last=len(lines) > 1) for parts in zip(*columns, strict=True)]
        self._joined(across, result)

    def _padded(self, source: Value, height: int, width: int) -> Value:
        """The source with the window's borders, filled up to whole tiles."""
        tiling = self._tiling
        same = self._whole.options["padding"] == "SAME"
        pairs, shape = [(0, 0)], [source.shape[0]]
        for size, taps, tile, tiles in zip(source.shape[1:3], (height, width), tiling[:2], tiling[2:], strict=True):
            before, whole = (taps - 1) // 2 if same else 0, tile * tiles + taps - 1
            pairs.append((before, whole - size - before))
            shape.append(whole)
        pairs.append((0, 0))
        if not np.any(pairs):
            return source
        borders = self._constant("borders", np.array(pairs, np.int32))
        return self._add("PAD", [source, borders], (*shape, source.shape[3]), {})

    def _transformed(self, source: Value, transform: TileTransform, axis: int) -> list[Value]:
        """For each point the tiles along an axis (0: rows, 1: columns), evaluated there."""
        if len(transform.data) == 1:
            return [source]
        batch, *sizes, depth = source.shape
        step, tiles = self._tiling[axis], self._tiling[2 + axis]
        window, strides, shape = [1, 1], [1, 1], list(sizes)
        window[axis], strides[axis], shape[axis] = len(transform.data), step, tiles
        options = {
            "padding": "VALID", "stride_h": strides[0], "stride_w": strides[1], "multiplier": 1,
            "dilation_h": 1, "dilation_w": 1, "activation": "",
        }  # fmt: skip
        made = []
        for number, row in enumerate(transform.data):
            kernel = self._shared.get(("transform", (axis, number)))
            if kernel is None:
                weights = np.broadcast_to(row.reshape(1, *window, 1), (1, *window, depth))
                kernel = self._constant("transform", weights.astype(np.float32))
                self._shared["transform", (axis, number)] = kernel
            operands = [source, kernel, self._zeros(depth)]
            made.append(self._add("DEPTHWISE_CONV_2D", operands, (batch, *shape, depth), options))
        return made

    def _product(self, tiles: Value, weights: Array, bias: Value) -> Value:
        """The channels of each tile's point, times (outputs, channels)."""
        count, depth = weights.shape
        operands = [tiles, self._constant("weights", weights.reshape(count, 1, 1, depth)), bias]
        options = {**self._whole.options, "padding": "VALID", "activation": ""}
        return self._add("CONV_2D", operands, (*tiles.shape[:3], count), options)

    def _combined(self, parts: list[Value], transform: TileTransform, *, is_last: bool) -> list[Value]:
        """The results along an axis, from the products at each point."""
        if len(parts) == 1:
            return parts
        # points of both signs share their sums (even powers) and differences (odd ones)
        even: list[tuple[Value, float]] = []
        odd: list[tuple[Value, float]] = []
        points = [float(point) for point in transform.points]
        for place, point in enumerate(points):
            opposite = points.index(-point) if -point in points else place
            if opposite > place:
                even.append((self._sum("ADD", parts[place], parts[opposite]), point))
                odd.append((self._sum("SUB", parts[place], parts[opposite]), point))
            elif opposite == place and point:
                even.append((parts[place], point))
                odd.append((parts[place], point))
        made = []
        for power in range(len(transform.result)):
            terms = [(value, point**power) for value, point in (odd if power % 2 else even)]
            if power == 0:
                terms.append((parts[0], 1.0))
            if power == len(transform.result) - 1:
                terms.append((parts[-1], 1.0))
            made.append(self._summed(terms, self._activation if is_last else ""))
        return made

    def _summed(self, terms: Sequence[tuple[Value, float]], activation: str) -> Value:
        scaled = [
            value if factor == 1 else self._add("MUL", [value, self._scalar(factor)], value.shape, {"activation": ""})
            for value, factor in terms
        ]
        total = scaled[0]
        for number, value in enumerate(scaled[1:], 2):
            total = self._sum("ADD", total, value, activation if number == len(scaled) else "")
        return total

    def _joined(self, across: list[list[Value]], result: Value) -> None:
        """Puts the tiles' results side by side: ``across`` has for each column of a tile its rows."""
        tiling, (batch, rows, columns, count) = self._tiling, result.shape
        lines = []
        for line in zip(*across, strict=True):
            beside = self._concatenated(list(line), 3)
            lines.append(self._reshaped(beside, (batch * tiling.down, 1, 1, tiling.across * tiling.columns * count)))
        whole = self._concatenated(lines, 1)
        shape = (batch, tiling.down * tiling.rows, tiling.across * tiling.columns, count)
        whole = self._reshaped(whole, shape)
        if shape[1:3] != (rows, columns):
            bounds = [
                self._constant(name, np.array(sizes, np.int32))
                for name, sizes in (("begin", [0] * 4), ("size", result.shape))
            ]
            self._add("SLICE", [whole, *bounds], result.shape, {})
        self.operations[-1].outputs = [result]

    def _concatenated(self, parts: list[Value], axis: int) -> Value:
        if len(parts) == 1:
            return parts[0]
        shape = list(parts[0].shape)
        shape[axis] *= len(parts)
        return self._add("CONCATENATION", list(parts), tuple(shape), {"axis": axis, "activation": ""})

    def _reshaped(self, value: Value, shape: tuple[int, ...]) -> Value:
        sizes = self._constant("shape", np.array(shape, np.int32))
        return self._add("RESHAPE", [value, sizes], shape, {"new_shape": shape})

    def _sum(self, code: str, one: Value, other: Value, activation: str = "") -> Value:
        return self._add(code, [one, other], one.shape, {"activation": activation})

    def _zeros(self, count: int) -> Value:
        if ("zeros", count) not in self._shared:
            self._shared["zeros", count] = self._constant("zeros", np.zeros(count, np.float32))
        return self._shared["zeros", count]

    def _scalar(self, factor: float) -> Value:
        return self._constant("factor", np.array(factor, np.float32))

    def _add(
        self, code: str, inputs: Sequence[Value | None], shape: tuple[int, ...], options: dict[str, object]
    ) -> Value:
        made = Value(f"{self._whole.outputs[0].name}/tiles_{len(self.operations)}", FLOAT, shape)
        self.operations.append(Operation(code, list(inputs), [made], options, self._whole.nodes))
        return made

    def _constant(self, what: str, content: Array) -> Value:
        constant = Constant.of(np.ascontiguousarray(content))
        name = f"{self._whole.outputs[0].name}/{what}_{len(self.operations)}"
        return Value(name, FLOAT if content.dtype == np.float32 else INT32, constant.shape, constant)
