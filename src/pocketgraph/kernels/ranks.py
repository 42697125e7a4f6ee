"""Which rank each input of an op must have, as TensorFlow's kernels demand it: a row an op in ``ranks.txt``.

A row's letters stand for the inputs: a digit is the rank, ``s`` a scalar or, where TensorFlow did not know it before, a
vector of one, ``v`` a scalar or a vector, ``=`` the first input's shape,
``#`` as many elements as the first input has, ``*`` anything; ``…`` after a letter that it goes for all of a list.
What else an op demands of its inputs, its kernel says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.package_data import text_beside

RANKS = dict(map(str.split, text_beside(__file__, "ranks.txt").splitlines()))
"""By op: a letter an input."""
RANK_NAMES = {"0": "a scalar", "s": "a scalar", "1": "a vector", "2": "a matrix", "v": "a scalar or a vector"}


@lru_cache(maxsize=1024)
def letters(op: str, count: int) -> str:
    """One letter for each of ``count`` inputs of an op; "" when nothing is demanded."""
    row = RANKS.get(op, "")
    place = row.find("…")
    return row if place < 0 else row[: place - 1] + row[place - 1] * (count - len(row) + 2) + row[place + 1 :]


def wrong_input(op: str, shapes: Sequence[Sequence[int]]) -> str:
    """What is wrong with the shapes of an op's inputs, one sentence; "" when each has a rank that the op takes."""
    for number, (letter, shape) in enumerate(zip(letters(op, len(shapes)), shapes, strict=False)):
        if not _fits(letter, shape, shapes[0]):
            name = _name(op, number)
            if letter in "=#":
                what = "the same shape" if letter == "=" else "as many elements"
                return f"{name} must have {what} as {_name(op, 0)}: {list(shape)} and {list(shapes[0])}"
            return f"{name} must be {RANK_NAMES.get(letter) or f'{letter}-dimensional'}, its shape is {list(shape)}"
    return ""


def has_wrong_rank(op: str, known: Mapping[int, Any]) -> bool:
    """Whether one of an op's inputs that are known already, by position, has a rank that it may not have."""
    row = RANKS.get(op, "")
    if not row or "…" in row:
        return False
    return any(
        number < len(row) and row[number] not in "*=#s" and not _fits(row[number], value.shape, ())
        for number, value in known.items()
    )


def _fits(letter: str, shape: Sequence[int], first: Sequence[int]) -> bool:
    if letter == "*":
        return True
    if letter == "=":
        return tuple(shape) == tuple(first)
    if letter == "#":
        return math.prod(shape) == math.prod(first)
    if letter == "s":
        return not shape or tuple(shape) == (1,)
    return len(shape) < 2 if letter == "v" else len(shape) == int(letter)


def _name(op: str, number: int) -> str:
    """The name of an input, as the op's definition has it."""
    from pocketgraph.graph import opdefs

    definition = opdefs.find(op)
    if definition is None or any(a.number_attr or a.type_list_attr for a in definition.inputs):
        return f"input {number}"
    return definition.inputs[number].name


MOST_SEEN = 64
"""Shapes that are kept of one op."""


def checked(op: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, which computes ``op``, refusing inputs of wrong ranks; itself when the op has no row here."""
    row = RANKS.get(op)
    if row is None:
        return function
    usual = {"s": 0, "v": 1} | {digit: int(digit) for digit in "0123456789"}
    quick = "…" not in row and not set(row) - usual.keys() - {"*"}
    plain = [(n, usual[letter]) for n, letter in enumerate(row) if letter in usual]

    right_before: set[tuple[tuple[int, ...], ...]] = set()  # in a loop the same shapes come in every round

    def refuse(inputs: Sequence[Any]) -> None:
        if all(isinstance(value, (np.ndarray, np.generic)) for value in inputs):
            said = wrong_input(op, [value.shape for value in inputs])
            if said:
                raise RunError(f"{op}: {said}")

    if quick:

        @wraps(function)
        def run(*inputs: Any, **attributes: Any) -> Any:
            for number, rank in plain:
                if getattr(inputs[number], "ndim", rank) != rank:
                    refuse(inputs)
            return function(*inputs, **attributes)

        return run

    @wraps(function)
    def run_by_shapes(*inputs: Any, **attributes: Any) -> Any:
        shapes = tuple([getattr(value, "shape", ()) for value in inputs])
        if shapes not in right_before:
            refuse(inputs)
            if len(right_before) >= MOST_SEEN:
                right_before.clear()
            right_before.add(shapes)
        return function(*inputs, **attributes)

    return run_by_shapes
