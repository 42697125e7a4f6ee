"""Operations of Keras that are told by others: the signature says the arguments, the body what is computed of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, signature
from typing import Any

import numpy as np

from pocketgraph.formats.keras.activation_functions import HIDDEN
from pocketgraph.formats.keras.attention_layers import causal
from pocketgraph.formats.keras.layer_writer import KerasTensor, LayerWriter, as_float, contraction, of_one_type, pair
from pocketgraph.formats.keras.operation_call import OperationCall
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32, INT64

Operation = Callable[[OperationCall], "KerasTensor | list[KerasTensor]"]
LETTERS = "abcdefgh", "ijklmnop"
LARGEST_TRIANGLE, MOST_DIFFERENCES = 1 << 26, 64
"""Elements of the matrix that hides a half, and how often differences of differences are taken: a described model may
ask for any number of nodes and bytes."""


class Operations:
    """The operations that are read, as functions of tensors and numbers: ``ops.Exp(value)``."""

    def __init__(self, writer: LayerWriter, known: Mapping[str, Operation]) -> None:
        self.writer, self._known = writer, known

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *given, **named: self._known[name](OperationCall(self.writer, given, named))

    def alike(self, one: Any, other: Any) -> list[KerasTensor]:
        """Two tensors or numbers, of the type that holds both."""
        given = [value if isinstance(value, KerasTensor) else self._constant(value) for value in (one, other)]
        return of_one_type(self.writer, given)

    def _constant(self, value: Any) -> KerasTensor:
        """A number as Keras 3 has it that stands alone, and not beside a tensor."""
        found = np.asarray(value).dtype
        kind = {int: INT32, float: FLOAT}.get(type(value)) or DType.of_numpy(found)
        return self.writer.const(value, "number", kind)

    def floats(self, *values: KerasTensor) -> Any:
        """Tensors, of whole numbers the floats."""
        made = [one if one.dtype.is_floating else as_float(self.writer, one) for one in values]
        return made if len(made) > 1 else made[0]

    def wide(self, value: KerasTensor) -> Any:
        """A tensor as floats that hold its numbers."""
        return self.Cast(value, "float64") if value.dtype is INT64 else self.floats(value)


def composed(rule: Callable[..., Any], known: Mapping[str, Operation]) -> Operation:
    """An operation by a function of others and of its arguments, which Keras calls by these names."""
    places = [one for one in signature(rule).parameters.values() if one.kind is Parameter.POSITIONAL_OR_KEYWORD][1:]

    def written(call: OperationCall) -> KerasTensor | list[KerasTensor]:
        given = [
            call.argument(at, one.name, default=None if one.default is Parameter.empty else one.default)
            for at, one in enumerate(places)
        ]
        made: KerasTensor | list[KerasTensor] = rule(Operations(call.writer, known), *given)
        return made

    return written


def log_add_exp(ops: Operations, x1: Any, x2: Any) -> Any:
    one, other = ops.floats(*ops.alike(x1, x2))
    apart = ops.Subtract(one, other)
    more = ops.Log1p(ops.Exp(ops.Negative(ops.Absolute(apart))))
    return ops.Where(ops.Isnan(apart), ops.Add(one, other), ops.Add(ops.Maximum(one, other), more))


def tensor_dot(ops: Operations, x1: Any, x2: Any, axes: Any = 2, *, is_float: bool = False) -> Any:
    """The sum of products along axes of one tensor and as many of another."""
    one, other = ops.alike(x1, x2)
    kind, ranks = one.dtype, [len(value.dims) for value in (one, other)]
    if max(ranks) > len(LETTERS[0]):
        raise ops.writer.refuse(f"is of tensors with {max(ranks)} axes, more than {len(LETTERS[0])}, which is not read")
    axes = (list(range(-axes, 0)), list(range(axes))) if isinstance(axes, int) else axes
    names = [list(letters[:rank]) for letters, rank in zip(LETTERS, ranks, strict=True)]
    for at, axis in zip(pair(axes[0], 1), pair(axes[1], 1), strict=True):
        names[1][axis] = names[0][at]
    rest = [name for name in names[0] + names[1] if (names[0] + names[1]).count(name) == 1]
    if is_float or kind.numpy.itemsize < 4:
        one, other = ops.floats(one, other)
    made = contraction(ops.writer, f"{''.join(names[0])},{''.join(names[1])}->{''.join(rest)}", one, other)
    return made if made.dtype is kind else ops.Cast(made, kind.name)


def dot(ops: Operations, x1: Any, x2: Any, *, axis: int = -2) -> Any:
    """Along the last axis of one tensor, and an axis of the other, of vectors the only one."""
    one, other = ops.alike(x1, x2)
    if not one.dims or not other.dims:
        return ops.Multiply(one, other)
    return tensor_dot(ops, one, other, [-1, axis if len(other.dims) > 1 else -1], is_float=True)


def outer(ops: Operations, x1: Any, x2: Any) -> Any:
    one, other = ops.alike(x1, x2)
    return ops.Multiply(ops.Reshape(one, [-1, 1]), ops.Reshape(other, [1, -1]))


def _rank(value: Any) -> int:
    return len(value.dims) if isinstance(value, KerasTensor) else np.ndim(value)


def along(ops: Operations, value: Any, whole: KerasTensor, axis: Any) -> Any:
    """What has the sizes of some axes of a tensor, so that it broadcasts to all of them."""
    rank = len(whole.dims)
    axes = sorted(at % rank for at in pair(axis, 1))
    if value is None or _rank(value) == rank or axes[0] == rank - len(axes):
        return value
    return ops.Reshape(value, [whole.dims[at] if at in axes else 1 for at in range(rank)])


def with_offset(ops: Operations, value: Any, factor: Any, offset: Any, axis: Any) -> Any:
    """Times a factor for each place along axes, and an offset, where there are any."""
    value = value if factor is None else ops.Multiply(value, along(ops, factor, value, axis))
    return value if offset is None else ops.Add(value, along(ops, offset, value, axis))


def batch_norm(
    ops: Operations, x: Any, mean: Any, variance: Any, offset: Any = None, scale: Any = None, axis: int = -1,
    epsilon: float = 1e-3,
) -> Any:  # fmt: skip
    mean, variance, offset, scale = (along(ops, one, x, axis) for one in (mean, variance, offset, scale))
    factor = ops.Rsqrt(ops.Add(variance, epsilon))
    factor = factor if scale is None else ops.Multiply(factor, scale)
    shift = ops.Multiply(mean, factor)
    return ops.Add(ops.Multiply(x, factor), ops.Negative(shift) if offset is None else ops.Subtract(offset, shift))


def layer_norm(
    ops: Operations, x: Any, gamma: Any = None, beta: Any = None, axis: Any = -1, epsilon: float = 1e-7,
    rms_scaling: bool = False,
) -> Any:  # fmt: skip
    """By the deviation, and less the mean, which ``rms_scaling`` keeps."""
    centred = ops.Subtract(x, ops.Mean(x, axis, True))
    made = rms_norm(ops, centred, None, axis, epsilon, numerator=x if rms_scaling else centred)
    return with_offset(ops, made, gamma, None if rms_scaling else beta, axis)


def rms_norm(
    ops: Operations, x: Any, scale: Any = None, axis: Any = -1, epsilon: float = 1e-7, *, numerator: Any = None
) -> Any:
    """By the root of the mean square along axes, of this or of the ``numerator``."""
    mean = ops.Mean(ops.Square(x), axis, True)
    made = ops.Multiply(numerator or x, ops.Rsqrt(ops.Add(mean, epsilon)))
    return made if scale is None else ops.Multiply(made, scale)


def dot_product_attention(
    ops: Operations, query: Any, key: Any, value: Any, bias: Any = None, attention_mask: Any = None, scale: Any = None,
    is_causal: bool = False,
) -> Any:  # fmt: skip
    """Of tensors [batch, time, heads, size]; several heads of queries may share one of keys and values."""
    heads, groups, size = query.dims[2], key.dims[2], query.dims[3]
    if None in (heads, groups) or (size is None and scale is None):
        raise ops.writer.refuse("has heads of open sizes, which is not read")
    if heads != groups:
        key, value = (ops.Repeat(one, heads // groups, axis=2) for one in (key, value))
    scale = size**-0.5 if scale is None else scale
    scores = ops.Multiply(ops.Einsum("btnh,bsnh->bnts", query, key), scale)
    scores = scores if bias is None else ops.Add(scores, bias)
    if is_causal:
        earlier = causal(ops.writer, query, key)
        attention_mask = earlier if attention_mask is None else ops.LogicalAnd(attention_mask, earlier)
    scores = scores if attention_mask is None else ops.Where(attention_mask, scores, HIDDEN)
    return ops.Einsum("bnts,bsnh->btnh", ops.Softmax(scores, -1), value)


def triangle(ops: Operations, x: Any, k: int = 0, *, is_upper: bool = False) -> Any:
    """What lies on a diagonal of matrices, and below it or above."""
    rows, columns = x.dims[-2:]
    if rows is None or columns is None:
        raise ops.writer.refuse("has a triangle of open sizes, which is not read")
    if rows * columns > LARGEST_TRIANGLE:
        raise ops.writer.refuse(f"has a triangle of {rows:,} by {columns:,}, which is not read")
    below = np.tri(rows, columns, k - is_upper, dtype=bool)
    return ops.Where(below, *((ops.ZerosLike(x), x) if is_upper else (x, ops.ZerosLike(x))))


def differences(ops: Operations, a: Any, n: int = 1, axis: int = -1) -> Any:
    if not 0 <= n <= MOST_DIFFERENCES:
        raise ops.writer.refuse(f"takes differences {n:,} times, which is not read")
    for _ in range(n):
        parts = (ops.GetItem(a, [{}] * (axis % len(a.dims)) + [end]) for end in ({"start": 1}, {"stop": -1}))
        a = ops.NotEqual(*parts) if a.dtype is BOOL else ops.Subtract(*parts)
    return a


def gray(ops: Operations, images: Any, data_format: str = "channels_last") -> Any:
    if data_format != "channels_last" or images.dims[-1] != 3:
        raise ops.writer.refuse("is of other pictures than of three channels, which come last, which is not read")
    made = ops.Sum(ops.Multiply(ops.floats(images), [0.2989, 0.587, 0.114]), -1, True)
    return made if made.dtype is images.dtype else ops.Cast(made, images.dtype.name)


def quantile(
    ops: Operations, x: Any, q: Any = 0.5, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Any:
    """What a share of the elements along an axis is below, of what lies between two of them a part of each."""
    axes = [at % len(x.dims) for at in (range(len(x.dims)) if axis is None else pair(axis, 1))]
    if len(axes) != 1 or x.dims[axes[0]] is None or method != "linear" or np.ndim(q):
        raise ops.writer.refuse("is of several shares or axes, of open ones, or by other than lines, which is not read")
    rows, last = ops.Sort(ops.floats(x), axes[0]), x.dims[axes[0]] - 1
    upper = min(max(int(np.ceil(last * q)), 1), last)
    low, high = (ops.Take(rows, [at], axis=axes[0]) for at in (max(upper - 1, 0), upper))
    made = ops.Add(ops.Multiply(high, 1 - (upper - last * q)), ops.Multiply(low, upper - last * q))
    made = ops.Where(ops.Any(ops.Isnan(rows), axes, True), float("nan"), made)
    return made if keepdims else ops.Squeeze(made, axes)


def is_close(ops: Operations, x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    one, other = ops.alike(x1, x2)
    if not one.dtype.is_floating:
        return ops.Equal(one, other)
    limit = ops.Add(ops.Multiply(ops.Absolute(other), rtol), atol)
    made = ops.LessEqual(ops.Absolute(ops.Subtract(one, other)), limit)
    return ops.LogicalOr(made, ops.LogicalAnd(ops.Isnan(one), ops.Isnan(other))) if equal_nan else made


def hypotenuse(ops: Operations, x1: Any, x2: Any) -> Any:
    sides = [ops.Absolute(ops.wide(one)) for one in ops.alike(x1, x2)]
    largest = ops.Maximum(*sides)
    ratio = ops.DivideNoNan(ops.Minimum(*sides), largest)
    return ops.Multiply(largest, ops.Sqrt(ops.Add(ops.Square(ratio), 1.0)))


def average(ops: Operations, x: Any, axis: Any = None, weights: Any = None) -> Any:
    """The mean along axes, of which each element may have a weight, or each place of one axis."""
    if weights is None:
        return ops.Mean(ops.floats(x), axis)
    x, weights = ops.alike(ops.floats(x), weights)
    total = ops.Sum(weights, axis if len(x.dims) == len(weights.dims) else None)
    if len(x.dims) == len(weights.dims):
        return ops.Divide(ops.Sum(ops.Multiply(x, weights), axis), total)
    return ops.Divide(tensor_dot(ops, x, weights, [axis, 0]), total)


def truncated(ops: Operations, x: Any) -> Any:
    return ops.Where(ops.Less(x, 0), ops.Ceil(x), ops.Floor(x)) if x.dtype.is_floating else x


def heaviside(ops: Operations, x1: Any, x2: Any) -> Any:
    one, other = (ops.wide(value) for value in ops.alike(x1, x2))
    above = ops.Where(ops.Greater(one, 0), ops.OnesLike(one), other)
    return ops.Where(ops.Less(one, 0), ops.ZerosLike(one), above)


def of_finite(ops: Operations, x: Any, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """What stands in for what is no number, and for infinities: by default the largest numbers."""
    if not x.dtype.is_floating:
        return x
    most = float(np.finfo(x.dtype.numpy).max)
    x = ops.Where(ops.Isnan(x), float(nan), x)
    x = ops.Where(ops.Equal(x, float("inf")), most if posinf is None else float(posinf), x)
    return ops.Where(ops.Equal(x, float("-inf")), -most if neginf is None else float(neginf), x)


def depth_stack(ops: Operations, xs: Any) -> Any:
    return ops.Concatenate([ops.Reshape(x, [1, -1, 1]) if _rank(x) < 2 else ops.ExpandDims(x, 2) if _rank(x) == 2 else x
                            for x in xs], 2)  # fmt: skip


def appended(ops: Operations, x1: Any, x2: Any, axis: Any = None) -> Any:
    both = ops.alike(x1, x2)
    return ops.Concatenate([ops.Reshape(one, [-1]) for one in both] if axis is None else both, axis or 0)


RULES: Mapping[str, Callable[..., Any]] = {
    "Logaddexp": log_add_exp, "Outer": outer, "Tensordot": tensor_dot, "Dot": dot,
    "Inner": partial(dot, axis=-1), "Quantile": quantile,
    "Vdot": lambda ops, x1, x2: dot(ops, *(ops.Reshape(one, [-1]) for one in ops.alike(x1, x2))),
    "Ravel": lambda ops, x: ops.Reshape(x, [-1]),
    "Flipud": lambda ops, x: ops.Flip(x, 0), "Fliplr": lambda ops, x: ops.Flip(x, 1),
    **{name: partial(lambda base, ops, x: ops.Divide(ops.Log(x), np.log(base)), base) for name, base in (
        ("Log2", 2.0), ("Log10", 10.0))},
    "Exp2": lambda ops, x: ops.Power(2.0, ops.floats(x)),
    "Ptp": lambda ops, x, axis=None, keepdims=False: ops.Subtract(
        ops.Max(x, axis, keepdims), ops.Min(x, axis, keepdims)),
    "CountNonzero": lambda ops, x, axis=None: ops.Sum(ops.Cast(ops.NotEqual(x, 0), "int32"), axis),
    "Median": lambda ops, x, axis=None, keepdims=False: quantile(ops, x, 0.5, axis, keepdims=keepdims),
    "Moments": lambda ops, x, axes=None, keepdims=False, synchronized=False: [
        ops.Mean(x, axes, keepdims), ops.Var(x, axes, keepdims)],
    "BatchNorm": batch_norm, "LayerNorm": layer_norm, "RMSNorm": rms_norm,
    "DotProductAttention": dot_product_attention, "RGBToGrayscale": gray, "Diff": differences,
    "Isclose": is_close, "Hypot": hypotenuse, "Average": average, "Trunc": truncated, "Heaviside": heaviside,
    "NanToNum": of_finite, "Dstack": depth_stack, "Append": appended,
    "Deg2rad": lambda ops, x: ops.Multiply(ops.wide(x), np.pi / 180),
    "Rad2deg": lambda ops, x: ops.Multiply(ops.wide(x), 180 / np.pi),
    "Cbrt": lambda ops, x: ops.Multiply(ops.Sign(ops.wide(x)), ops.Power(ops.Absolute(ops.wide(x)), 1 / 3)),
    **{name: partial(lambda most, ops, x: ops.Equal(ops.floats(x), most), most)
       for name, most in (("Isposinf", float("inf")), ("Isneginf", float("-inf")))},
    "Tril": triangle, "Triu": partial(triangle, is_upper=True),
    "Vstack": lambda ops, xs: ops.Concatenate(xs, 0), "Hstack": lambda ops, xs: ops.Concatenate(
        xs, 1 if _rank(xs[0]) > 1 else 0),
}  # fmt: skip
"""How each operation of these is told by others."""
