"""Pieces cut out of a value, and borders put around one: what many lowerings are made of."""

from __future__ import annotations

import numpy as np

from pocketgraph.litert.constant import Array
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.program import Value

DEEPEST = 5  # dimensions that the cutting kernels take


def pad(emit: Emit, value: Value, pairs: Array, fill: float | None = None) -> Value:
    """``value`` with constant borders, zero by default."""
    if not pairs.any():
        return value
    shape = [size + int(before) + int(after) for size, (before, after) in zip(value.shape, pairs, strict=True)]
    amounts = emit.const(pairs, np.int32)
    if fill is None or fill == 0:
        return emit.add("PAD", [value, amounts], shape)
    return emit.add("PADV2", [value, amounts, emit.const(fill, value.dtype.numpy)], shape)


def cut(emit: Emit, value: Value, begin: list[int], size: list[int], strides: list[int] | None = None) -> Value:
    """Elements ``begin``, ``begin`` + stride … of each axis, ``size`` of them; strides are positive."""
    strides = strides or [1] * len(begin)
    if tuple(size) == value.shape:
        return value
    if len(size) > DEEPEST:
        raise emit.unsupported(f"cutting from rank {len(size)}")
    if all(stride == 1 for stride in strides):
        return emit.add("SLICE", [value, emit.const(begin, np.int32), emit.const(size, np.int32)], size)
    end = [b + (n - 1) * s + 1 for b, n, s in zip(begin, size, strides, strict=True)]
    return emit.add("STRIDED_SLICE", [value, *(emit.const(x, np.int32) for x in (begin, end, strides))], size)
