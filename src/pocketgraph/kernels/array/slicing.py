"""Parts of tensors by position: Slice, StridedSlice and its masks, and the gradients that put parts back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pocketgraph.kernels.arrays import Array, ints, reserve
from pocketgraph.kernels.registry import kernel


@kernel("Slice")
def slice_(input: Array, begin: Array, size: Array) -> Array:
    """From ``begin``, ``size`` elements an axis; -1 takes all that is left."""
    starts, sizes = ints(begin), ints(size)
    if not len(starts) == len(sizes) == input.ndim:
        raise ValueError(f"{len(starts)} starts and {len(sizes)} sizes for a tensor of rank {input.ndim}")
    index: list[Any] = []
    for axis, (start, count, whole) in enumerate(zip(starts, sizes, input.shape, strict=True)):
        stop = whole if count == -1 else start + count
        if not 0 <= start <= whole or not start <= stop <= whole:
            raise ValueError(f"Expected begin[{axis}] and size[{axis}] inside 0..{whole}, got {start} and {count}")
        index.append(slice(start, stop))
    index.append(Ellipsis)
    return np.asarray(input[tuple(index)])


def _within(starts: Array, sizes: tuple[int, ...], whole: tuple[int, ...]) -> tuple[slice, ...]:
    """So many elements an axis, from the starts, which are moved to where all of them are inside.

    Raises:
        ValueError: not one start and size an axis, or more elements than there are.
    """
    begin = ints(starts)
    if not len(begin) == len(sizes) == len(whole) or any(
        not 0 <= n <= size for n, size in zip(sizes, whole, strict=True)
    ):
        raise ValueError(f"{list(sizes)} elements from {list(begin)} of a tensor of shape {list(whole)}")
    places = (min(max(start, 0), size - n) for start, n, size in zip(begin, sizes, whole, strict=True))
    return tuple(slice(start, start + n) for start, n in zip(places, sizes, strict=True))


@kernel("XlaDynamicSlice")
def xla_dynamic_slice(input: Array, start_indices: Array, size_indices: Array) -> Array:
    return np.asarray(input[_within(start_indices, ints(size_indices), input.shape)])


@kernel("XlaDynamicUpdateSlice")
def xla_dynamic_update_slice(input: Array, update: Array, indices: Array) -> Array:
    place = _within(indices, update.shape, input.shape)
    result: Array = input.copy()
    result[place] = update
    return result


def strided_index(
    begin: Array,
    end: Array,
    strides: Array,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> tuple[Any, ...]:
    """The NumPy index that a StridedSlice means. Bit i of a mask speaks of entry i; the ellipsis wins over a new axis,
    a new axis over shrinking.

    Raises:
        ValueError: two ellipses, a stride of 0, or lists of different lengths.
    """
    starts, stops, steps = ints(begin), ints(end), ints(strides)
    if not len(starts) == len(stops) == len(steps):
        raise ValueError(f"begin, end and strides have {len(starts)}, {len(stops)} and {len(steps)} entries")
    index: list[Any] = []
    for i, (start, stop, step) in enumerate(zip(starts, stops, steps, strict=True)):
        bit = 1 << i
        if ellipsis_mask & bit:
            if Ellipsis in index:
                raise ValueError("Multiple ellipses in slice spec not allowed")
            index.append(Ellipsis)
        elif new_axis_mask & bit:
            index.append(None)
        elif step == 0:
            raise ValueError(f"strides[{i}] must be non-zero")
        elif shrink_axis_mask & bit:
            if step < 0:
                raise ValueError("only stride 1 allowed on non-range indexing")
            index.append(start)
        else:
            index.append(slice(None if begin_mask & bit else start, None if end_mask & bit else stop, step))
    if Ellipsis not in index:
        index.append(Ellipsis)
    return tuple(index)


@kernel("StridedSlice")
def strided_slice(
    input: Array,
    begin: Array,
    end: Array,
    strides: Array,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Array:
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    return np.asarray(input[strided_index(begin, end, strides, *masks)])


def registers_put(op: str, put: Callable[[Any, tuple[Any, ...], Array], Any]) -> None:
    """Enters the kernel of an op that puts values where a StridedSlice would take them.

    Args:
        put: of the op's first input, a NumPy index and the values, what the op gives.
    """

    @kernel(op)
    def strided_slice_put(
        into: Any,
        begin: Array,
        end: Array,
        strides: Array,
        value: Array,
        *,
        begin_mask: int = 0,
        end_mask: int = 0,
        ellipsis_mask: int = 0,
        new_axis_mask: int = 0,
        shrink_axis_mask: int = 0,
    ) -> Any:
        masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
        return put(into, strided_index(begin, end, strides, *masks), value)


def _spread(shape: Array, index: tuple[Any, ...], dy: Array) -> Array:
    result = np.full(reserve(ints(shape), dy.dtype), b"" if dy.dtype == object else 0, dtype=dy.dtype)
    result[index] = dy
    return result


def _updated(tensor: Array, index: tuple[Any, ...], value: Array) -> Array:
    """Values of any shape change nothing where there is no place for any, as in TensorFlow."""
    result: Array = tensor.copy()
    if result[index].size:
        result[index] = value
    return result


registers_put("StridedSliceGrad", _spread)
registers_put("TensorStridedSliceUpdate", _updated)
