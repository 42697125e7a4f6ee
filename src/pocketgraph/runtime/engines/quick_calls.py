"""Kernels of small ops with all that follows from constant inputs and attributes worked out once, before the run.

What such an op does takes NumPy less time than a kernel needs to read its parameters. A prepared call takes the same
inputs as the kernel and gives the same; whatever is not plain, wrong inputs too, it leaves to the kernel.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import DType, Node
from pocketgraph.kernels.arrays import Array, ints
from pocketgraph.runtime.engines.quick_math import MATH

Call = Callable[..., Any]
Constants = Mapping[int, Array]
"""The values of the inputs that are constants, by position."""
MOST_KNOWN = 64  # sizes for which a call keeps what follows from them

IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
"""Whether the processor makes the smallest integer of a float that fits into none, as TensorFlow's kernels do on it."""

INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)


def prepared(node: Node, constants: Constants, call: Call) -> Call:
    """A quicker call for the node's kernel where there is one, otherwise ``call``.

    Args:
        node: the node.
        constants: its constant inputs.
        call: the kernel with its attributes; it takes all inputs.
    """
    maker = MAKERS.get(node.op) or MATH.get(node.op)
    if maker is None:
        return call
    try:
        return maker(node, constants, call) or call
    except (PocketgraphError, ValueError, TypeError, KeyError):
        return call  # it will complain when it runs


def _gather(node: Node, constants: Constants, call: Call) -> Call | None:
    from pocketgraph.kernels.gathering import SMALL, UNSIGNED

    if node.attr("batch_dims", 0) or 2 not in constants or constants[2].size != 1 or int(constants[2].item()) != 0:
        return None

    unsigned = UNSIGNED[INT32]

    def gather(params: Array, indices: Array, axis: Array) -> Any:
        if params.ndim and params.size * indices.size <= SMALL:
            kind = indices.dtype
            try:
                if kind is INT32:  # a negative number is a large one without its sign
                    result = params.take(indices.view(unsigned), 0)
                elif kind is INT64 and (not indices.size or indices.min() >= 0):
                    result = params.take(indices, 0)
                else:
                    return call(params, indices, axis)
            except IndexError:
                return call(params, indices, axis)
            return result if type(result) is np.ndarray else np.asarray(result, dtype=params.dtype)
        return call(params, indices, axis)

    return gather


def _concat(node: Node, constants: Constants, call: Call) -> Call | None:
    position = len(node.data_inputs) - 1
    if position not in constants or constants[position].size != 1:
        return None
    axis = int(constants[position].item())
    join = np.concatenate

    def concat(*values_and_axis: Array) -> Any:
        first = values_and_axis[0]
        kind, rank = first.dtype, first.ndim
        for value in values_and_axis[1:-1]:
            if value.dtype is not kind or value.ndim != rank:
                return call(*values_and_axis)
        try:
            return join(values_and_axis[:-1], axis)
        except ValueError:
            return call(*values_and_axis)

    return concat


def _strided_slice(node: Node, constants: Constants, call: Call) -> Call | None:
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    if not {1, 2, 3} <= constants.keys():
        return _row(call) if [node.attr(m, 0) or 0 for m in masks] == [0, 0, 0, 0, 1] else None
    from pocketgraph.kernels.slicing import strided_index

    index = strided_index(constants[1], constants[2], constants[3], *(int(node.attr(m, 0) or 0) for m in masks))

    def strided_slice(input: Array, begin: Array, end: Array, strides: Array) -> Any:
        return input[index]  # the index ends with or holds an ellipsis: always an array

    return strided_slice


def _row(call: Call) -> Call:
    """Takes one row whose number is computed."""

    def row(input: Array, begin: Array, end: Array, strides: Array) -> Any:
        if begin.size == end.size == strides.size == 1 and strides.item() > 0 and begin.ndim == 1:
            return input[begin.item(), ...]
        return call(input, begin, end, strides)

    return row


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


def _split(node: Node, constants: Constants, call: Call) -> Call | None:
    count = node.attrs["num_split"]
    if not isinstance(count, int):
        return None
    if 0 not in constants or constants[0].size != 1 or not 0 < count <= 64:
        return None
    axis = int(constants[0].item())
    if axis < 0:
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


def _cast(node: Node, constants: Constants, call: Call) -> Call | None:
    source, target = node.attrs["SrcT"], node.attrs["DstT"]
    if not isinstance(source, DType) or not isinstance(target, DType) or target.name == "bool":
        return None
    before, after = source.numpy, target.numpy
    if after.kind not in "iuf" or before.kind not in "iufb":
        return None
    if before.kind == "f" and after.kind != "f" and not (IS_X86 and after in (INT32, INT64)):
        return None
    if before.itemsize == 2 and before.kind == "f":
        return None

    def cast(x: Array) -> Any:
        return x.astype(after, copy=False) if x.dtype == before else call(x)

    return cast


def _sum(node: Node, constants: Constants, call: Call) -> Call | None:
    if 1 not in constants:
        return None
    from pocketgraph.kernels.reductions import axes_of

    add: Any = np.add.reduce
    keeps, single, double = bool(node.attr("keep_dims", False)), np.float32, np.float64
    known: dict[int, tuple[int, ...]] = {}

    def total(input: Array, axis: Array) -> Any:
        if input.dtype != single:
            return call(input, axis)
        axes = known.get(input.ndim)
        if axes is None:
            axes = known[input.ndim] = axes_of(axis, input.ndim)
        found = add(input, axes, double, None, keeps)
        return found.astype(single) if type(found) is np.ndarray else np.asarray(found, single)

    return total


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


MAKERS: dict[str, Callable[[Node, Constants, Call], Call | None]] = {
    "GatherV2": _gather, "ConcatV2": _concat, "StridedSlice": _strided_slice, "Reshape": _reshape,
    "Squeeze": _squeeze, "Split": _split, "Cast": _cast, "Shape": _shape,
    "Sum": _sum,
}  # fmt: skip
"""By op: makes the quicker call, or None where the node is not plain."""
