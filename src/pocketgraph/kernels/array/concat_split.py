"""Tensors put together and taken apart along an axis: Concat, Pack, Split, Tile, Reverse, Roll."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.budgets import check_memory
from pocketgraph.graph import Shape
from pocketgraph.kernels.arrays import Array, axis_of, check_count, ints, is_float, reserve
from pocketgraph.kernels.registry import kernel


def concatenated(values: tuple[Array, ...], axis: Array) -> Array:
    """The values one after another along ``axis``.

    Raises:
        ValueError: shapes that do not fit, or types that differ.
    """
    along = axis_of(axis, values[0].ndim, "concat dimension")
    first = values[0]
    for value in values[1:]:
        if value.shape == first.shape and value.dtype is first.dtype:
            continue
        same = value.ndim == values[0].ndim and all(
            a == b for d, (a, b) in enumerate(zip(value.shape, values[0].shape, strict=True)) if d != along
        )
        if not same:
            raise ValueError(f"shapes that do not fit: {list(values[0].shape)} and {list(value.shape)}")
        if value.dtype != values[0].dtype:
            raise ValueError(f"operands of different types, {values[0].dtype} and {value.dtype}")
    check_memory(sum([value.nbytes for value in values]), "all of them in a row")
    return np.concatenate(values, axis=along)


kernel("Concat")(lambda concat_dim, *values: concatenated(values, concat_dim))
kernel("ConcatV2")(lambda *values_and_axis: concatenated(values_and_axis[:-1], values_and_axis[-1]))


@kernel("ParallelConcat")
def parallel_concat(*values: Array, shape: Shape) -> Array:
    """Rows (tensors whose first size is 1) into one tensor, of the shape that is said."""
    if any(value.shape[:1] != (1,) for value in values):
        raise ValueError(f"the first size of each must be 1: {[list(value.shape) for value in values][:9]}")
    result = concatenated(values, np.array(0))
    if result.shape != shape.dims:
        raise ValueError(f"{len(values)} rows of {list(values[0].shape)} do not make {shape}")
    return result


@kernel("Pack")
def pack(*values: Array, axis: int = 0) -> Array:
    for value in values[1:]:
        if value.shape != values[0].shape:
            raise ValueError(f"shapes that do not fit: {list(values[0].shape)} and {list(value.shape)}")
    check_memory(len(values) * values[0].nbytes, "all of them in a row")
    return np.stack(values, axis=axis_of(axis, values[0].ndim + 1))


@kernel("Unpack")
def unpack(value: Array, *, num: int, axis: int = 0) -> tuple[Array, ...]:
    along = axis_of(axis, value.ndim)
    if value.shape[along] != num:
        raise ValueError(f"Input shape axis {axis} must equal {num}, got shape {list(value.shape)}")
    before: tuple[Any, ...] = (slice(None),) * along
    places = [(*before, i, ...) for i in range(num)]
    return tuple([value[place] for place in places])


@kernel("Split")
def split(split_dim: Array, value: Array, *, num_split: int) -> tuple[Array, ...]:
    along = axis_of(split_dim, value.ndim, "split dimension")
    check_count(num_split)
    if not num_split or value.shape[along] % num_split:
        raise ValueError(f"a dimension of {value.shape[along]} does not split into {num_split} equal parts")
    size = value.shape[along] // num_split
    before: tuple[Any, ...] = (slice(None),) * along
    places = [(*before, slice(start * size, (start + 1) * size)) for start in range(num_split)]
    return tuple([value[place] for place in places])


@kernel("SplitV")
def split_v(value: Array, size_splits: Array, split_dim: Array, *, num_split: int) -> tuple[Array, ...]:
    """Parts of the given sizes; one of them may be -1, the rest."""
    along = axis_of(split_dim, value.ndim, "split dimension")
    sizes = list(ints(size_splits))
    if len(sizes) != num_split or any(s < -1 for s in sizes) or sizes.count(-1) > 1:
        raise ValueError(f"{sizes} are no sizes of {num_split} parts")
    if -1 in sizes:
        sizes[sizes.index(-1)] = value.shape[along] - sum(s for s in sizes if s != -1)
    if sum(sizes) != value.shape[along] or min(sizes) < 0:
        raise ValueError(f"a dimension of {value.shape[along]} does not split into {sizes}")
    return tuple(np.split(value, np.cumsum(sizes)[:-1], axis=along))


@kernel("Tile")
def tile(input: Array, multiples: Array) -> Array:
    times = ints(multiples)
    if len(times) != input.ndim:
        raise ValueError(f"{len(times)} multiples for a tensor of rank {input.ndim}")
    if any(t < 0 for t in times):
        raise ValueError(f"Expected multiples of 0 or more, got {list(times)}")
    sizes = reserve([s * t for s, t in zip(input.shape, times, strict=True)], input.dtype)
    more = [axis for axis, count in enumerate(times) if count != 1]
    if len(more) == 1 and input.shape[more[0]] == 1:
        return input.repeat(times[more[0]], more[0])
    if all(count == 1 or size == 1 for count, size in zip(times, input.shape, strict=True)):
        return np.array(np.broadcast_to(input, sizes))
    return np.tile(input, times)


@kernel("Reverse")
def reverse(tensor: Array, dims: Array) -> Array:
    """The first form: one truth value an axis."""
    if dims.size != tensor.ndim:
        raise ValueError(f"{dims.size} entries for a tensor of rank {tensor.ndim}")
    turned = tuple(axis for axis, turn in enumerate(dims.ravel().tolist()) if turn)
    return np.array(np.flip(tensor, turned), dtype=tensor.dtype)


@kernel("ReverseV2")
def reverse_v2(tensor: Array, axis: Array) -> Array:
    axes = tuple(axis_of(a, tensor.ndim) for a in ints(axis))
    if len(set(axes)) != len(axes):
        raise ValueError(f"axis {list(axes)} holds one twice")
    return np.asarray(np.flip(tensor, axes)) if axes else tensor.copy()


@kernel("ReverseSequence")
def reverse_sequence(input: Array, seq_lengths: Array, *, seq_dim: int, batch_dim: int = 0) -> Array:
    """In each entry of the batch, the first ``seq_lengths`` steps turned round."""
    if batch_dim == seq_dim or min(batch_dim, seq_dim) < 0:
        raise ValueError(f"seq_dim {seq_dim} and batch_dim {batch_dim} must be two axes, counted from the front")
    batch_dim, seq_dim = axis_of(batch_dim, input.ndim), axis_of(seq_dim, input.ndim)
    batch, steps = input.shape[batch_dim], input.shape[seq_dim]
    lengths = ints(seq_lengths)
    if len(lengths) != batch or max(lengths, default=0) > steps or min(lengths, default=0) < 0:
        raise ValueError(f"lengths {list(lengths)[:10]} do not fit a batch of {[batch, steps]}")
    result = np.array(input, order="C")
    place: list[Any] = [slice(None)] * input.ndim
    backwards = list(place)
    for entry, length in enumerate(lengths):
        if length > 1:
            place[batch_dim] = backwards[batch_dim] = entry
            place[seq_dim], backwards[seq_dim] = slice(length), slice(length - 1, None, -1)
            result[tuple(place)] = input[tuple(backwards)]
    return result


@kernel("Roll")
def roll(input: Array, shift: Array, axis: Array) -> Array:
    result = input
    for by, along in zip(ints(shift), ints(axis), strict=True):
        result = np.roll(result, by, axis_of(along, input.ndim))
    return result


@kernel("TileGrad")
def tile_grad(input: Array, multiples: Array) -> Array:
    """The gradient of Tile by its input: the sum over all copies."""
    times = ints(multiples)
    if len(times) != input.ndim:
        raise ValueError(f"{len(times)} multiples for a tensor of rank {input.ndim}")
    if any(t < 1 or s % t for s, t in zip(input.shape, times, strict=True)):
        raise ValueError(f"{list(input.shape)} is not {list(times)} copies of anything")
    split = [part for s, t in zip(input.shape, times, strict=True) for part in (t, s // t)]
    kind = np.float64 if is_float(input.dtype) else input.dtype
    summed = input.reshape(split).sum(axis=tuple(range(0, 2 * input.ndim, 2)), dtype=kind)
    return np.asarray(summed).astype(input.dtype)
