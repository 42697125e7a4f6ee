"""Element-wise arithmetic of two tensors with broadcasting; what division and remainder mean for each type."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.arrays import PLAIN, Array, is_small_float, reserve, widened
from pocketgraph.kernels.registry import Value, kernel

Binary = Callable[[Any, Any], Any]
LARGE = 1 << 28
"""Elements that two operands may make together before it is looked at whether their result may be made."""


def paired(x: Array, y: Array) -> None:
    """Raises ValueError when two operands do not have one type or do not broadcast; says which shapes."""
    if x.dtype != y.dtype:
        raise ValueError(f"operands of different types, {x.dtype} and {y.dtype}")
    for a, b in zip(reversed(x.shape), reversed(y.shape), strict=False):
        if a != b and 1 not in (a, b):
            raise ValueError(f"shapes that do not fit: {list(x.shape)} and {list(y.shape)}")
    if x.size * y.size > LARGE:
        reserve(np.broadcast_shapes(x.shape, y.shape), x.dtype)


def _half_whole_div(x: Array, y: Array, down: bool) -> Array:
    """FloorDiv or TruncateDiv of 16-bit floats: the quotient is rounded to their type before it is made whole."""
    quotient = np.asarray(np.true_divide(widened(x), widened(y))).astype(x.dtype)
    wide = widened(np.asarray(quotient))
    return np.asarray(np.floor(wide) if down else np.trunc(wide)).astype(x.dtype)


def _same_type(function: Binary) -> Callable[[Array, Array], Array]:
    def run(x: Array, y: Array) -> Array:
        kind = x.dtype
        is_plain = kind in PLAIN
        if not is_plain or kind is not y.dtype or (x.shape != y.shape and x.ndim and y.ndim):
            paired(x, y)
        if is_plain:
            same = function(x, y)
            found: Array = same if type(same) is np.ndarray else np.asarray(same)
            return found if found.dtype is kind else found.astype(kind, copy=False)
        if function in WHOLE and is_small_float(kind):
            return _half_whole_div(x, y, function is _floor_div)
        return np.asarray(function(widened(x), widened(y))).astype(kind, copy=False)

    return run


def _nonzero(x: Array, y: Array) -> None:
    if not np.all(y) and x.size:  # nothing is divided when there is nothing to divide
        raise ValueError("Integer division by zero")


def _is_integer(x: Array) -> bool:
    return x.dtype.kind in "iu"


def truncated_quotient(x: Array, y: Array) -> Any:
    """x / y rounded towards zero, for integers."""
    _nonzero(x, y)
    quotient = np.floor_divide(x, y)
    if x.dtype.kind == "u":
        return quotient
    inexact = np.not_equal(quotient * y, x)
    return quotient + (inexact & ((x < 0) != (y < 0))).astype(x.dtype)


def _div(x: Array, y: Array) -> Any:
    return truncated_quotient(x, y) if _is_integer(x) else np.true_divide(x, y)


def _truncate_div(x: Array, y: Array) -> Any:
    return truncated_quotient(x, y) if _is_integer(x) else np.trunc(np.true_divide(x, y))


def _floor_div(x: Array, y: Array) -> Any:
    if _is_integer(x):
        _nonzero(x, y)
        return np.floor_divide(x, y)
    return np.floor(np.true_divide(x, y))


def _floor_mod(x: Array, y: Array) -> Any:
    if _is_integer(x):
        _nonzero(x, y)
        return np.mod(x, y)
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((y < 0) != (rest < 0)), rest + y, rest)


def _truncate_mod(x: Array, y: Array) -> Any:
    if _is_integer(x):
        _nonzero(x, y)
    return np.fmod(x, y)


def _pow(x: Array, y: Array) -> Any:
    if _is_integer(x) and x.size and bool(np.any(y < 0)):
        raise ValueError("Integers to negative integer powers are not allowed")
    found = np.power(x, y)
    if x.dtype.kind == "c":  # by C's cpow, in which 0 to the power of 0 is NaN
        return np.where((x == 0) & np.isfinite(y), np.exp(y * np.log(x)), found)
    return found


def _add(x: Array, y: Array) -> Any:
    return np.add(x, y)


def _where_nonzero(test: Array, value: Array) -> Any:
    return np.where(test == 0, np.zeros((), value.dtype), value)


def _rsqrt_gradient(y: Array, dy: Array) -> Any:
    """In the order of TensorFlow's products, which overflow elsewhere in another one."""
    return y.dtype.type(-0.5) * (dy * y) * (y * y)


