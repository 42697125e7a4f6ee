"""Element-wise functions of one tensor: signs, roots, exponentials, trigonometry, rounding, predicates;
and chains of them that Grappler makes one op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import COMPLEX64, FLOAT
from pocketgraph.kernels.arrays import Array, in_own_type, is_float, is_small_float, reserve, widened
from pocketgraph.kernels.registry import KERNELS, Value, kernel

Unary = Callable[[Any], Any]


def _predicate(function: Unary) -> Callable[[Array], Array]:
    def run(x: Array) -> Array:
        return np.asarray(function(widened(x)), dtype=np.bool_)

    return run


def _rounded(x: Array) -> Any:
    return x if x.dtype.kind in "iu" else np.rint(x)


def _reciprocal(x: Array) -> Any:
    return x.dtype.type(1) / x


def _rsqrt(x: Array) -> Any:
    if x.dtype.kind == "c":
        return _complex_rsqrt(x)
    return x.dtype.type(1) / np.sqrt(x)


def _complex_rsqrt(x: Array) -> Array:
    """Of a negative number -i/sqrt(-x), whatever the sign of its imaginary zero; of 0 an infinity, of infinities 0."""
    found = np.asarray(x.dtype.type(1) / np.sqrt(x))
    endless = np.isinf(x.real) | np.isinf(x.imag)
    found = np.where((x.imag == 0) & (x.real < 0), -1j * np.abs(found.imag), found)
    found = np.where(x == 0, complex(np.inf, np.nan), found)
    return np.where(endless, 0, found).astype(x.dtype)


def _sign(x: Array) -> Any:
    if x.dtype.kind == "c":
        size = np.where(x == 0, 1, np.abs(x))
        found = np.empty_like(x)
        found.real, found.imag = x.real / size, x.imag / size
        return found
    return np.sign(x)


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x) without overflow, in the type of ``x`` (a float type, or complex)."""
    one = x.dtype.type(1)
    with np.errstate(all="ignore"):
        if x.dtype.kind == "c":
            return np.asarray(np.where(np.isneginf(x.real), 0, one / (one + np.exp(-x)))).astype(x.dtype, copy=False)
        decay = np.exp(-np.abs(x))
        return np.asarray(np.where(x >= 0, one, decay) / (one + decay)).astype(x.dtype, copy=False)


SAME_TYPE: dict[str, Unary] = {
    "Abs": np.abs, "Neg": np.negative, "Sign": _sign, "Square": np.square, "Sqrt": np.sqrt, "Rsqrt": _rsqrt,
    "Exp": np.exp, "Expm1": np.expm1, "Log": np.log, "Log1p": np.log1p,
    "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan,
    "Sinh": np.sinh, "Cosh": np.cosh, "Tanh": np.tanh, "Asinh": np.arcsinh, "Acosh": np.arccosh, "Atanh": np.arctanh,
    "Sigmoid": sigmoid, "Reciprocal": _reciprocal, "Inv": _reciprocal, "Round": _rounded, "Rint": _rounded,
    "Ceil": np.ceil, "Floor": np.floor, "Invert": np.invert,
}  # fmt: skip
"""By op: the functions whose result has the type of the argument."""

for _op, _function in SAME_TYPE.items():
    kernel(_op)(in_own_type(_function))
for _op, _function in {"IsNan": np.isnan, "IsInf": np.isinf, "IsFinite": np.isfinite}.items():
    kernel(_op)(_predicate(_function))
kernel("LogicalNot")(lambda x: np.asarray(np.logical_not(x)))


@kernel("Conj")
def conj(input: Value) -> Value:
    """Also of what a sparse matrix holds."""
    from pocketgraph.kernels.variant_arithmetic import conjugates, holds_values

    return conjugates(input) if holds_values(input) else np.asarray(np.conjugate(input))


def _of_complex(op: str, function: Callable[[Array], Array]) -> None:
    @kernel(op)
    def part(x: Array, *, Tout: DType = FLOAT) -> Array:
        if x.dtype.kind == "c" and x.real.dtype != Tout.numpy:
            raise ValueError(f"Tout of {x.dtype} is {x.real.dtype}, not {Tout}")
        return np.asarray(function(x), dtype=Tout.numpy)


