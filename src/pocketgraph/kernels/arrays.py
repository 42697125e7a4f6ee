"""What kernels share: the array type, integers out of tensors, and a bound on what one op may allocate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pocketgraph.budgets import allowance, too_large
from pocketgraph.errors import RunError
from pocketgraph.graph.tensor import Array as Array

PLAIN = frozenset(map(np.dtype, ("float32", "float64", "int32", "int64", "bool")))
"""Types in which NumPy computes as TensorFlow does, the result in the type of the operands."""


def ints(values: Any) -> tuple[int, ...]:
    """The elements of an integer tensor (or list), flat, as Python integers."""
    array = np.asarray(values)
    listed = array.ravel().tolist()
    return tuple(listed) if array.dtype.kind in "iu" else tuple([int(v) for v in listed])


def sizes_of(shape: Array) -> tuple[tuple[int, ...], int]:
    """The sizes that a shape tensor asks for, and how many elements that makes; as ``reserve`` refuses too many."""
    sizes = reserve(ints(shape), np.float64)
    return sizes, int(np.prod(sizes, dtype=np.int64))


def integer(value: Any) -> int:
    """The one element of an integer tensor.

    Raises:
        ValueError: there is not exactly one.
    """
    if type(value) is int:
        return value
    array = np.asarray(value)
    if array.size != 1:
        raise ValueError(f"one number is wanted, not a tensor of shape {list(array.shape)}")
    return int(array.item())


def number(value: Any) -> float:
    """The first element of a tensor as a Python float."""
    array = np.asarray(value)
    if array.size == 1:
        return float(array.item())
    if array.size < 1:
        raise ValueError("one number is wanted, not an empty tensor")
    return float(array.ravel()[0])


def axis_of(axis: Any, rank: int, what: str = "axis") -> int:
    """``axis`` counted from the front.

    Raises:
        ValueError: it is outside [-rank, rank).
    """
    index = integer(axis)
    if not -rank <= index < rank:
        raise ValueError(f"the {what} {index} is outside [{-rank}, {rank})")
    return index % rank


MOST_OUTPUTS = 1 << 20  # tensors that one node gives


def check_count(outputs: int) -> None:
    """Refuses a number of outputs that only a damaged file claims.

    Raises:
        RunError: it is negative or more than MOST_OUTPUTS.
    """
    if not 0 <= outputs <= MOST_OUTPUTS:
        raise RunError(f"{outputs:,} outputs; up to {MOST_OUTPUTS:,} are possible")


def reserve(shape: Sequence[int], dtype: np.dtype[Any] | type) -> tuple[int, ...]:
    """``shape`` as a tuple, once it is sure that an array of it may be made.

    Raises:
        RunError: a negative size, or more bytes than may be taken (budgets.allowance).
    """
    sizes = tuple(int(s) for s in shape)
    count = 1
    for size in sizes:
        if size < 0:
            raise RunError(f"a result cannot have the shape {list(sizes)}")
        count *= size
    total = count * np.dtype(dtype).itemsize
    if total > allowance():
        raise too_large(total, f"a result of shape {list(sizes)}")
    return sizes


def is_small_float(dtype: np.dtype[Any]) -> bool:
    """Whether this is a floating type of 16 bits or fewer, in which sums and products should not be accumulated."""
    return dtype.itemsize <= 2 and (dtype.kind == "f" or dtype.name in ("bfloat16", "float8_e5m2", "float8_e4m3fn"))


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether this is a real floating type, bfloat16 included (whose NumPy kind is V)."""
    return dtype.kind == "f" or is_small_float(dtype)


def widened(x: Array) -> Array:
    """``x``, in float32 when it is a 16-bit float."""
    return x.astype(np.float32) if is_small_float(x.dtype) else x


def in_own_type(function: Callable[[Any], Any]) -> Callable[[Array], Array]:
    """A function of arrays whose result has the type of its argument; of 16-bit floats it is computed in float32."""
    return lambda x: np.asarray(function(widened(x))).astype(x.dtype, copy=False)


def lowest(dtype: np.dtype[Any]) -> Any:
    """The smallest finite value of a type."""
    return False if dtype.kind == "b" else _limits(dtype).min


def highest(dtype: np.dtype[Any]) -> Any:
    """The largest finite value of a type."""
    return True if dtype.kind == "b" else _limits(dtype).max


def least(dtype: np.dtype[Any]) -> Any:
    """What no number of a type is below: -infinity, or the lowest where it has none."""
    return -np.inf if is_float(dtype) else lowest(dtype)


def most(dtype: np.dtype[Any]) -> Any:
    """What no number of a type is above."""
    return np.inf if is_float(dtype) else highest(dtype)


def _limits(dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "iu":
        return np.iinfo(dtype)
    if dtype.kind == "f" and dtype.name.startswith("float") and "e" not in dtype.name:
        return np.finfo(dtype)
    import ml_dtypes

    finfo: Any = ml_dtypes.finfo
    return finfo(dtype)


def kept(value: Any) -> Any:
    """A tensor as a session keeps it from one run to the next, where nobody writes to it any more.

    What is fed stays the caller's, and so does what is fetched: of both, of views of either and of all else that can be
    written to this is a copy. Handles are themselves.
    """
    if not isinstance(value, np.ndarray):
        return value.kept() if hasattr(value, "kept") else value
    if value.flags.owndata and not value.flags.writeable:
        return value
    own = value.copy()
    own.flags.writeable = False
    return own


def kept_nan(before: Array, after: Array) -> Array:
    """No number is less or greater than a NaN that was there, so it stays; one that comes is neither, so it goes."""
    return after if before.dtype.kind in "biuc" else np.where(np.isnan(before), before, after)


def nothing(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Zeros; of texts, empty ones."""
    return np.full(shape, b"", object) if dtype.kind == "O" else np.zeros(shape, dtype)


def strings(items: Sequence[bytes], shape: Sequence[int]) -> Array:
    """A string tensor of these elements."""
    flat = np.empty(len(items), dtype=object)
    flat[:] = items
    return flat if len(shape) == 1 else flat.reshape(tuple(shape))


def places_in_rows(rows: Sequence[Sequence[object]]) -> tuple[Array, Array]:
    """The indices [items, 2] of rows of different lengths, and their shape [2], as sparse tensors have them; int64."""
    places = [(row, column) for row, items in enumerate(rows) for column in range(len(items))]
    shape = np.array([len(rows), max(map(len, rows), default=0)], dtype=np.int64)
    return np.array(places, dtype=np.int64).reshape(-1, 2), shape