def _times(y: Array, factors: int) -> Any:
    """The product of ``factors`` times y."""
    return y * y if factors == 2 else y * y * y


def _squared_difference(x: Array, y: Array) -> Any:
    difference = np.subtract(x, y)
    return difference * (np.conjugate(difference) if difference.dtype.kind == "c" else difference)


def _shift_by(y: Array) -> Array:
    """Shifts outside the width of the type are clamped into it, where C leaves them undefined."""
    return np.clip(y, 0, 8 * y.dtype.itemsize - 1).astype(y.dtype)


SAME_TYPE: dict[str, Binary] = {
    "Add": _add, "AddV2": _add, "Sub": np.subtract, "Mul": np.multiply,
    "Div": _div, "RealDiv": _div, "TruncateDiv": _truncate_div, "FloorDiv": _floor_div,
    "FloorMod": _floor_mod, "Mod": _truncate_mod, "TruncateMod": _truncate_mod,
    "DivNoNan": lambda x, y: _where_nonzero(y, np.true_divide(x, y)),
    "MulNoNan": lambda x, y: _where_nonzero(y, x * y),
    "Maximum": np.maximum, "Minimum": np.minimum, "SquaredDifference": _squared_difference,
    "Pow": _pow, "Atan2": np.arctan2, "NextAfter": np.nextafter,
    "Xlogy": lambda x, y: _where_nonzero(x, x * np.log(y)),
    "Xlog1py": lambda x, y: _where_nonzero(x, x * np.log1p(y)),
    "Xdivy": lambda x, y: _where_nonzero(x, x / y),
    "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor,
    "LeftShift": lambda x, y: np.left_shift(x, _shift_by(y)),
    "RightShift": lambda x, y: np.right_shift(x, _shift_by(y)),
    "LogicalAnd": np.logical_and, "LogicalOr": np.logical_or,
    # the gradients that are given by the result of the function: y, dy -> dx
    "SigmoidGrad": lambda y, dy: dy * (y * (y.dtype.type(1) - y)),
    "TanhGrad": lambda y, dy: dy * (y.dtype.type(1) - y * y),
    "SqrtGrad": lambda y, dy: _where_nonzero(dy, dy * y.dtype.type(0.5) / np.conjugate(y)),
    "RsqrtGrad": lambda y, dy: _where_nonzero(dy, _rsqrt_gradient(np.conjugate(y), dy)),
    "ReciprocalGrad": lambda y, dy: _where_nonzero(dy, -dy * _times(np.conjugate(y), 2)),
    "InvGrad": lambda y, dy: _where_nonzero(dy, -dy * _times(np.conjugate(y), 2)),
}  # fmt: skip
"""By op: the functions whose operands and result have one type."""

WHOLE = (_floor_div, _truncate_div)
"""Quotients that are made whole."""

RESULT_FIRST = ops_with("result_gradient")
"""Their dy may be of another shape of as many elements."""


def _of_one_shape(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def run(y: Array, dy: Array) -> Array:
        return function(y, dy if dy.shape == y.shape else dy.reshape(y.shape))

    return run


for _op, _function in SAME_TYPE.items():
    kernel(_op)(_of_one_shape(_same_type(_function)) if _op in RESULT_FIRST else _same_type(_function))


@kernel("AddN", "AccumulateNV2")
def add_n(*inputs: Value) -> Value:
    """The sum of tensors of one shape; of values that hold others (lists, optionals, maps), the sums inside of them."""
    if not (isinstance(inputs[0], np.ndarray) and inputs[0].dtype.kind in "biufc"):
        from pocketgraph.kernels.variant_arithmetic import holds_values, plus

        if holds_values(inputs[0]):
            return reduce(lambda one, other: plus(add_n, one, other), inputs)
    total = widened(inputs[0])
    for value in inputs[1:]:
        if value.shape != inputs[0].shape:
            raise ValueError(f"shapes that do not fit: {list(inputs[0].shape)} and {list(value.shape)}")
        total = total + widened(value)
    return np.asarray(total).astype(inputs[0].dtype, copy=False)