_of_complex("ComplexAbs", np.abs)
_of_complex("Real", lambda x: np.array(x.real))
_of_complex("Imag", lambda x: np.array(x.imag))
_of_complex("Angle", np.angle)


@kernel("Complex")
def complex_(real: Array, imag: Array, *, Tout: DType = COMPLEX64) -> Array:
    real, imag = np.broadcast_arrays(real, imag)
    result = np.empty(real.shape, dtype=Tout.numpy)
    result.real, result.imag = real, imag
    return result


_MANTISSA = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7, "float8_e5m2": 2, "float8_e4m3fn": 3}


def convert(x: Array, dtype: np.dtype[Any], truncate: bool = False) -> Array:
    """A cast as TensorFlow does it: floats to integers towards zero, complex to real by dropping the imaginary part,
    ``truncate`` cuts a float's mantissa where a cast would round it."""
    if x.dtype == dtype:
        return x
    if x.dtype.kind == "O" or dtype.kind == "O":
        raise ValueError("a cast neither reads nor makes strings")
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    if dtype.kind == "b":
        return np.asarray(x != x.dtype.type(0))
    if truncate and x.dtype.name in _MANTISSA and dtype.name in _MANTISSA:
        x = _cut_mantissa(x, _MANTISSA[x.dtype.name] - _MANTISSA[dtype.name])
    if is_float(x.dtype) and dtype.kind in "iu":
        return _to_integer(widened(x), dtype, cast_group(x.dtype.name, dtype.name))
    if is_small_float(x.dtype) and is_small_float(dtype):
        x = x.astype(np.float32)
    return x.astype(dtype)


def _cut_mantissa(x: Array, bits: int) -> Array:
    if bits <= 0:
        return x
    whole = np.ascontiguousarray(x).view(np.dtype(f"u{x.dtype.itemsize}"))
    mask = whole.dtype.type((1 << (8 * x.dtype.itemsize)) - (1 << bits))
    return np.asarray(np.asarray(whole & mask).view(x.dtype).reshape(x.shape))


def cast_group(source: str, target: str) -> int:
    """How many floats TensorFlow 2.21 converts to small integers or uint32 at once on x86; 1 for other integers.

    What does not fit is brought to the nearest bound in whole groups, and cut to the lowest bits in what is left over.
    """
    if target == "uint32":
        return 8
    return {"float32": 32, "bfloat16": 8}.get(source, 16) if target in SMALL_INTEGERS else 1


SMALL_INTEGERS = ("uint8", "int8", "uint16", "int16")


def _to_integer(x: Array, dtype: np.dtype[Any], group: int) -> Array:
    """Towards zero.

    What does not fit into int32 or int64 becomes its smallest number, as on x86; what does not fit into smaller types
    is limited in whole groups (see ``cast_group``) and cut elsewhere.
    """
    wide = np.dtype(np.int64 if dtype.itemsize == 8 or dtype == np.uint32 else np.int32)
    limit = 2.0 ** (8 * wide.itemsize - 1)
    fits = (x >= -limit) & (x < limit)
    whole = np.asarray(np.where(fits, np.where(fits, x, 0).astype(wide), np.iinfo(wide).min))
    if dtype == np.uint64:
        large = (x >= limit) & (x < 2 * limit)
        return np.where(large, np.where(large, x, 0).astype(np.uint64), whole.astype(np.uint64))
    cut = whole.astype(dtype)
    body = x.size - x.size % group
    if group == 1 or not body or np.array_equal(cut, whole):
        return cut
    if dtype == np.uint32:
        limited = np.where((x >= -(2.0**31)) & (x < 2.0**32), cut, np.uint32(2**31))
    else:
        if dtype == np.uint8 and group == 16:  # on the way there are 16 bits, limited without and read with a sign
            whole = np.clip(whole, 0, 65535).astype(np.uint16).astype(np.int16)
        limited = np.clip(whole, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)
    return np.asarray(np.concatenate([limited.reshape(-1)[:body], cut.reshape(-1)[body:]]).reshape(x.shape))


