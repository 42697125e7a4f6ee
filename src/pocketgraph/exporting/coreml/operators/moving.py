"""Shapes, axes, cutting and joining."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.exporting.coreml.operator_table import translates
from pocketgraph.exporting.coreml.stored_weights import StoredWeights
from pocketgraph.exporting.coreml.translation import MOST_AXES, Translation
from pocketgraph.exporting.onnx.onnx_program import OnnxOperation


def moved(to: Translation, operation: OnnxOperation, kind: str, **others: Any) -> Any:
    """An operator that moves the first operand's values about."""
    return to.numbers(kind, {"x": to.input(operation, 0)}, **others)


class _Unfolded(NamedTuple):
    """A tensor of more axes than Core ML has, between a Reshape and a Transpose that bring it about and away again.

    Attributes:
        value: the same elements in the same order.
        shape: that it has in the graph.
    """

    value: Any
    shape: tuple[int, ...]

    def transposed(self, to: Translation, order: Sequence[int]) -> _Unfolded:
        """Axes exchanged, those as one that stay beside each other."""
        runs: list[list[int]] = []
        for axis in order:
            if runs and axis == runs[-1][-1] + 1:
                runs[-1].append(axis)
            else:
                runs.append([axis])
        if len(runs) > MOST_AXES:
            raise to.unsupported(f"a tensor of {len(self.shape)} axes, and Core ML's have at most {MOST_AXES}")
        groups = sorted(runs)
        sizes = [int(np.prod([self.shape[axis] for axis in run])) for run in groups]
        x = to.numbers("reshape", {"x": self.value}, shape=np.asarray(sizes, np.int32))
        x = to.numbers("transpose", {"x": x}, perm=[groups.index(run) for run in runs])
        return _Unfolded(x, tuple(self.shape[axis] for axis in order))


