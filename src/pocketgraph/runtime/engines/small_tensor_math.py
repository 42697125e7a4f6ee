"""Kernels of arithmetic for the small tensors of loops: the same operations without what is only there for other types.

The same values to the bit: each does with float32 (or what else it takes) what its kernel does. Whatever is not plain,
wrong inputs too, goes to the kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.kernels.arrays import PLAIN, Array
from pocketgraph.kernels.math.reductions import axes_of
from pocketgraph.runtime.engines.kernel_makers import Call, Constants, quickens

MOST = 1 << 20  # elements of a result; the kernel looks whether there is memory for more
FEW_ROWS = 32  # of a matrix, up to which copying what it is multiplied by takes as long as the product, or longer
MOST_HELD = 1 << 23  # elements of a matrix of which a copy is held

SINGLE = np.dtype(np.float32)
INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
TRUTH = np.dtype(np.bool_)


@quickens("MatMul")
def _mat_mul(node: Node, constants: Constants, call: Call) -> Call | None:
    if node.attr("transpose_a", False) or node.attr("transpose_b", False):
        return None
    held: tuple[Array | None, Array | None] = None, None

    def mat_mul(a: Array, b: Array) -> Any:
        nonlocal held
        if a.dtype is not SINGLE or b.dtype is not SINGLE or a.ndim != 2 or b.ndim != 2:
            return call(a, b)
        if a.shape[1] != b.shape[0] or a.shape[0] * b.shape[1] > MOST:
            return call(a, b)
        flags = b.flags
        if not flags.aligned and flags.c_contiguous and len(a) <= FEW_ROWS and b.size <= MOST_HELD:
            # Weights may lie at any byte of a mapped file: NumPy would copy them for each product.
            source, copied = held
            if source is b:
                b = b.copy() if copied is None else copied
                held = source, b
            else:
                held = b, None
        return a @ b

    return mat_mul


REDUCTIONS: dict[str, tuple[Any, Any]] = {
    "Max": (np.maximum.reduce, np.float32(-np.inf)),
    "Min": (np.minimum.reduce, np.float32(np.inf)),
    "All": (np.logical_and.reduce, None),
    "Any": (np.logical_or.reduce, None),
}
"""Not a trait: what reduces, and what it begins with where it takes float32 numbers; truths begin with NumPy's own."""


@quickens(*REDUCTIONS)
def _reduced(node: Node, constants: Constants, call: Call) -> Call | None:
    if 1 not in constants:
        return None
    keeps = bool(node.attr("keep_dims", False))
    reduce, first = REDUCTIONS[node.op]
    takes_truths = first is None
    known: dict[int, tuple[int, ...]] = {}

    def reduced(input: Array, axis: Array) -> Any:
        kind = input.dtype
        if takes_truths:
            if kind is not TRUTH:
                return call(input, axis)
        elif kind is not SINGLE and ((kind is not INT32 and kind is not INT64) or not input.size):
            return call(input, axis)
        axes = known.get(input.ndim)
        if axes is None:
            axes = known[input.ndim] = axes_of(axis, input.ndim)
        found = (
            reduce(input, axes, None, None, keeps, first) if kind is SINGLE else reduce(input, axes, None, None, keeps)
        )
        return found if type(found) is np.ndarray else np.asarray(found, kind)

    return reduced


@quickens("Pack")
def _pack(node: Node, constants: Constants, call: Call) -> Call | None:
    if node.attr("axis", 0) != 0:
        return None
    join = np.concatenate

    def pack(*values: Array) -> Any:
        first = values[0]
        kind, shape = first.dtype, first.shape
        for value in values[1:]:
            if value.dtype is not kind or value.shape != shape:
                return call(*values)
        if not shape:
            if kind is INT32 or kind is INT64 or kind is SINGLE:
                return np.array([value.item() for value in values], kind)
            return call(*values)
        if len(values) * first.size > MOST:
            return call(*values)
        rows = join(values)
        return rows.reshape(len(values), *shape)

    return pack


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
