"""Kernels that make small tensors or tell them apart, for the rounds of loops: ranges, new axes, equality, one-hot.

As in small_tensor_math: the same values, and whatever is not plain goes to the kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.kernels.arrays import PLAIN, Array
from pocketgraph.runtime.engines.kernel_makers import Call, Constants, quickens
from pocketgraph.runtime.engines.scalar_arithmetic import FALSE, TRUE

MOST = 1 << 16  # elements; the kernels look whether there is memory for more
INT32 = np.dtype(np.int32)


@quickens("Range")
def _range(node: Node, constants: Constants, call: Call) -> Call | None:
    arange = np.arange

    def range_(start: Array, limit: Array, delta: Array) -> Any:
        if start.dtype is not INT32 or start.size != 1 or limit.size != 1 or delta.size != 1:
            return call(start, limit, delta)
        first, last, step = start.item(), limit.item(), delta.item()
        if step < 1 or not first <= last <= first + MOST:
            return call(start, limit, delta)
        return arange(first, last, step, dtype=INT32)

    return range_


@quickens("ExpandDims")
def _expand_dims(node: Node, constants: Constants, call: Call) -> Call | None:
    if 1 not in constants or constants[1].size != 1:
        return None
    axis = int(constants[1].item())
    if axis == -1:
        place: Any = (..., None)
    elif 0 <= axis <= 8:
        place = (*(slice(None),) * axis, None, ...)
    else:
        return None

    def expand_dims(input: Array, dim: Array) -> Any:
        return input[place] if axis <= input.ndim else call(input, dim)

    return expand_dims


@quickens("Equal", "NotEqual")
def _equal(node: Node, constants: Constants, call: Call) -> Call | None:
    differs = node.op == "NotEqual"
    compare = np.not_equal if differs else np.equal

    def equal(x: Array, y: Array) -> Any:
        if not x.ndim and not y.ndim and x.dtype is y.dtype and x.dtype in PLAIN:
            return TRUE if differs != (x.item() == y.item()) else FALSE
        if x.dtype is not y.dtype or x.dtype not in PLAIN or (x.shape != y.shape and x.ndim and y.ndim):
            return call(x, y)
        found = compare(x, y)
        return found if type(found) is np.ndarray else np.asarray(found)

    return equal


@quickens("OneHot")
def _one_hot(node: Node, constants: Constants, call: Call) -> Call | None:
    """The new axis last, of constant size and values."""
    if node.attr("axis", -1) != -1 or not {1, 2, 3} <= constants.keys() or constants[1].size != 1:
        return None
    depth, on, off = int(constants[1].item()), constants[2], constants[3]
    if not 0 < depth <= 4096 or on.ndim or off.ndim or on.dtype != off.dtype or on.dtype not in PLAIN:
        return None
    places, where = np.arange(depth), np.where

    def one_hot(indices: Array, depth_: Array, on_value: Array, off_value: Array) -> Any:
        if indices.size * depth > MOST:
            return call(indices, depth_, on_value, off_value)
        return where(indices[..., None] == places, on, off)

    return one_hot
