"""Transposed convolutions as plain ones: each pixel makes all the pixels that lie between it and the next one.

    x ─TRANSPOSE_CONV 5x5, stride 2 [1,16,16,32]─ y [1,32,32,16]
becomes
    x ─CONV_2D 3x3 [1,16,16,64]─ DEPTH_TO_SPACE y [1,32,32,16]

Along one axis the pixel ``o = stride * q + r`` of the result takes the elements ``t`` of the filter with
``t = r + before (mod stride)`` times the pixels ``(o + before - t) / stride`` of the source, ``before`` being what the
padding cuts off in front. So all results of one ``q`` come from a few pixels about ``q``, and the filter that makes
them holds zeros where a pixel takes no part. Fewer zeros are left when what the padding cuts off is computed too, and
then cut off. XNNPACK's kernels for plain convolutions are several times as fast as those for transposed ones, which
pays for the zeros and for putting the pixels into their places.
"""

from __future__ import annotations

from itertools import product
from math import inf, prod
from typing import NamedTuple

import numpy as np

from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.cost_model import MOST_ADDED_ZEROS, MOVED_NUMBER
from pocketgraph.litert.program import Operation, Program, Value, sliding
from pocketgraph.litert.rewriting.padding_and_dilation import same_borders

MOST_STRIDE = 16  # pixels


class Axis(NamedTuple):
    """One axis of a transposed convolution.

    Attributes:
        taps: for each remainder and each pixel of the new filter the element of the old one, -1 where there is none.
        first: the first pixel of the source that the first result takes; before the source where it is negative.
        steps: how many results each of ``stride`` pixels there are.
        begin: how many pixels of these are cut off in front.
    """

    taps: Array
    first: int
    steps: int
    begin: int


