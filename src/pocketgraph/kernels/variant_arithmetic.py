"""Zeros and sums of values that hold others: lists, optionals, maps, ragged tensors in one piece."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.registry import Value


def holds_values(value: Value) -> bool:
    """Whether this is such a value, or an array of such, and not an array of numbers or texts."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "O" and value.size > 0 and not isinstance(value.flat[0], bytes | str)
    return not isinstance(value, np.generic)


def zeros(of: Callable[[Value], Value], value: Value) -> Value:
    """The value with zeros (made by ``of``) for what it holds.

    Raises:
        RunError: the value is of a kind that has no zeros.
    """
    if isinstance(value, np.ndarray):
        return _array([of(item) for item in value.flat], value)
    if not hasattr(value, "zeros"):
        raise RunError(f"there are no zeros like a {type(value).__name__}")
    return value.zeros(of)


def conjugates(value: Value) -> Value:
    """The value with conjugates of the numbers that it holds.

    Raises:
        RunError: the value is of a kind that has none.
    """
    if isinstance(value, np.ndarray):
        return _array([conjugates(item) for item in value.flat], value)
    if not hasattr(value, "conjugates"):
        raise RunError(f"a {type(value).__name__} has no conjugate")
    return value.conjugates()


def plus(add: Callable[[Value, Value], Value], one: Value, other: Value) -> Value:
    """The sum of two values: those (made by ``add``) of what they hold at the same places.

    Raises:
        RunError: they are of different kinds or sizes, or of a kind that is not added.
    """
    if isinstance(one, np.ndarray):
        if not isinstance(other, np.ndarray) or other.shape != one.shape:
            raise RunError(f"shapes that do not fit: {list(one.shape)} and {list(np.shape(other))}")
        return _array([add(a, b) for a, b in zip(one.flat, other.flat, strict=True)], one)
    if not hasattr(one, "plus"):
        raise RunError(f"a {type(one).__name__} cannot be added")
    return one.plus(other, add)


def _array(items: list[Value], like: np.ndarray[tuple[int, ...], np.dtype[np.object_]]) -> Value:
    found = np.empty(len(items), object)
    for index, item in enumerate(items):
        found[index] = item
    return found.reshape(like.shape)
