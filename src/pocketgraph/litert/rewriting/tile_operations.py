"""Operations that put images into Winograd's tiles and their products back, whatever the products are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.kernels.nn.tile_transforms import TileTransform, Tiling
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.program import Operation, Value, sliding


class TileOperations:
    """Makes operations over tiles.

    Attributes:
        operations: what was made so far.
    """

    def __init__(self, name: str, nodes: tuple[str, ...], tiling: Tiling, activation: str = "") -> None:
        """``name`` and ``nodes`` are those of the result, ``activation`` what ends it."""
        self.operations: list[Operation] = []
        self.tiling = tiling
        self._name, self._nodes, self._activation = name, nodes, activation
        self._shared: dict[tuple[str, object], Value] = {}  # constants that several operations read

    def padded(self, source: Value, before: Sequence[int], taps: Sequence[int]) -> Value:
        """The source (NHWC) with ``before`` zeros in front of its rows and columns, filled up to whole tiles of windows
        of so many ``taps``."""
        tiling = self.tiling
        pairs, shape = [(0, 0)], [source.shape[0]]
        sizes = zip(source.shape[1:3], taps, before, tiling[:2], tiling[2:], strict=True)
        for size, length, zeros, tile, tiles in sizes:
            whole = tile * tiles + length - 1
            pairs.append((zeros, whole - size - zeros))
            shape.append(whole)
        pairs.append((0, 0))
        if not np.any(pairs):
            return source
        borders = self.constant("borders", np.array(pairs, np.int32))
        return self.add("PAD", [source, borders], (*shape, source.shape[3]), {})

    def transformed(self, source: Value, matrix: Array, axis: int) -> list[Value]:
        """For each row of the matrix (points, elements of a tile) its product with the tiles along an axis (0: rows,
        1: columns)."""
        if len(matrix) == 1:
            return [source]
        batch, *sizes, depth = source.shape
        step, tiles = self.tiling[axis], self.tiling[2 + axis]
        window, strides, shape = [1, 1], [1, 1], list(sizes)
        window[axis], strides[axis], shape[axis] = matrix.shape[1], step, tiles
        options = sliding(strides=strides, multiplier=1)
        made = []
        for number, row in enumerate(matrix):
            key = "transform", (axis, number, matrix.shape, depth)
            kernel = self._shared.get(key)
            if kernel is None:
                weights = np.broadcast_to(row.reshape(1, *window, 1), (1, *window, depth))
                kernel = self.constant("transform", weights.astype(np.float32))
                self._shared[key] = kernel
            operands = [source, kernel, self.zeros(depth)]
            made.append(self.add("DEPTHWISE_CONV_2D", operands, (batch, *shape, depth), options))
        return made

    def combined(self, parts: list[Value], transform: TileTransform, *, is_last: bool) -> list[Value]:
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
            value if factor == 1 else self.add("MUL", [value, self._scalar(factor)], value.shape, {"activation": ""})
            for value, factor in terms
        ]
        total = scaled[0]
        for number, value in enumerate(scaled[1:], 2):
            total = self._sum("ADD", total, value, activation if number == len(scaled) else "")
        return total

    def joined(self, across: list[list[Value]], shape: tuple[int, ...]) -> Value:
        """The tiles' results side by side, NHWC of this shape: ``across`` has for each column of a tile its rows."""
        tiling, (batch, rows, columns, count) = self.tiling, shape
        lines = []
        for line in zip(*across, strict=True):
            beside = self.concatenated(list(line), 3)
            lines.append(self.reshaped(beside, (batch * tiling.down, 1, 1, tiling.across * tiling.columns * count)))
        whole = self.concatenated(lines, 1)
        tiled = (batch, tiling.down * tiling.rows, tiling.across * tiling.columns, count)
        whole = self.reshaped(whole, tiled)
        return whole if tiled[1:3] == (rows, columns) else self.cut(whole, [0] * 4, shape)

    def cut(self, value: Value, begin: Sequence[int], shape: tuple[int, ...]) -> Value:
        """A piece of this shape."""
        bounds = [self.constant(name, np.array(sizes, np.int32)) for name, sizes in (("begin", begin), ("size", shape))]
        return self.add("SLICE", [value, *bounds], shape, {})

    def concatenated(self, parts: list[Value], axis: int) -> Value:
        """Values side by side."""
        if len(parts) == 1:
            return parts[0]
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        return self.add("CONCATENATION", list(parts), tuple(shape), {"axis": axis, "activation": ""})

    def reshaped(self, value: Value, shape: tuple[int, ...]) -> Value:
        """As many elements in another shape."""
        sizes = self.constant("shape", np.array(shape, np.int32))
        return self.add("RESHAPE", [value, sizes], shape, {"new_shape": shape})

    def _sum(self, code: str, one: Value, other: Value, activation: str = "") -> Value:
        return self.add(code, [one, other], one.shape, {"activation": activation})

    def zeros(self, count: int) -> Value:
        """As many zeros, the same value each time."""
        if ("zeros", count) not in self._shared:
            self._shared["zeros", count] = self.constant("zeros", np.zeros(count, np.float32))
        return self._shared["zeros", count]

    def _scalar(self, factor: float) -> Value:
        return self.constant("factor", np.array(factor, np.float32))

    def add(
        self, code: str, inputs: Sequence[Value | None], shape: tuple[int, ...], options: dict[str, object]
    ) -> Value:
        """The result of one more operation."""
        made = Value(f"{self._name}/tiles_{len(self.operations)}", FLOAT, shape)
        self.operations.append(Operation(code, list(inputs), [made], options, self._nodes))
        return made

    def constant(self, what: str, content: Array) -> Value:
        """A float32 or int32 constant."""
        constant = Constant.of(np.ascontiguousarray(content))
        name = f"{self._name}/{what}_{len(self.operations)}"
        return Value(name, FLOAT if content.dtype == np.float32 else INT32, constant.shape, constant)
