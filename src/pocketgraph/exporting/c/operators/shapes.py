"""Strides, and dimensions that go together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from pocketgraph.litert.lowering import Unsupported

RANK = 8  # PG_RANK in kernels/walk.h


def strides(shape: Sequence[int]) -> tuple[int, ...]:
    """How many elements the index of each dimension is worth in a contiguous tensor."""
    made, step = [], 1
    for size in reversed(shape):
        made.append(step)
        step *= size
    return tuple(reversed(made))


def stretched(shape: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...]:
    """The strides of a tensor that stretches to ``wanted``: 0 along what it does not have."""
    padded = (1,) * (len(wanted) - len(shape)) + tuple(shape)
    steps = strides(padded)
    return tuple(0 if size == 1 else step for size, step in zip(padded, steps, strict=True))


def joined(sizes: Sequence[int], *steps: Sequence[int]) -> tuple[list[int], list[list[int]]]:
    """The same walk in as few dimensions as possible: neighbours become one where all strides agree.

    >>> joined([2, 3, 4], [12, 4, 1], [0, 4, 1])
    ([2, 12], [[12, 1], [0, 1]])

    Raises:
        Unsupported: there are too many.
    """
    kept = [axis for axis, size in enumerate(sizes) if size != 1]
    made: list[int] = []
    made_steps: list[list[int]] = [[] for _ in steps]
    for axis in kept:
        size = sizes[axis]
        if made and all(own[-1] == step[axis] * size for own, step in zip(made_steps, steps, strict=True)):
            made[-1] *= size
            for own, step in zip(made_steps, steps, strict=True):
                own[-1] = step[axis]
            continue
        made.append(size)
        for own, step in zip(made_steps, steps, strict=True):
            own.append(step[axis])
    if not made:
        made, made_steps = [1], [[1] for _ in steps]
    if len(made) > RANK:
        raise Unsupported(f"{len(made)} dimensions that do not go together")
    return made, made_steps


def reduced_walk(shape: Sequence[int], axes: Collection[int]) -> tuple[list[int], list[int]]:
    """A walk over what is reduced along some axes: sizes, and the strides of the result, 0 where it stays in place."""
    kept = strides([1 if axis in axes else size for axis, size in enumerate(shape)])
    sizes, (_, to) = joined(shape, strides(shape), [0 if axis in axes else step for axis, step in enumerate(kept)])
    return sizes, to


def paired_walk(result: Sequence[int], left: Sequence[int], right: Sequence[int]) -> list[Any]:
    """A walk over two operands that stretch to a result: how many dimensions, their sizes, and the strides of both."""
    sizes, steps = joined(result, stretched(left, result), stretched(right, result))
    return [len(sizes), sizes, *steps]
