"""Kernels of small ops with all that follows from constant inputs and attributes worked out once, before the run.

What such an op does takes NumPy less time than a kernel needs to read its parameters. A prepared call takes the same
inputs as the kernel and gives the same; whatever is not plain, wrong inputs too, it leaves to the kernel.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import DType, Node
from pocketgraph.graph.op_traits import slice_masks
from pocketgraph.kernels.arrays import Array, ints
from pocketgraph.kernels.math.reductions import axes_of
from pocketgraph.kernels.ranks import has_wrong_rank
from pocketgraph.litert.host import is_x86
from pocketgraph.runtime.engines import scalar_arithmetic, small_tensor_math  # noqa: F401 - rows of the table
from pocketgraph.runtime.engines.kernel_makers import MAKERS, Call, Constants, quickens
from pocketgraph.runtime.engines.small_tensor_math import INT32, INT64

MOST_KNOWN = 64  # sizes for which a call keeps what follows from them

MANY = 1 << 22  # elements of which the kernel is to say whether it may join them
LARGE_TILE = 1 << 16  # elements of a result, from which what NumPy's own function takes besides is nothing
LARGE = 1 << 31  # products of sizes below this are the same in every integer type


def prepared(node: Node, constants: Constants, call: Call) -> Call:
    """A quicker call for the node's kernel where there is one, otherwise ``call``.

    Args:
        constants: its constant inputs.
        call: the kernel with its attributes; it takes all inputs.
    """
    maker = MAKERS.get(node.op)
    if maker is None or has_wrong_rank(node.op, constants):
        return call
    try:
        return maker(node, constants, call) or call
    except (PocketgraphError, ValueError, TypeError, KeyError):
        return call  # it will complain when it runs


@quickens("GatherV2")
def _gather(node: Node, constants: Constants, call: Call) -> Call | None:
    from pocketgraph.kernels.array.gather_scatter import SMALL, UNSIGNED

    if node.attr("batch_dims", 0) or 2 not in constants or constants[2].size != 1 or int(constants[2].item()) != 0:
        return None

    unsigned = UNSIGNED[INT32]

    def gather(params: Array, indices: Array, axis: Array) -> Any:
        if params.ndim and params.size * indices.size <= SMALL:
            kind = indices.dtype
            try:
                if kind is INT32:  # a negative number is a large one without its sign
                    result = params.take(indices.view(unsigned), 0)
                elif kind is INT64 and (not indices.size or _least(indices) >= 0):
                    result = params.take(indices, 0)
                else:
                    return call(params, indices, axis)
            except IndexError:
                return call(params, indices, axis)
            return result if type(result) is np.ndarray else np.asarray(result, dtype=params.dtype)
        return call(params, indices, axis)

    return gather


def _least(indices: Array) -> Any:
    """The smallest of some numbers; of a few, Python finds it sooner than NumPy."""
    return min(indices.ravel().tolist()) if indices.size <= 16 else indices.min()


@quickens("Slice")
def _slice(node: Node, constants: Constants, call: Call) -> Call | None:
    if not {1, 2} <= constants.keys():
        return None
    starts, sizes = ints(constants[1]), ints(constants[2])
    if len(starts) != len(sizes) or min(starts, default=0) < 0 or min(sizes, default=0) < -1:
        return None
    place = (*(slice(start, None if n == -1 else start + n) for start, n in zip(starts, sizes, strict=True)), ...)
    rank = len(starts)
    least = tuple(start + max(n, 0) for start, n in zip(starts, sizes, strict=True))

    def slice_(input: Array, begin: Array, size: Array) -> Any:
        shape = input.shape
        if len(shape) != rank:
            return call(input, begin, size)
        for wanted, there in zip(least, shape, strict=True):
            if wanted > there:
                return call(input, begin, size)
        return input[place]

    return slice_


@quickens("Tile")
def _tile(node: Node, constants: Constants, call: Call) -> Call | None:
    """Axes of size 1 repeated, as lookups of embeddings do with their masks, and detectors with their anchors."""

    def tile(input: Array, multiples: Array) -> Any:
        if multiples.ndim != 1:
            return call(input, multiples)
        shape, times = input.shape, multiples.tolist()
        if len(times) == 2 == len(shape) and times[0] == 1 and 0 <= times[1] <= 4096 and shape[1] == 1:
            return input.repeat(times[1], 1)
        if len(times) != len(shape):
            return call(input, multiples)
        elements, repeated, axis = 1, 0, 0
        for place, size in enumerate(shape):
            if (count := times[place]) == 1:
                times[place] = size
            elif size != 1 or count < 0:
                return call(input, multiples)
            else:
                repeated, axis = repeated + 1, place
            elements *= times[place]
        if elements > LARGE_TILE:
            return call(input, multiples)
        if repeated == 1:
            return input.repeat(times[axis], axis)
        made = np.empty(times, input.dtype)
        made[...] = input
        return made

    return tile


@quickens("Prod")
def _product(node: Node, constants: Constants, call: Call) -> Call | None:
    """Of sizes: a vector of integers as a whole."""
    if 1 not in constants or constants[1].size != 1 or int(constants[1].item()) not in (0, -1):
        return None
    keeps = bool(node.attr("keep_dims", False))

    def product(input: Array, axis: Array) -> Any:
        if input.ndim != 1 or input.size > 16 or keeps or input.dtype not in (INT32, INT64):
            return call(input, axis)
        found = math.prod(input.tolist())
        return np.asarray(found, input.dtype) if -LARGE < found < LARGE else call(input, axis)

    return product


@quickens("ConcatV2")
def _concat(node: Node, constants: Constants, call: Call) -> Call | None:
    position = len(node.data_inputs) - 1
    if position not in constants or constants[position].size != 1:
        return None
    axis = int(constants[position].item())
    if not -32 <= axis < 32:  # NumPy takes the smallest integer for "all axes"
        return None
    join = np.concatenate

    def concat(*values_and_axis: Array) -> Any:
        first = values_and_axis[0]
        kind, rank = first.dtype, first.ndim
        for value in values_and_axis[1:-1]:
            if value.dtype is not kind or value.ndim != rank or value.size > MANY:
                return call(*values_and_axis)
        try:
            return join(values_and_axis[:-1], axis)
        except ValueError:
            return call(*values_and_axis)

    return concat


@quickens("StridedSlice")
def _strided_slice(node: Node, constants: Constants, call: Call) -> Call | None:
    if not {1, 2, 3} <= constants.keys():
        return _row(call) if takes_row(node) else None
    from pocketgraph.kernels.array.slicing import strided_index

    index = strided_index(constants[1], constants[2], constants[3], *slice_masks(node.attr).values())

    def strided_slice(input: Array, begin: Array, end: Array, strides: Array) -> Any:
        return input[index]  # the index ends with or holds an ellipsis: always an array

    return strided_slice


def takes_row(node: Node) -> bool:
    """Whether a StridedSlice of one number takes that row, ``x[i]``."""
    return [*slice_masks(node.attr).values()] == [0, 0, 0, 0, 1]


def row_at(call: Call) -> Call:
    """Takes the row of this number; ``call`` takes the number as a vector, with an end and a stride."""
    one = np.ones(1, np.int32)

    def row(input: Array, number: Array) -> Any:
        try:
            return input[number.item(), ...]
        except (IndexError, ValueError):
            begin = np.reshape(number, 1)
            return call(input, begin, begin + 1, one.astype(begin.dtype))

    return row


def _row(call: Call) -> Call:
    """Takes one row whose number is computed."""

    def row(input: Array, begin: Array, end: Array, strides: Array) -> Any:
        if begin.size == end.size == strides.size == 1 and strides.item() > 0 and begin.ndim == 1:
            return input[begin.item(), ...]
        return call(input, begin, end, strides)

    return row


@quickens("Reshape")
def _reshape(node: Node, constants: Constants, call: Call) -> Call | None:
    if 1 not in constants:
        return None
    sizes = ints(constants[1])
    if any(size < 0 for size in sizes):
        if sizes.count(-1) != 1 or min(sizes) < -1 or 0 in sizes:
            return None
    elif 0 in sizes:
        return None

    def reshape(tensor: Array, shape: Array) -> Any:
        try:
            return tensor.reshape(sizes)
        except ValueError:
            return call(tensor, shape)

    return reshape


@quickens("Squeeze")
def _squeeze(node: Node, constants: Constants, call: Call) -> Call | None:
    dims = node.attr("squeeze_dims", ())
    if not isinstance(dims, tuple) or len(dims) != 1:
        return None
    axis = int(dims[0])

    def squeeze(input: Array) -> Any:
        try:
            return input.squeeze(axis)
        except ValueError:
            return call(input)

    return squeeze


@quickens("Split")
def _split(node: Node, constants: Constants, call: Call) -> Call | None:
    count = node.attrs["num_split"]
    if not isinstance(count, int):
        return None
    if 0 not in constants or constants[0].size != 1 or not 0 < count <= 64:
        return None
    axis = int(constants[0].item())
    if not 0 <= axis < 32:
        return None
    before = (slice(None),) * axis
    known: dict[int, list[Any]] = {}  # by the size of a part; a few are enough

    def split(split_dim: Array, value: Array) -> Any:
        shape = value.shape
        if axis >= len(shape) or shape[axis] % count:
            return call(split_dim, value)
        size = shape[axis] // count
        places = known.get(size)
        if places is None:
            if len(known) >= MOST_KNOWN:
                known.clear()
            places = known[size] = [(*before, slice(i * size, (i + 1) * size)) for i in range(count)]
        return tuple([value[place] for place in places])

    return split


@quickens("Cast")
def _cast(node: Node, constants: Constants, call: Call) -> Call | None:
    source, target = node.attrs["SrcT"], node.attrs["DstT"]
    if not isinstance(source, DType) or not isinstance(target, DType) or target.name == "bool":
        return None
    before, after = source.numpy, target.numpy
    if after.kind not in "iuf" or before.kind not in "iufb":
        return None
    # x86 makes the smallest integer of a float that fits into none, as TensorFlow's kernels do on it.
    if before.kind == "f" and after.kind != "f" and not (is_x86() and after in (INT32, INT64)):
        return None
    if before.itemsize == 2 and before.kind == "f":
        return None

    def cast(x: Array) -> Any:
        return x.astype(after, copy=False) if x.dtype == before and x.size <= MANY else call(x)

    return cast


@quickens("Sum")
def _sum(node: Node, constants: Constants, call: Call) -> Call | None:
    if 1 not in constants:
        return None

    add: Any = np.add.reduce
    keeps, single, double = bool(node.attr("keep_dims", False)), np.float32, np.float64
    known: dict[int, tuple[int, ...]] = {}

    def total(input: Array, axis: Array) -> Any:
        kind = input.dtype
        if kind != single and kind is not INT32 and kind is not INT64:
            return call(input, axis)
        axes = known.get(input.ndim)
        if axes is None:
            axes = known[input.ndim] = axes_of(axis, input.ndim)
        if kind is INT32 or kind is INT64:
            found = add(input, axes, kind, None, keeps)
            return found if type(found) is np.ndarray else np.asarray(found, kind)
        found = add(input, axes, double, None, keeps)
        return found.astype(single) if type(found) is np.ndarray else np.asarray(found, single)

    return total


@quickens("Shape")
def _shape(node: Node, constants: Constants, call: Call) -> Call | None:
    known: dict[tuple[int, ...], Any] = {}

    def shape(input: Array) -> Any:
        found = known.get(input.shape)
        if found is None:
            if len(known) >= MOST_KNOWN:
                known.clear()
            found = known[input.shape] = call(input)
            found.flags.writeable = False  # it is given again
        return found

    return shape
