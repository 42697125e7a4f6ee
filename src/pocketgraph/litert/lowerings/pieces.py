"""Pieces cut out of a value, borders put around one, indices in their type: what many lowerings are made of."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import option
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.litert.constant import Array
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.program import Value

DEEPEST = 5  # dimensions that the cutting kernels take
BOUNDS = (-1, 2**31 - 1)  # of 32-bit indices; -1 is outside of every tensor


def sum_of(emit: Emit, left: Value, right: Value) -> Value:
    """Both added, in the shape of the first."""
    return emit.add("ADD", [left, right], left.shape, activation="")


def pad(emit: Emit, value: Value, pairs: Array, fill: float | None = None, *, always: bool = False) -> Value:
    """``value`` with constant borders, zero by default; ``always`` by an operation, though they may be empty."""
    if not (pairs.any() or always):
        return value
    shape = [size + int(before) + int(after) for size, (before, after) in zip(value.shape, pairs, strict=True)]
    amounts = emit.const(pairs, np.int32)
    if fill is None or fill == 0:
        return emit.add("PAD", [value, amounts], shape)
    return emit.add("PADV2", [value, amounts, emit.const(fill, value.dtype.numpy)], shape)


def cut(
    emit: Emit,
    value: Value,
    begin: list[int],
    size: list[int],
    strides: list[int] | None = None,
    *,
    always: bool = False,
) -> Value:
    """Elements ``begin``, ``begin`` + stride … of each axis, ``size`` of them; strides are positive. ``always`` by an
    operation, though these may be all."""
    strides = strides or [1] * len(begin)
    if tuple(size) == value.shape and not always:
        return value
    if len(size) > DEEPEST:
        raise emit.unsupported(f"cutting from rank {len(size)}")
    if all(stride == 1 for stride in strides):
        return emit.add("SLICE", [value, emit.const(begin, np.int32), emit.const(size, np.int32)], size)
    end = [b + (n - 1) * s + 1 for b, n, s in zip(begin, size, strides, strict=True)]
    return emit.add("STRIDED_SLICE", [value, *(emit.const(x, np.int32) for x in (begin, end, strides))], size)


MOST_PADDED = 4  # dimensions that the padding kernels take


def number(emit: Emit, value: float) -> Value:
    """A constant scalar."""
    return emit.const(value, np.float32)


MOST_STRIPS = 16  # strips that a mirrored border is put together from


MOST_SLICED = 5  # axes that XNNPACK slices


def mirror_pad(emit: Emit, value: Value, pairs: Array, mode: str) -> Value:
    """``value`` with its own content mirrored at the borders."""
    if not pairs.any():
        return value
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise emit.unsupported(f"the mirror mode {mode}")
    edge = int(mode == "SYMMETRIC")
    for size, border in zip(value.shape, pairs.max(axis=1).tolist(), strict=True):
        if border > max(size - 1 + edge, 0):
            reach = f"{mode} mirrors {size - 1 + edge} at most"
            hint = f"larger inputs have larger sides: {option('input_shape', 'shapes')}"
            raise emit.unsupported(f"a border of {border} round a side of {size}, of which {reach} ({hint})")
    is_thin = 0 < pairs.sum() <= MOST_STRIPS and value.dtype is FLOAT and len(value.shape) <= MOST_SLICED
    if is_thin and all(
        before < size and after < size for (before, after), size in zip(pairs, value.shape, strict=True)
    ):
        return _mirrored_in_strips(emit, value, pairs, edge)
    shape = [size + int(before) + int(after) for size, (before, after) in zip(value.shape, pairs, strict=True)]
    return emit.add("MIRROR_PAD", [value, emit.const(pairs, np.int32)], shape, mode=mode)


def _mirrored_in_strips(emit: Emit, value: Value, pairs: Array, edge: int) -> Value:
    """Thin borders put together from strips one element wide; LiteRT's MIRROR_PAD goes element by element."""
    for axis, (before, after) in enumerate(pairs.tolist()):
        if not before and not after:
            continue
        length = value.shape[axis]
        places = [*(step - edge for step in range(before, 0, -1)), None]
        places += [length - 1 - step + edge for step in range(1, after + 1)]
        strips = []
        for place in places:
            if place is None:
                strips.append(value)
                continue
            begin, size = [0] * len(value.shape), list(value.shape)
            begin[axis], size[axis] = place, 1
            strips.append(emit.add("SLICE", [value, emit.const(begin, np.int32), emit.const(size, np.int32)], size))
        value = emit.concatenated(strips, axis)
    return value


def in_32_bits(emit: Emit, indices: Value) -> Value:
    """The same indices in int32; those that do not fit stay outside of every tensor."""
    if indices.dtype is INT32:
        return indices
    if indices.constant is not None:
        return emit.const(np.clip(indices.constant.numpy(), *BOUNDS).astype(np.int32))
    for code, bound in zip(("MAXIMUM", "MINIMUM"), BOUNDS, strict=True):
        indices = emit.add(code, [indices, emit.const(bound, np.int64)], indices.shape)
    return emit.add("CAST", [indices], indices.shape, INT32)