@translates("Reshape")
def reshape(to: Translation, operation: OnnxOperation) -> Any:
    shape = to.integers(operation, 1, "the shape")
    x = to.held(operation.inputs[0])
    if isinstance(x, _Unfolded):
        x = x.value
    x = to.input(operation, 0) if x is None else x
    if not operation.attrs.get("allowzero"):
        shape = [int(x.shape[axis]) if size == 0 and axis < x.rank else size for axis, size in enumerate(shape)]
    if len(shape) > MOST_AXES:
        known = int(np.prod([size for size in shape if size > 0]))
        whole = int(np.prod([int(size) for size in x.shape]))
        return _Unfolded(x, tuple(size if size > 0 else whole // known for size in shape))
    if not shape:
        return to.numbers("squeeze", {"x": x}) if x.rank else to.op("identity", x=x)
    return to.numbers("reshape", {"x": x}, shape=np.asarray(shape, np.int32))


translates("Flatten")(lambda to, operation: moved(to, operation, "flatten2d", axis=int(operation.attrs.get("axis", 1))))


@translates("Squeeze")
def squeeze(to: Translation, operation: OnnxOperation) -> Any:
    if len(operation.inputs) > 1 and operation.inputs[1] is not None:
        return moved(to, operation, "squeeze", axes=to.integers(operation, 1, "the axes"))
    return moved(to, operation, "squeeze")


@translates("Unsqueeze")
def unsqueeze(to: Translation, operation: OnnxOperation) -> Any:
    return moved(to, operation, "expand_dims", axes=to.integers(operation, 1, "the axes"))


@translates("Transpose")
def transpose(to: Translation, operation: OnnxOperation) -> Any:
    order = tuple(operation.attrs["perm"])
    held = to.held(operation.inputs[0])
    if isinstance(held, StoredWeights):
        return held.permuted(order)
    if isinstance(held, _Unfolded):
        return held.transposed(to, order)
    return moved(to, operation, "transpose", perm=list(order))


@translates("Concat")
def concat(to: Translation, operation: OnnxOperation) -> Any:
    values = [to.input(operation, index) for index in range(len(operation.inputs))]
    return to.numbers("concat", {"values": values}, axis=int(operation.attrs["axis"]))


@translates("Split")
def split(to: Translation, operation: OnnxOperation) -> Any:
    axis = int(operation.attrs.get("axis", 0))
    if len(operation.inputs) > 1 and operation.inputs[1] is not None:
        return moved(to, operation, "split", split_sizes=to.integers(operation, 1, "the sizes"), axis=axis)
    return moved(to, operation, "split", num_splits=len(operation.outputs), axis=axis)


@translates("Slice")
def slices(to: Translation, operation: OnnxOperation, x: Any) -> Any:
    starts, stops = (to.integers(operation, index, "where the slice lies") for index in (1, 2))
    given = to.static_or_none(operation, 3)
    axes = list(range(len(starts))) if given is None else [int(axis) % x.rank for axis in given.reshape(-1)]
    given = to.static_or_none(operation, 4)
    steps = [1] * len(starts) if given is None else [int(step) for step in given.reshape(-1)]
    begin, end, stride = [0] * x.rank, [int(size) for size in x.shape], [1] * x.rank
    end_mask = [False] * x.rank
    for axis, start, stop, step in zip(axes, starts, stops, steps, strict=True):
        first, last, stride[axis] = slice(start, stop, step).indices(int(x.shape[axis]))
        begin[axis], end[axis] = first, max(last, 0)
        end_mask[axis] = last < 0
        if not range(first, last, step):
            raise to.unsupported("an empty slice, which Core ML has no tensor for")
    return to.numbers("slice_by_index", {"x": x}, begin=begin, end=end, stride=stride, end_mask=end_mask)


@translates("Expand")
def expand(to: Translation, operation: OnnxOperation, x: Any) -> Any:
    shape = to.integers(operation, 1, "the shape")
    wanted = np.broadcast_shapes(tuple(int(size) for size in x.shape), tuple(shape))
    return _tiled(to, x, list(wanted))


def _tiled(to: Translation, x: Any, wanted: list[int]) -> Any:
    if x.rank < len(wanted):
        own = [1] * (len(wanted) - x.rank) + [int(size) for size in x.shape]
        x = to.numbers("reshape", {"x": x}, shape=np.asarray(own, np.int32))
    times = [size // int(before) for size, before in zip(wanted, x.shape, strict=True)]
    return to.numbers("tile", {"x": x}, reps=times) if set(times) != {1} and times else to.op("identity", x=x)


translates("Tile")(lambda to, operation: moved(to, operation, "tile", reps=to.integers(operation, 1, "how often")))


@translates("Pad")
def pad(to: Translation, operation: OnnxOperation, x: Any) -> Any:
    amounts = to.integers(operation, 1, "the amounts")
    before, after = amounts[: x.rank], amounts[x.rank :]
    if min(amounts, default=0) < 0:
        raise to.unsupported("padding that takes away")
    mode = str(operation.attrs.get("mode", "constant"))
    mode = "replicate" if mode == "edge" else mode
    pairs = [number for pair in zip(before, after, strict=True) for number in pair]
    number = to.static_or_none(operation, 2)
    if mode != "constant" and any(pairs[:-4]):
        for axis, pair in enumerate(zip(before, after, strict=True)):
            if any(pair):
                how: Any = str(operation.attrs["mode"])
                places = np.pad(np.arange(int(x.shape[axis]), dtype=np.int32), pair, mode=how)
                x = to.numbers("gather", {"x": x}, indices=places, axis=axis)
        return x
    if mode != "constant":
        return _with_border(to, x, pairs[-4:], mode, 0.0)
    return _with_border(to, x, pairs, mode, 0.0 if number is None else float(number.reshape(-1)[0]))


def _with_border(to: Translation, x: Any, pairs: list[int], mode: str, number: float) -> Any:
    back = "" if to.is_float(x) else "bool" if to.is_bool(x) else "int32"
    made = to.op("pad", x=to.cast(x, "fp32"), pad=pairs, mode=mode, constant_val=np.float32(number))
    return to.cast(made, back) if back else made


@translates("Shape")
def shape(to: Translation, operation: OnnxOperation) -> Any:
    return to.op("shape", x=to.input(operation, 0))


@translates("ConstantOfShape")
def filled(to: Translation, operation: OnnxOperation) -> Any:
    sizes = to.integers(operation, 0, "the shape")
    value = np.asarray(operation.attrs.get("value", np.float32(0))).reshape(-1)[0]
    return to.op("identity", x=to.plain(np.full(sizes, value)))


@translates("Range")
def numbers_from_to(to: Translation, operation: OnnxOperation) -> Any:
    ends = [to.static(operation, index, "its ends").reshape(-1)[0] for index in range(3)]
    return to.op("identity", x=to.plain(np.arange(*ends, dtype=ends[0].dtype)))


@translates("ReverseSequence")
def reverse_sequence(to: Translation, operation: OnnxOperation) -> Any:
    attrs = operation.attrs
    return to.numbers(
        "reverse_sequence", {"x": to.input(operation, 0)}, lengths=to.input(operation, 1),
        seq_axis=int(attrs.get("time_axis", 0)), batch_axis=int(attrs.get("batch_axis", 1)),
    )  # fmt: skip