MANY = 1 << 20
"""Elements of which it is looked at whether they may be made in a larger type."""


@kernel("Cast", "_HostCast")
def cast(x: Array, *, DstT: DType, Truncate: bool = False) -> Array:
    kind = DstT.numpy
    if x.size > MANY and kind.itemsize > x.dtype.itemsize:
        reserve(x.shape, kind)
    return convert(x, kind, Truncate)


@kernel("Bitcast")
def bitcast(input: Array, *, type: DType) -> Array:
    """The same bytes as another type: a smaller type adds a last dimension, a larger one takes it away."""
    wanted = type.numpy
    mine, theirs = input.dtype.itemsize, wanted.itemsize
    input = np.ascontiguousarray(input).reshape(input.shape)
    if mine == theirs:
        return input.view(wanted)
    if mine > theirs:
        if mine % theirs:
            raise ValueError(f"elements of {mine} bytes do not divide into elements of {theirs}")
        return input.reshape(*input.shape, 1).view(wanted)
    if not input.ndim or input.shape[-1] * mine != theirs:
        raise ValueError(f"the last dimension must be {theirs // mine} to make elements of {theirs} bytes")
    return np.asarray(input.view(wanted).reshape(input.shape[:-1]))


@kernel("PopulationCount")
def population_count(x: Array) -> Array:
    """How many bits are set in each integer."""
    octets = np.array(x, order="C")[..., None].view(np.uint8)
    return np.asarray(np.unpackbits(octets, axis=-1).sum(axis=-1, dtype=np.uint8))


@kernel("XlaReducePrecision")
def xla_reduce_precision(operand: Array, *, exponent_bits: int, mantissa_bits: int) -> Array:
    """Floats as a format of so many bits would hold them: to the nearest, ties to even; too large ones are infinite and
    too small ones zeros, as its subnormal numbers are.

    Raises:
        ValueError: no bit for the exponent, or fewer than none for the mantissa.
    """
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ValueError(f"{exponent_bits} bits of an exponent and {mantissa_bits} of a mantissa")
    have = _MANTISSA[operand.dtype.name]
    exponents = 8 * operand.itemsize - 1 - have
    bits = operand.view(f"u{operand.itemsize}")
    one = bits.dtype.type(1)
    sign = bits & ~(np.array(np.iinfo(bits.dtype).max, bits.dtype) >> one)
    size = bits ^ sign
    if mantissa_bits < have:
        lost = bits.dtype.type(have - mantissa_bits)
        even = size >> lost & one
        size = (size + even + ((one << lost - one) - one)) >> lost << lost
    infinite = bits.dtype.type(((1 << exponents) - 1) << have)
    if exponent_bits < exponents:
        middle, reach = (1 << exponents - 1) - 1, (1 << exponent_bits - 1) - 1
        exponent = size & infinite
        size = np.where(exponent > bits.dtype.type((middle + reach) << have), infinite, size)
        size = np.where(exponent <= bits.dtype.type((middle - reach) << have), bits.dtype.type(0), size)
    found = np.asarray(sign | size).view(operand.dtype)
    return np.where(np.isnan(operand), operand, found)


COMPOSABLE = SAME_TYPE.keys() - {"Invert", "Sign"} | {"Elu", "Relu", "Relu6", "Selu"}
"""Not a trait: what _UnaryOpsComposition composes, as in TensorFlow."""


@kernel("_UnaryOpsComposition")
def unary_ops_composition(x: Array, *, op_names: Sequence[str]) -> Array:
    """The functions called ``op_names``, one after the other.

    Raises:
        RunError: one of them is none that TensorFlow joins.
    """
    for op in op_names:
        found = KERNELS.row(op)
        if op not in COMPOSABLE or found is None:
            raise RunError(f"Do not have a compute function registered for op: {op}")
        x = np.asarray(found.function(x))
    return x
