"""Simulated quantization: the FakeQuant ops and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.quantized.eight_bit_arithmetic import F32, nudged
from pocketgraph.kernels.registry import kernel

LANES = 4
LEAF = 1024 * LANES
"""Longer rows are halved, each half summed by itself."""


@kernel("FakeQuantWithMinMaxArgs")
def fake_quant_with_min_max_args(
    inputs: Array, *, min: float = -6.0, max: float = 6.0, num_bits: int = 8, narrow_range: bool = False
) -> Array:
    """``inputs`` rounded to the steps that codes of ``num_bits`` would have between min and max."""
    if not min < max:
        raise RunError(f"min has to be smaller than max, was: {min} >= {max}")
    low, high, scale = nudged(np.array(min, F32), np.array(max, F32), num_bits, narrow_range)
    steps = F32((1 << num_bits) - 1 - int(narrow_range))
    inverse = steps / (F32(max) - F32(min))  # not 1 / scale: ties depend on it
    inside = np.minimum(np.maximum(inputs, low), high) - low
    zero = np.floor(-low * inverse + F32(0.5))
    return np.asarray(np.floor(inside * inverse - zero + F32(0.5)) * scale).astype(F32)


def _fake_quant(inputs: Array, low: Array, high: Array, num_bits: int, narrow_range: bool) -> Array:
    low, high = low.astype(F32), high.astype(F32)
    bottom, top, scale = nudged(low, high, num_bits, narrow_range)
    inside = np.maximum(np.minimum(inputs, top), bottom) - bottom  # in this order, for a min above max
    zero = np.floor(-bottom / scale + F32(0.5))
    values = np.floor(inside / scale - zero + F32(0.5)) * scale
    return np.asarray(np.where((low == 0) & (high == 0), F32(0), values)).astype(F32)


@kernel("FakeQuantWithMinMaxVars")
def fake_quant_with_min_max_vars(
    inputs: Array, min: Array, max: Array, *, num_bits: int = 8, narrow_range: bool = False
) -> Array:
    return _fake_quant(inputs, min.reshape(()), max.reshape(()), num_bits, narrow_range)


@kernel("FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_with_min_max_vars_per_channel(
    inputs: Array, min: Array, max: Array, *, num_bits: int = 8, narrow_range: bool = False
) -> Array:
    """One range for each entry of the last axis."""
    if min.shape != inputs.shape[-1:] or max.shape != min.shape:
        raise RunError(f"shapes that do not fit: inputs {list(inputs.shape)}, min {list(min.shape)}")
    return _fake_quant(inputs, min, max, num_bits, narrow_range)


def _between(inputs: Array, bottom: Array, top: Array) -> Array:
    return np.asarray((inputs >= bottom) & (inputs <= top))


def _times(gradients: Array, where: Array) -> Array:
    """The gradients there, 0 elsewhere; NaN and infinities times 0 are NaN, as TensorFlow multiplies."""
    return np.asarray(gradients * where.astype(F32))


@kernel("FakeQuantWithMinMaxArgsGradient")
def fake_quant_with_min_max_args_gradient(
    gradients: Array,
    inputs: Array,
    *,
    min: float = -6.0,
    max: float = 6.0,
    num_bits: int = 8,
    narrow_range: bool = False,
) -> Array:
    """The gradients of the values that were inside the range, zero elsewhere."""
    if not min < max:
        raise RunError(f"min has to be smaller than max, was: {min} >= {max}")
    bottom, top, _ = nudged(np.array(min, F32), np.array(max, F32), num_bits, narrow_range)
    return _times(gradients, _between(inputs, bottom, top))


def _gradients(
    gradients: Array, inputs: Array, low: Array, high: Array, num_bits: int, narrow_range: bool
) -> tuple[Array, Array, Array]:
    """(of the inputs, of min, of max)."""
    low, high = low.astype(F32), high.astype(F32)
    if gradients.shape != inputs.shape:
        raise RunError(f"gradients of {list(gradients.shape)} for inputs of {list(inputs.shape)}")
    bottom, top, _ = nudged(low, high, num_bits, narrow_range)
    unused = (low == 0) & (high == 0)
    below, above = (_sums(_times(gradients, where & ~unused), low.shape) for where in (inputs < bottom, inputs > top))
    return _times(gradients, _between(inputs, bottom, top) | unused), below, above


def _sums(values: Array, shape: tuple[int, ...]) -> Array:
    """float32 sums over all axes (``shape`` empty) or all but the last, in TensorFlow's order."""
    if not values.size:
        return np.zeros(shape, F32)
    rows = values.reshape(-1, shape[0] if shape else 1)
    if rows.shape[1] > 1:
        return np.asarray(np.add.accumulate(rows, axis=0, dtype=F32)[-1])
    return _row_sums(rows.T).reshape(shape)


@kernel("FakeQuantWithMinMaxVarsGradient")
def fake_quant_with_min_max_vars_gradient(
    gradients: Array, inputs: Array, min: Array, max: Array, *, num_bits: int = 8, narrow_range: bool = False
) -> tuple[Array, Array, Array]:
    return _gradients(gradients, inputs, min.reshape(()), max.reshape(()), num_bits, narrow_range)


@kernel("FakeQuantWithMinMaxVarsPerChannelGradient")
def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Array, inputs: Array, min: Array, max: Array, *, num_bits: int = 8, narrow_range: bool = False
) -> tuple[Array, Array, Array]:
    """One range for each entry of the last axis."""
    if min.shape != inputs.shape[-1:] or max.shape != min.shape:
        raise RunError(f"shapes that do not fit: inputs {list(inputs.shape)}, min {list(min.shape)}")
    return _gradients(gradients, inputs, min, max, num_bits, narrow_range)


def _row_sums(rows: Array) -> Array:
    """The sum of each row of a float32 matrix whose rows lie in memory as they are, on one thread, in the order in
    which Eigen takes it for TensorFlow: the last digits depend on that.

    Packets of four numbers are added up alternately in two accumulators; their sum, halved and halved again, is added
    to that of the numbers left over.
    """
    count = rows.shape[1]
    if count > LEAF:
        half = LANES * (((count + 1) // 2 + LANES - 1) // LANES)
        return np.asarray(_row_sums(rows[:, :half]) + _row_sums(rows[:, half:]))
    pairs, packets = count // (2 * LANES) * 2 * LANES, count // LANES * LANES
    lanes = np.zeros((len(rows), 2, LANES), F32)
    if pairs:
        lanes = np.add.accumulate(rows[:, :pairs].reshape(len(rows), -1, 2, LANES), axis=1, dtype=F32)[:, -1]
    first = lanes[:, 0] + rows[:, pairs:packets] if packets > pairs else lanes[:, 0]
    total: Any = first + lanes[:, 1]
    total = total[:, :2] + total[:, 2:]
    total = total[:, 0] + total[:, 1]
    if packets == count:
        return np.asarray(total)
    rest = np.add.accumulate(rows[:, packets:], axis=1, dtype=F32)[:, -1]
    return np.asarray(rest + total)
