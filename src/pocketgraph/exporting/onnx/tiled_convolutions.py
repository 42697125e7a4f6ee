"""Wide convolutions of an ONNX graph by Winograd's method, for OpenVINO.

The same arithmetic as for LiteRT (litert/rewriting/winograd.py), in the operators that OpenVINO computes fastest: one
product for all points of the tiles, and one for all results.

    x ─ Conv 3x3 ─ Add ─ Relu
becomes
    x ┬ Conv 6x1 of each channel, stride 4x1 ┬ Concat ┬ Conv 1x6, stride 1x4 ┬ Concat ─ Transpose ─ Reshape ─┐
      ├ … (6 of them)                        ┘        ├ … (6 of them)        ┘                               │
    ┌ MatMul with the weights (36, channels, results) ─ Reshape ─ MatMul, from the left, with (16, 36) ──────┘
    └ Reshape ─ Transpose ─ Reshape ─ Add ─ Relu ─ Transpose

What comes behind a convolution for each of its channels goes into its weights.

Files that are exported have none of this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.exporting.onnx.norm_folding import by_channel
from pocketgraph.exporting.onnx.onnx_program import Body, OnnxOperation, OnnxValue, all_operations, used_by
from pocketgraph.graph import Shape
from pocketgraph.graph.dtype import FLOAT, INT64
from pocketgraph.kernels.nn.tile_transforms import TileTransform, Tiling, tile_transform
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.cost_model import (
    FEWEST_TILED_CHANNELS,
    OPENVINO_ELEMENT,
    OPENVINO_LARGEST,
    OPENVINO_PER_MEGABYTE,
    OPENVINO_PRODUCT,
    OPENVINO_SHARE,
    OPENVINO_WEIGHT,
)
from pocketgraph.litert.rewriting.tiled_convolution import transformed_weights
from pocketgraph.litert.rewriting.winograd import best_tiling, is_used

PASS = "winograd_convolutions"
"""What it is switched off by, here and for LiteRT."""


def convolve_in_tiles(body: Body, threads: int = 1) -> None:
    """Convolutions with many channels are computed in tiles where OpenVINO is quicker that way; changed in place.

    Several threads share the work of one image better as it is: ResNet-50 takes 0.97 and Inception v3 0.95 of the time.
    """
    if not is_used():
        return
    uses = Counter(id(value) for operation in all_operations(body) for value in used_by(operation))
    uses.update(id(value) for value in body.outputs)
    readers = {id(value): operation for operation in body.operations for value in operation.inputs if value is not None}
    replaced: dict[int, list[OnnxOperation]] = {}  # by the operation in whose place they come
    dropped: set[int] = set()
    for operation in body.operations:
        convolution = _convolution(operation)
        if convolution is None or (threads > 1 and convolution.source.shape.known[0] == 1):
            continue
        tiling = tiling_of(convolution)
        if tiling is None:
            continue
        behind = _behind(operation, uses, readers)
        chain = [operation, *behind.operations]
        replaced[id(chain[-1])] = _TiledOnnx(convolution, tiling, behind, chain[-1].outputs[0]).operations
        dropped.update(map(id, chain))
    operations: list[OnnxOperation] = []
    for operation in body.operations:
        operations += replaced.get(id(operation), [] if id(operation) in dropped else [operation])
    body.operations[:] = operations


class Convolution(NamedTuple):
    """What is known of a plain convolution.

    Attributes:
        operation: it.
        source: what it reads, (images, channels, rows, columns).
        weights: float32 (results, channels, rows, columns).
        pads: how many zeros it takes before rows, before columns, after rows, after columns.
    """

    operation: OnnxOperation
    source: OnnxValue
    weights: Constant
    pads: tuple[int, int, int, int]

    @property
    def made(self) -> tuple[int, int]:
        """The rows and columns of its result."""
        rows, columns = self.source.shape.known[2:]
        top, left, bottom, right = self.pads
        height, width = self.weights.shape[2:]
        return rows + top + bottom - height + 1, columns + left + right - width + 1


def _convolution(operation: OnnxOperation) -> Convolution | None:
    """A convolution that may be computed in tiles; None where an operation is none."""
    if operation.code != "Conv":
        return None
    source, weights, bias = (*operation.inputs, None)[:3]
    if source is None or weights is None or weights.constant is None or (bias is not None and bias.constant is None):
        return None
    if source.dtype is not FLOAT or weights.dtype is not FLOAT or not source.shape.is_known or source.rank != 4:
        return None
    attrs, shape = operation.attrs, weights.constant.shape
    steps = [each for key in ("strides", "dilations") for each in attrs.get(key, ())]
    if attrs.get("group", 1) != 1 or "auto_pad" in attrs or any(step != 1 for step in steps):
        return None
    if min(shape[:2]) < FEWEST_TILED_CHANNELS or shape[2:] == (1, 1):
        return None
    top, left, bottom, right = (int(each) for each in attrs.get("pads", (0, 0, 0, 0)))
    found = Convolution(operation, source, weights.constant, (top, left, bottom, right))
    return found if min(found.pads) >= 0 and min(found.made) > 0 else None


def tiling_of(convolution: Convolution) -> Tiling | None:
    """The tiles of a convolution; None where it stays as it is."""
    count, depth, height, width = convolution.weights.shape
    result = (convolution.source.shape.known[0], *convolution.made, count)
    return best_tiling(result, (height, width), depth, OPENVINO_SHARE, _time)


def _time(images: int, window: tuple[int, int], depth: int, count: int, tiling: Tiling) -> float:
    """About how long it takes in tiles, in multiplications of a plain convolution."""
    height, width = window
    down, across = tiling.rows + height - 1, tiling.columns + width - 1  # elements of a tile of the source
    tiles, points = images * tiling.down * tiling.across, down * across
    lines = images * tiling.down * (tiling.across * tiling.columns + width - 1) * down * depth
    products = tiles * points * count * (depth + tiling.rows * tiling.columns)
    moved = 2 * lines * (height > 1) + 2 * tiles * points * depth * (width > 1) + tiles * points * (depth + count)
    moved += 3 * tiles * tiling.rows * tiling.columns * count
    largest = min(OPENVINO_LARGEST, tiles * points * max(depth, count) * FLOAT.size)
    return (
        OPENVINO_PRODUCT * products
        + OPENVINO_WEIGHT * points * count * depth
        + (OPENVINO_ELEMENT + OPENVINO_PER_MEGABYTE * largest / 1e6) * moved
    )


class _Behind(NamedTuple):
    """What follows a convolution and nothing else reads: a factor and a sum for each channel, and an activation.

    Attributes:
        factor, offset: float64, one a channel.
        operations: in running order; the last may be ``activation``.
        activation: None where there is none.
    """

    factor: Array
    offset: Array
    operations: list[OnnxOperation]
    activation: OnnxOperation | None


def _behind(operation: OnnxOperation, uses: Mapping[int, int], readers: Mapping[int, OnnxOperation]) -> _Behind:
    weights, bias = (*operation.inputs, None)[1:3]
    assert weights is not None
    assert weights.constant is not None
    count = weights.constant.shape[0]
    factor, offset = np.ones(count), np.zeros(count)
    if bias is not None and bias.constant is not None:
        offset += bias.constant.numpy()
    found: list[OnnxOperation] = []
    value = operation.outputs[0]
    while value is not None and uses[id(value)] == 1 and id(value) in readers:
        reader = readers[id(value)]
        if reader.code in ("Relu", "Clip") and reader.inputs[0] is value:
            return _Behind(factor, offset, [*found, reader], reader)
        step = _by_channel(reader, value, weights.constant.shape)
        if step is None:
            break
        factor, offset = factor * step[0], offset * step[0] + step[1]
        found.append(reader)
        value = reader.outputs[0]
    return _Behind(factor, offset, found, None)


def _by_channel(operation: OnnxOperation, value: OnnxValue, weights: tuple[int, ...]) -> tuple[Array, Array] | None:
    """What an operation multiplies each channel of a value by, and what it adds; None where it does something else."""
    others = [each for each in operation.inputs if each is not value]
    number = by_channel(others[0], weights) if operation.code in ("Add", "Mul") and len(others) == 1 else None
    if number is None:
        return None
    number = np.broadcast_to(number, weights[0])
    return (np.ones(weights[0]), number) if operation.code == "Add" else (number, np.zeros(weights[0]))


class _TiledOnnx:
    """Makes the operations that compute a convolution in tiles."""

    def __init__(self, whole: Convolution, tiling: Tiling, behind: _Behind, result: OnnxValue | None) -> None:
        assert result is not None
        self.operations: list[OnnxOperation] = []
        self._tiling, self._name, self._node = tiling, result.name, whole.operation.node
        self._write(whole, behind, result)

    def _write(self, whole: Convolution, behind: _Behind, result: OnnxValue) -> None:
        count, depth, height, width = whole.weights.shape
        rows, columns, down, across = self._tiling
        by_row, by_column = tile_transform(rows, height), tile_transform(columns, width)
        points, images = len(by_row.data) * len(by_column.data), whole.source.shape.known[0]
        weights = whole.weights.numpy() * behind.factor.reshape(-1, 1, 1, 1).astype(np.float32)
        filters = transformed_weights(weights.transpose(0, 2, 3, 1), by_row, by_column).transpose(1, 0, 3, 2)
        tiles = self._in_tiles(whole, by_row, by_column)
        tiles = self._reshaped(
            self._add("Transpose", [tiles], perm=[0, 2, 3, 1]), points, images * down * across, depth
        )
        made = self._add("MatMul", [tiles, self._constant(filters.reshape(points, depth, count))])
        made = self._reshaped(made, points, images * down * across * count)
        back = np.einsum("ip,jq->ijqp", by_row.result, by_column.result).reshape(rows * columns, points)
        made = self._add("MatMul", [self._constant(back.astype(np.float32)), made])
        made = self._reshaped(made, rows, columns, images, down, across, count)
        made = self._add("Transpose", [made], perm=[2, 3, 0, 4, 1, 5])
        made = self._reshaped(made, images, down * rows, across * columns, count)
        if (down * rows, across * columns) != whole.made:
            bounds = [self._integers(each) for each in ((0, 0), whole.made, (1, 2))]
            made = self._add("Slice", [made, *bounds])
        if np.any(behind.offset):
            made = self._add("Add", [made, self._constant(behind.offset.astype(np.float32))])
        if behind.activation is not None:
            made = self._add(behind.activation.code, [made, *behind.activation.inputs[1:]], **behind.activation.attrs)
        self._add("Transpose", [made], perm=[0, 3, 1, 2])
        self.operations[-1].outputs = [result]

    def _in_tiles(self, whole: Convolution, by_row: TileTransform, by_column: TileTransform) -> OnnxValue:
        """The tiles at each point: (points of columns, of rows, images; channels, tiles down, across)."""
        tiling, sizes = self._tiling, whole.source.shape.known[2:]
        before = whole.pads[:2]
        after = [
            tile * tiles + len(transform.filter[0]) - 1 - size - first
            for tile, tiles, transform, size, first in zip(
                tiling[:2], tiling[2:], (by_row, by_column), sizes, before, strict=True
            )
        ]
        pads = [*before, *after]
        value = whole.source
        for axis, transform in enumerate((by_row, by_column)):
            if len(transform.data) > 1:
                value = self._transformed(value, transform, axis, whole.weights.shape[1], pads)
                pads = [0, 0, 0, 0]
        return value

    def _transformed(
        self, source: OnnxValue, transform: TileTransform, axis: int, depth: int, pads: Sequence[int]
    ) -> OnnxValue:
        """The points of tiles along an axis (0: rows, 1: columns), one after the other."""
        window, strides = [1, 1], [1, 1]
        window[axis], strides[axis] = len(transform.data), self._tiling[axis]
        attrs = {"group": depth, "strides": strides, "kernel_shape": window, "pads": list(pads)}
        made = []
        for row in transform.data.astype(np.float32):
            weights = np.broadcast_to(row.reshape(1, 1, *window), (depth, 1, *window))
            made.append(self._add("Conv", [source, self._constant(weights)], **attrs))
        return self._add("Concat", made, axis=0)

    def _reshaped(self, value: OnnxValue, *shape: int) -> OnnxValue:
        return self._add("Reshape", [value, self._integers(shape)])

    def _add(self, code: str, inputs: Sequence[OnnxValue | None], **attrs: Any) -> OnnxValue:
        made = OnnxValue(f"{self._name}/tiles_{len(self.operations)}", FLOAT)
        self.operations.append(OnnxOperation(code, list(inputs), [made], attrs, {}, self._node))
        return made

    def _integers(self, numbers: Sequence[int]) -> OnnxValue:
        return self._constant(np.array(numbers, np.int64))

    def _constant(self, content: Array) -> OnnxValue:
        self._count += 1
        constant = Constant.of(np.ascontiguousarray(content))
        dtype = FLOAT if content.dtype == np.float32 else INT64
        return OnnxValue(f"{self._name}/tiles_constant_{self._count}", dtype, Shape(constant.shape), None, constant)

    _count = 0
