"""Kernels of arithmetic for the small tensors of loops: the same operations without what is only there for other types.

The same values to the bit: each does with float32 (or what else it takes) what its kernel does. Whatever is not plain,
wrong inputs too, goes to the kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.graph import DType, Node
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.math.reductions import axes_of
from pocketgraph.runtime.engines.kernel_makers import Call, Constants, quickens

MOST = 1 << 20  # elements of a product; the kernel looks whether there is memory for more
MOST_SQUARED = 4096  # elements that are looked through by their squares, on one thread

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
TRUTH = np.dtype(np.bool_)
ONE = np.float32(1)
LOWEST = {True: np.float32(-np.inf), False: np.float32(np.inf)}  # what an extreme begins with: whether the largest


@quickens("MatMul")
def _mat_mul(node: Node, constants: Constants, call: Call) -> Call | None:
    if node.attr("transpose_a", False) or node.attr("transpose_b", False):
        return None

    def mat_mul(a: Array, b: Array) -> Any:
        if a.dtype is not SINGLE or b.dtype is not SINGLE or a.ndim != 2 or b.ndim != 2:
            return call(a, b)
        if a.shape[1] != b.shape[0] or a.shape[0] * b.shape[1] > MOST:
            return call(a, b)
        return a @ b

    return mat_mul


@quickens("Max", "Min")
def _extreme(node: Node, constants: Constants, call: Call) -> Call | None:
    if 1 not in constants:
        return None
    keeps, largest = bool(node.attr("keep_dims", False)), node.op == "Max"
    reduce: Any = np.maximum.reduce if largest else np.minimum.reduce
    known: dict[int, tuple[int, ...]] = {}
    first = LOWEST[largest]

    def extreme(input: Array, axis: Array) -> Any:
        kind = input.dtype
        if kind is not SINGLE and ((kind is not INT32 and kind is not INT64) or not input.size):
            return call(input, axis)
        axes = known.get(input.ndim)
        if axes is None:
            axes = known[input.ndim] = axes_of(axis, input.ndim)
        found = (
            reduce(input, axes, None, None, keeps, first) if kind is SINGLE else reduce(input, axes, None, None, keeps)
        )
        return found if type(found) is np.ndarray else np.asarray(found, kind)

    return extreme


@quickens("All", "Any")
def _truths(node: Node, constants: Constants, call: Call) -> Call | None:
    if 1 not in constants:
        return None
    keeps = bool(node.attr("keep_dims", False))
    reduce: Any = np.logical_and.reduce if node.op == "All" else np.logical_or.reduce
    known: dict[int, tuple[int, ...]] = {}

    def truths(input: Array, axis: Array) -> Any:
        if input.dtype is not TRUTH:
            return call(input, axis)
        axes = known.get(input.ndim)
        if axes is None:
            axes = known[input.ndim] = axes_of(axis, input.ndim)
        found = reduce(input, axes, None, None, keeps)
        return found if type(found) is np.ndarray else np.asarray(found)

    return truths


@quickens("Mean")
def _mean(node: Node, constants: Constants, call: Call) -> Call | None:
    if 1 not in constants:
        return None
    add: Any = np.add.reduce
    keeps = bool(node.attr("keep_dims", False))
    known: dict[tuple[int, ...], tuple[tuple[int, ...], Any]] = {}

    def mean(input: Array, axis: Array) -> Any:
        if input.dtype is not SINGLE:
            return call(input, axis)
        found = known.get(input.shape)
        if found is None:
            if len(known) >= 64:
                known.clear()
            axes = axes_of(axis, input.ndim)
            count = np.float64(int(np.prod([input.shape[a] for a in axes], dtype=np.int64)))
            found = known[input.shape] = axes, count
        axes, count = found
        total = np.true_divide(add(input, axes, DOUBLE, None, keeps), count)
        return total.astype(SINGLE) if type(total) is np.ndarray else np.asarray(total, SINGLE)

    return mean


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


@quickens("Sigmoid")
def _sigmoid(node: Node, constants: Constants, call: Call) -> Call | None:
    absolute, negative, exp, where = np.abs, np.negative, np.exp, np.where

    def sigmoid(x: Array) -> Any:
        if x.dtype is not SINGLE or not x.ndim:
            return call(x)
        decay = absolute(x)
        negative(decay, decay)
        exp(decay, decay)
        top = where(x >= 0, ONE, decay)
        decay += ONE
        top /= decay
        return top

    return sigmoid


@quickens("Relu")
def _relu(node: Node, constants: Constants, call: Call) -> Call | None:
    maximum, zero = np.maximum, np.float32(0)

    def relu(features: Array) -> Any:
        return maximum(features, zero) if features.dtype is SINGLE and features.ndim else call(features)

    return relu


@quickens("BiasAdd")
def _bias_add(node: Node, constants: Constants, call: Call) -> Call | None:
    if node.attr("data_format", b"NHWC") not in (b"NHWC", "NHWC"):
        return None

    def bias_add(value: Array, bias: Array) -> Any:
        if value.dtype is not SINGLE or bias.dtype is not SINGLE or value.ndim < 2 or bias.ndim != 1:
            return call(value, bias)
        return value + bias if value.shape[-1] == bias.shape[0] else call(value, bias)

    return bias_add


@quickens("ArgMax", "ArgMin")
def _position(node: Node, constants: Constants, call: Call) -> Call | None:
    kind = node.attr("output_type")
    if 1 not in constants or constants[1].size != 1 or int(constants[1].item()) < 0:
        return None
    along, target = int(constants[1].item()), kind.numpy if isinstance(kind, DType) else INT64
    find: Any = np.ndarray.argmax if node.op == "ArgMax" else np.ndarray.argmin

    def position(input: Array, dimension: Array) -> Any:
        if input.dtype is not SINGLE or along >= input.ndim or not input.size:
            return call(input, dimension)
        found = find(input, along)
        at = input.ravel()[found] if input.ndim == 1 else None
        if at is not None:
            return call(input, dimension) if at != at else np.asarray(found, target)
        if input.size <= MOST_SQUARED:  # a NaN is in the sum of squares
            flat = input.ravel()
            squares = flat.dot(flat)
            holds_nan = squares != squares
        else:
            holds_nan = np.isnan(input).any()
        return call(input, dimension) if holds_nan else found.astype(target)

    return position


@quickens("LogicalNot")
def _logical_not(node: Node, constants: Constants, call: Call) -> Call | None:
    opposite = np.logical_not

    def logical_not(x: Array) -> Any:
        found = opposite(x)
        return found if type(found) is np.ndarray else np.asarray(found)

    return logical_not


@quickens("Softmax")
def _softmax(node: Node, constants: Constants, call: Call) -> Call | None:
    exp = np.exp
    add: Any = np.add.reduce
    largest: Any = np.maximum.reduce
    first = LOWEST[True]

    def softmax(logits: Array) -> Any:
        if logits.dtype is not SINGLE or not logits.ndim:
            return call(logits)
        powers = logits - largest(logits, -1, None, None, True, first)
        exp(powers, powers)
        powers /= add(powers, -1, None, None, True)
        return powers

    return softmax
