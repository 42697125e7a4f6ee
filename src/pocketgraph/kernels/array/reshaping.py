"""Shapes asked for and changed: Shape, Reshape, Transpose, Squeeze, broadcasting."""

from __future__ import annotations

import math

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import INT32
from pocketgraph.kernels.arrays import Array, axis_of, ints, reserve
from pocketgraph.kernels.registry import kernel


@kernel("Shape")
def shape(input: Array, *, out_type: DType = INT32) -> Array:
    return np.array(input.shape, dtype=out_type.numpy)


@kernel("ShapeN")
def shape_n(*input: Array, out_type: DType = INT32) -> tuple[Array, ...]:
    return tuple(np.array(value.shape, dtype=out_type.numpy) for value in input)


@kernel("Rank")
def rank(input: Array) -> Array:
    return np.array(input.ndim, dtype=np.int32)


@kernel("Size")
def size(input: Array, *, out_type: DType = INT32) -> Array:
    return np.array(input.size, dtype=out_type.numpy)


@kernel("Reshape")
def reshape(tensor: Array, shape: Array) -> Array:
    """The same elements in another shape; one size may be -1.

    Beside a size of 0 the missing one is what the input's sizes other than 0 leave, as in TensorFlow: [0, 2, 3] becomes
    [0, 6] for [0, -1].
    """
    sizes = ints(shape)
    known = math.prod([s for s in sizes if s != -1])
    if sizes.count(-1) > 1:
        raise ValueError("Only one input size may be -1")
    if any(s < -1 for s in sizes):
        raise ValueError(f"a size below -1 in {list(sizes)}")
    if -1 in sizes:
        have = tensor.size
        if known == 0:
            have = math.prod([s for s in tensor.shape if s])
            known = math.prod([s for s in sizes if s > 0])
        elif have % known:
            raise ValueError(f"{have} elements do not divide into the shape {list(sizes)}")
        sizes = tuple(have // known if s == -1 else s for s in sizes)
        known = math.prod(sizes)
    if known != tensor.size:
        raise ValueError(
            f"Input to reshape is a tensor with {tensor.size} values, but the requested shape {list(sizes)} has {known}"
        )
    return tensor.reshape(sizes)


@kernel("ExpandDims")
def expand_dims(input: Array, dim: Array) -> Array:
    return np.expand_dims(input, axis_of(dim, input.ndim + 1, "dimension"))


@kernel("Squeeze")
def squeeze(input: Array, *, squeeze_dims: tuple[int, ...] = ()) -> Array:
    if not squeeze_dims:
        return input.reshape([s for s in input.shape if s != 1])
    dropped = {axis_of(d, input.ndim, "dimension") for d in squeeze_dims}
    for d in dropped:
        if input.shape[d] != 1:
            raise ValueError(f"Can not squeeze dim[{d}], expected a dimension of 1, got {input.shape[d]}")
    return input.reshape([s for d, s in enumerate(input.shape) if d not in dropped])


def _permutation(perm: Array, rank: int) -> tuple[int, ...]:
    order = tuple(axis_of(p, rank, "dimension") for p in ints(perm))
    if sorted(order) != list(range(rank)):
        raise ValueError(f"{list(order)} is no order of {rank} dimensions")
    return order


@kernel("Transpose")
def transpose(x: Array, perm: Array) -> Array:
    return np.transpose(x, _permutation(perm, x.ndim))


@kernel("ConjugateTranspose")
def conjugate_transpose(x: Array, perm: Array) -> Array:
    turned = np.transpose(x, _permutation(perm, x.ndim))
    return np.asarray(np.conjugate(turned)) if x.dtype.kind == "c" else turned


@kernel("InvertPermutation")
def invert_permutation(x: Array) -> Array:
    order = ints(x)
    if sorted(order) != list(range(len(order))):
        raise ValueError(f"{list(order)[:20]} is no permutation")
    result = np.empty_like(x)
    result[x] = np.arange(x.size, dtype=x.dtype)
    return result


@kernel("BroadcastTo")
def broadcast_to(input: Array, shape: Array) -> Array:
    sizes = reserve(ints(shape), input.dtype)
    return np.array(np.broadcast_to(input, sizes))


def broadcast_shapes(s0: tuple[int, ...], s1: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that two shapes broadcast to.

    Raises:
        ValueError: they do not.
    """
    rank = max(len(s0), len(s1))
    padded = [(1,) * (rank - len(s)) + s for s in (s0, s1)]
    for a, b in zip(*padded, strict=True):
        if a != b and 1 not in (a, b):
            raise ValueError(f"shapes that do not fit: {list(s0)} and {list(s1)}")
    return tuple(b if a == 1 else a for a, b in zip(*padded, strict=True))


kernel("BroadcastArgs")(lambda s0, s1: np.array(broadcast_shapes(ints(s0), ints(s1)), dtype=s0.dtype))


@kernel("BroadcastGradientArgs")
def broadcast_gradient_args(s0: Array, s1: Array) -> tuple[Array, Array]:
    """The axes over which the gradients of two broadcast operands are summed."""
    first, second = ints(s0), ints(s1)
    whole = broadcast_shapes(first, second)
    rank = len(whole)
    if first == second:
        return np.zeros(0, s0.dtype), np.zeros(0, s0.dtype)
    axes: list[list[int]] = [[], []]
    for axis in range(rank):
        sizes = [shape[axis - rank] if axis >= rank - len(shape) else 1 for shape in (first, second)]
        for which, mine in enumerate(sizes):
            if mine == 1:
                axes[which].append(axis)
    return np.array(axes[0], s0.dtype), np.array(axes[1], s0.dtype)


@kernel("ConcatOffset")
def concat_offset(concat_dim: Array, *shape: Array) -> tuple[Array, ...]:
    """Where each of several tensors begins in their concatenation."""
    axis = axis_of(concat_dim, shape[0].size, "dimension")
    offsets = []
    start = 0
    for sizes in shape:
        if any(a != b for d, (a, b) in enumerate(zip(ints(sizes), ints(shape[0]), strict=True)) if d != axis):
            raise ValueError(f"shapes that do not fit: {list(ints(shape[0]))} and {list(ints(sizes))}")
        offset = np.zeros_like(sizes)
        offset[axis] = start
        start += int(sizes[axis])
        offsets.append(offset)
    return tuple(offsets)


@kernel("UnravelIndex")
def unravel_index(indices: Array, dims: Array) -> Array:
    """Negative indices are divided towards 0, as in C, and so give negative places."""
    sizes = ints(dims)
    if min(sizes, default=1) < 1 or (indices.size and indices.max() >= math.prod(sizes)):
        raise ValueError(f"an index is out of bounds for the shape {list(sizes)}")
    places = []
    for size in reversed(sizes):
        places.append(np.fmod(indices, size))
        indices = (indices - places[-1]) // size
    return np.stack(places[::-1])


def _format_order(src_format: str, dst_format: str) -> list[int]:
    """For each axis of the second format, its place in the first."""
    if sorted(src_format) != sorted(dst_format):
        raise ValueError(f"{src_format} and {dst_format} do not name the same axes")
    return [src_format.index(axis) for axis in dst_format]


@kernel("DataFormatDimMap")
def data_format_dim_map(x: Array, *, src_format: str = "NHWC", dst_format: str = "NCHW") -> Array:
    """Axis numbers of one data format as those of another; what is beyond the last axis counts on in a circle, what is
    before the first is the last axis, unless whole circles before it."""
    places = np.argsort(_format_order(src_format, dst_format)).astype(x.dtype)
    axes = np.fmod(x + places.dtype.type(len(places)), len(places))
    return np.asarray(places[np.maximum(axes, -1)])


@kernel("DataFormatVecPermute")
def data_format_vec_permute(x: Array, *, src_format: str = "NHWC", dst_format: str = "NCHW") -> Array:
    """Sizes (or a pair for each axis) in the order of one data format put into the order of another; the spatial ones
    alone when there are only so many."""
    if x.ndim not in (1, 2) or x.shape[1:] not in ((), (2,)):
        raise ValueError(f"a vector or pairs are wanted, not the shape {list(x.shape)}")
    order = _format_order(src_format, dst_format)
    if x.shape[0] == len(src_format) - 2:
        spatial = [axis for axis in src_format if axis not in "NC"]
        order = [spatial.index(axis) for axis in dst_format if axis not in "NC"]
    if x.shape[0] != len(order):
        raise ValueError(f"{x.shape[0]} entries for the axes of {src_format}")
    return np.asarray(x[order])