def axis_of(size: int, extent: int, stride: int, before: int, begin: int) -> Axis:
    """What becomes of an axis with ``size`` results, a filter of ``extent`` elements and this padding in front, of
    which ``begin`` pixels are computed and cut off."""
    shift = before - begin
    found = [
        (r, (r + shift) // stride - m, (r + shift) % stride + stride * m)
        for r in range(stride)
        for m in range(-(-extent // stride))
        if (r + shift) % stride + stride * m < extent
    ]
    first = min(place for _, place, _ in found)
    width = max(place for _, place, _ in found) - first + 1
    taps = np.full((stride, width), -1)
    for r, place, tap in found:
        taps[r, place - first] = tap
    return Axis(taps, first, -(-(size + begin) // stride), begin)


def turn_transposed_convolutions(program: Program, most_more: float = inf) -> None:
    """Rewrites those where that is faster; the same sums in another order.

    Args:
        program: it is changed.
        most_more: how many elements more all filters together may have, the zeros; those with the least come first.
    """
    turned = {op: made for op in program.operations if op.code == "TRANSPOSE_CONV" and (made := _turned(op))}
    for operation in sorted(turned, key=lambda op: _more(op, turned[op])):
        most_more -= _more(operation, turned[operation])
        if most_more < 0:
            del turned[operation]
    program.operations = [new for op in program.operations for new in turned.get(op, [op])]


def _more(operation: Operation, made: list[Operation]) -> int:
    """How many elements more the new filter has."""
    (new,) = (op.inputs[1] for op in made if op.code == "CONV_2D")
    old = operation.inputs[1]
    return 0 if new is None or old is None else new.size - old.size


def _turned(operation: Operation) -> list[Operation] | None:
    _, weights, source, *more = operation.inputs
    (result,) = operation.outputs
    if source is None or weights is None or weights.constant is None or weights.dtype is not FLOAT:
        return None
    bias = more[0] if more else None
    strides = operation.options["stride_h"], operation.options["stride_w"]
    if bias is not None and bias.constant is None:
        return None
    if weights.quantization is not None or max(strides) == 1 or max(strides) > MOST_STRIDE:
        return None
    extents = weights.shape[1:3]
    before = [0, 0]
    if operation.options["padding"] == "SAME":
        forward = Operation("CONV_2D", [], [], sliding("SAME", strides))
        before = [pair[0] for pair in same_borders(result, weights, forward)]
    ways = [
        [axis_of(result.shape[1 + a], extents[a], strides[a], before[a], begin) for begin in {0: 0, before[a]: 0}]
        for a in (0, 1)
    ]

    def work(pair: tuple[Axis, ...]) -> int:
        """Multiplications, copying counted as some."""
        sums = prod(axis.steps * axis.taps.size for axis in pair) * weights.shape[0] * weights.shape[3]
        is_cut = any(axis.begin for axis in pair)
        is_even = all(-axis.first == (axis.taps.shape[1] - 1) // 2 for axis in pair)
        return sums + MOVED_NUMBER * (is_cut * result.size + (not is_even) * source.size)

    rows, columns = min(product(*ways), key=work)
    if rows.taps.size * columns.taps.size > MOST_ADDED_ZEROS * extents[0] * extents[1]:
        return None
    return _Turning(operation, source, result, weights.constant.numpy(), bias, rows, columns).operations()


class _Turning:
    def __init__(
        self,
        operation: Operation,
        source: Value,
        result: Value,
        old: Array,
        bias: Value | None,
        rows: Axis,
        columns: Axis,
    ) -> None:
        self.nodes = operation.nodes
        self.activation = operation.options.get("activation", "")
        self.source = source
        self.result = result
        self.filter = _filter(old, rows, columns)
        self.bias = (
            np.zeros(old.shape[0], np.float32) if bias is None or bias.constant is None else bias.constant.numpy()
        )
        self.rows = rows
        self.columns = columns
        self.done: list[Operation] = []

    def operations(self) -> list[Operation]:
        """The operations that take the place of the old one."""
        down, right = len(self.rows.taps), len(self.columns.taps)
        batch, _, _, depth = self.result.shape
        source, padding = self.padded()
        weights = self.constant("filter", self.filter)
        bias = self.constant("bias", np.tile(self.bias.reshape(-1), down * right))
        parts = Value(
            f"{self.result.name}/parts", FLOAT, (batch, self.rows.steps, self.columns.steps, len(self.filter))
        )
        options = sliding(padding, activation=self.activation)
        self.done.append(Operation("CONV_2D", [source, weights, bias], [parts], options, self.nodes))
        size = batch, self.rows.steps * down, self.columns.steps * right, depth
        whole = self.result if size == self.result.shape else Value(f"{self.result.name}/whole", FLOAT, size)
        if down == 1:
            self.reshaped(parts, whole)
        elif down == right:
            self.done.append(Operation("DEPTH_TO_SPACE", [parts], [whole], {"block_size": down}, self.nodes))
        else:
            shape = (batch * self.rows.steps, self.columns.steps, down, right * depth)
            apart = Value(f"{self.result.name}/apart", FLOAT, shape)
            turned = Value(f"{self.result.name}/turned", FLOAT, (shape[0], shape[2], shape[1], shape[3]))
            self.reshaped(parts, apart)
            order = self.constant("order", np.array([0, 2, 1, 3], np.int32))
            self.done.append(Operation("TRANSPOSE", [apart, order], [turned], {}, self.nodes))
            self.reshaped(turned, whole)
        if whole is not self.result:
            begin = self.constant("begin", np.array([0, self.rows.begin, self.columns.begin, 0], np.int32))
            sizes = self.constant("sizes", np.array(self.result.shape, np.int32))
            self.done.append(Operation("SLICE", [whole, begin, sizes], [self.result], {}, self.nodes))
        return self.done

    def padded(self) -> tuple[Value, str]:
        """The source with the borders that the new filter reaches into, or itself; and the padding that is left."""
        pairs, same = [(0, 0)], [(0, 0)]
        for axis, size in zip((self.rows, self.columns), self.source.shape[1:3], strict=True):
            more = axis.taps.shape[1] - 1
            pairs.append((-axis.first, axis.steps + axis.first + more - size))
            same.append((more // 2, more - more // 2))
        pairs.append((0, 0))
        if pairs == [*same, (0, 0)]:
            return self.source, "SAME" if any(map(any, same)) else "VALID"
        source, padding = self.source, "VALID"
        begin = [max(-before, 0) for before, _ in pairs]
        left = [
            length - first + min(after, 0) for length, first, (_, after) in zip(source.shape, begin, pairs, strict=True)
        ]
        if left != list(source.shape):
            cut = Value(f"{self.result.name}/cut", FLOAT, tuple(left))
            operands = [
                self.constant("from", np.array(begin, np.int32)),
                self.constant("count", np.array(left, np.int32)),
            ]
            self.done.append(Operation("SLICE", [source, *operands], [cut], {}, self.nodes))
            source = cut
        borders = np.maximum(np.array(pairs, np.int32), 0)
        if borders.any():
            shape = tuple(length + int(sum(pair)) for length, pair in zip(source.shape, borders, strict=True))
            wide = Value(f"{self.result.name}/padded", FLOAT, shape)
            self.done.append(Operation("PAD", [source, self.constant("borders", borders)], [wide], {}, self.nodes))
            source = wide
        return source, padding

    def reshaped(self, value: Value, target: Value) -> None:
        sizes = self.constant(f"{target.name.rpartition('/')[2]}_sizes", np.array(target.shape, np.int32))
        self.done.append(Operation("RESHAPE", [value, sizes], [target], {"new_shape": target.shape}, self.nodes))

    def constant(self, what: str, array: Array) -> Value:
        content = Constant.of(array)
        return Value(
            f"{self.result.name}/{what}", FLOAT if array.dtype == np.float32 else INT32, content.shape, content
        )


def _filter(old: Array, rows: Axis, columns: Axis) -> Array:
    """float32 (remainders down * remainders right * outputs, height, width, inputs) from (outputs, …, inputs)."""
    count, *_, depth = old.shape
    down, height = rows.taps.shape
    right, width = columns.taps.shape
    new = np.zeros((down, right, count, height, width, depth), np.float32)
    for r, y in zip(*np.nonzero(rows.taps >= 0), strict=True):
        for c, x in zip(*np.nonzero(columns.taps >= 0), strict=True):
            new[r, c, :, y, x] = old[:, rows.taps[r, y], columns.taps[c, x]]
    return new.reshape(down * right * count, height, width, depth)
