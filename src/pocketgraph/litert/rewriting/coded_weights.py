"""Gives weights int8 codes: exactly, where they were eight-bit codes before and that can be.

The original tool's codes are unsigned with a zero of their own, so there may be more than 127 levels on the longer side
of zero. Where a few weights of a channel have more, these are cut to 127, and what that takes away is given to other
weights of the channel; where many have, the channel gets larger levels.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph.dtype import FLOAT, INT8
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.operator_traits import LARGEST_CODE
from pocketgraph.litert.program import Operation, Program, Quantization, Value

MOST_LEVELS = 255.5  # quantization steps
SMALLEST_SHARE = 1 / 1024  # of the largest weight; below, a number stands for zero that float32 arithmetic missed
EXACT = 1e-3  # of a level: what float32 leaves of 127 levels, with room to spare
ROUNDING = 0.02  # of a level: what float32 leaves of 255 levels
LEVEL_NOISE = 1 / 12  # of a level's square: what rounding to levels costs on average


def coded_weights(weights: Value, axis: int) -> Value | None:
    """float32 weights as int8 codes with one scale for each index of ``axis``; None when they cannot be."""
    constant = weights.constant
    if constant is None or weights.dtype is not FLOAT:
        return None
    values = constant.numpy()
    others = tuple(a for a in range(values.ndim) if a != axis)
    largest = np.abs(values).max(axis=others, keepdims=True)
    if not np.isfinite(largest).all():
        return None
    scales = np.where(largest > 0, largest / np.float32(LARGEST_CODE), np.float32(1)).astype(np.float32)
    unit = unit_of(values, float(largest.max(initial=0)))
    if unit:
        beyond = np.maximum(np.rint(np.abs(values) / np.float32(unit)) - LARGEST_CODE, 0)
        others_lose = np.count_nonzero(values, axis=others, keepdims=True) * LEVEL_NOISE
        scales = np.where((largest > 0) & ((beyond**2).sum(axis=others, keepdims=True) <= others_lose), unit, scales)
        scales = scales.astype(np.float32)
    else:
        units = np.array([_own_unit(row) for row in np.moveaxis(values, axis, 0).reshape(scales.size, -1)], np.float32)
        scales = np.where(units.reshape(scales.shape) > 0, units.reshape(scales.shape), scales)
        finer = np.floor(LARGEST_CODE * 1.001 * scales / np.where(largest > 0, largest, np.inf))
        scales = scales / np.maximum(finer, 1).astype(np.float32)  # the bias is in these steps too
    levels: Array = _balanced(_within(values / scales, axis), others) if unit else np.rint(values / scales)
    codes = np.clip(levels, -LARGEST_CODE, LARGEST_CODE).astype(np.int8)
    quantization = Quantization(tuple(scales.reshape(-1).tolist()), (0,) * scales.size, axis)
    return Value(f"{weights.name}/codes", INT8, weights.shape, Constant.of(codes), quantization)


def _within(levels: Array, axis: int) -> Array:
    """Levels cut to codes, with what is cut off given to the nearest weights of the channel that have room for it.

    Those of the same input channel come first: pixels beside each other are alike.
    """
    levels = levels.copy()
    by_channel = np.moveaxis(levels, axis, 0)
    is_beyond = np.abs(np.rint(by_channel)) > LARGEST_CODE
    for channel in np.flatnonzero(is_beyond.reshape(len(by_channel), -1).any(axis=1)):
        row = by_channel[channel]
        places = np.indices(row.shape).reshape(row.ndim, -1)
        for place in np.argwhere(is_beyond[channel]):
            kept = np.clip(row[tuple(place)], -LARGEST_CODE, LARGEST_CODE)
            rest, row[tuple(place)] = row[tuple(place)] - kept, kept
            away = np.abs(places - place[:, None])
            if axis == 0:  # the last axis are input channels
                away[-1] = (away[-1] > 0) * sum(row.shape)
            for index in np.argsort(away.sum(axis=0), kind="stable"):
                near = tuple(places[:, index])
                given = np.clip(row[near] + rest, -LARGEST_CODE, LARGEST_CODE)
                if abs(given) > abs(row[near]) or rest * row[near] < 0:
                    rest, row[near] = rest - (given - row[near]), given
                if not rest:
                    break
    return levels


def _balanced(levels: Array, others: tuple[int, ...]) -> Array:
    """Levels rounded so that what is lost in one weight of a channel is made up by others.

    What a channel's inputs have in common, such as being positive, then is multiplied by the right number in sum.
    """
    codes = np.clip(np.rint(levels), -LARGEST_CODE, LARGEST_CODE)
    lost = levels - codes
    excess = np.rint(lost.sum(axis=others)).reshape(-1)
    axis = next(a for a in range(levels.ndim) if a not in others)
    by_channel, errors = np.moveaxis(codes, axis, 0), np.moveaxis(lost, axis, 0)
    for channel in np.flatnonzero(excess):
        row = by_channel[channel].reshape(-1).copy()
        way, error = np.sign(excess[channel]), errors[channel].reshape(-1)
        free = np.flatnonzero((np.abs(row + way) <= LARGEST_CODE) & (error * way > 0))
        count = min(int(abs(excess[channel])), free.size)
        row[free[np.argsort(-error[free] * way, kind="stable")[:count]]] += way
        by_channel[channel] = row.reshape(by_channel[channel].shape)
    return codes


def unit_of(values: Array, largest: float) -> float:
    """What all weights are multiples of when they were eight-bit codes before; 0 when they were not."""
    sizes = np.abs(values)
    unit = float(sizes.min(where=sizes > largest * SMALLEST_SHARE, initial=np.inf))
    if not np.isfinite(unit) or largest > MOST_LEVELS * unit:
        return 0.0
    unit = float(np.float32(largest / round(largest / unit)))  # the smallest has fewer digits: it is a difference
    levels = sizes / np.float32(unit)
    return unit if float(np.abs(levels - np.rint(levels)).max()) < ROUNDING else 0.0


def _own_unit(values: Array) -> float:
    """What the weights of one channel are small whole multiples of, up to the largest code; 0 for nothing."""
    sizes = np.abs(values)
    largest = float(sizes.max(initial=0))
    smallest = float(sizes.min(where=sizes > largest * SMALLEST_SHARE, initial=np.inf))
    if not largest:
        return 0.0
    for code in range(1, min(LARGEST_CODE, int(LARGEST_CODE * smallest / largest) + 1) + 1):
        unit = smallest / code
        if largest > (LARGEST_CODE + ROUNDING) * unit:
            return 0.0
        levels = sizes / np.float32(unit)
        if float(np.abs(levels - np.rint(levels)).max()) < EXACT:
            return unit
    return 0.0


def widened(program: Program, operation: Operation, weights: Value, unit: float, source: Value) -> tuple[Value, Value]:
    """(``source`` twice along its last axis, int8 weights for that); both as they were when 127 levels are enough.

        x ─FULLY_CONNECTED(w)   becomes   x,x ─CONCATENATION─ FULLY_CONNECTED(w cut to 127 levels, what was cut off)

    XNNPACK's kernels for unsigned weights are as slow as float.

    Args:
        program: the program; the joining of the two is put before ``operation``.
        operation: the one that multiplies ``source`` by the weights.
        weights: float32 multiples of ``unit``, output channels first.
        unit: what one level is worth.
        source: values or codes.
    """
    levels: Array = np.rint(weights.content.numpy() / np.float32(unit))
    first = np.clip(levels, -LARGEST_CODE, LARGEST_CODE)
    rest = levels - first
    if not rest.any() or np.abs(rest).max() > LARGEST_CODE:
        return source, weights
    codes = np.concatenate([first, rest], axis=-1).astype(np.int8)
    count = codes.shape[0]
    quantization = Quantization((unit,) * count, (0,) * count, 0)
    shape = (*source.shape[:-1], 2 * source.shape[-1])
    twice = Value(f"{source.name}/twice", source.dtype, shape, None, source.quantization)
    joining = Operation(
        "CONCATENATION", [source, source], [twice], {"axis": len(shape) - 1, "activation": ""}, operation.nodes
    )
    program.operations.insert(program.operations.index(operation), joining)
    return twice, Value(f"{weights.name}/wide", INT8, codes.shape, Constant.of(codes), quantization)
