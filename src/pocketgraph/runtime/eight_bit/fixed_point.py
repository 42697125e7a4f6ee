"""The move of wide codes to eight bits, which the original counts in fixed point, in float32 operations.

The original's ``floor(code * factor + offset)`` has 16 binary digits behind the point and 48 in the factor, a float32
has 24 in all. So the factor comes in parts: products with the first are whole multiples of 2^-16, those with the second
of 2^-20, and whole codes are set aside before the smaller parts are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pocketgraph.kernels.eight_bit import BYTE, F32
from pocketgraph.runtime.eight_bit.numbers import COMPUTED, TENS

Array = np.ndarray[Any, Any]
Do = Callable[..., Any]
"""A float32 operation: its name, and operands."""
MOST = 2.0**24  # of the size of wide codes; beyond, a float32 does not hold them


def moved(do: Do, codes: Any, factors: Sequence[Any], offset: Any, *, finely: bool) -> Any:
    """``floor(codes * sum(factors) + offset)``.

    Args:
        do: how an operation is done.
        codes: whole numbers.
        factors: one to three parts of a factor, as ``parts`` gives them.
        offset: a multiple of 2^-16.
        finely: sets whole codes aside once more before the last part is added. What is left then lies around zero,
            where a float32 tells the smallest numbers from none.
    """
    first = do("Add", do("Mul", codes, factors[0]), offset)
    whole = do("Floor", first)
    if len(factors) == 1:
        return whole
    rest = do("Sub", first, whole)
    for factor in factors[1:-1]:
        rest = do("Add", rest, do("Mul", codes, factor))
    if finely:
        more = do("Floor", do("Add", rest, 0.5))
        rest, whole = do("Sub", rest, more), do("Add", whole, more)
    rest = do("Add", rest, do("Mul", codes, factors[-1]))
    return do("Add", whole, do("Floor", rest))


def parts(factor: float, count: int) -> list[float]:
    """A factor as the sum of so many float32, one to three."""
    found: list[float] = []
    for tens in TENS[: count - 1]:
        found.append(float(np.rint((factor - sum(found)) * tens) / tens))
    return [float(F32(part)) for part in (*found, factor - sum(found))]


def simplest(factor: float, offset: float) -> tuple[list[float], bool]:
    """The fewest parts, and whether to count ``finely``, that give every wide code its right code.

    Where codes change is known, and nothing but these places is to be tried: all operations keep the order of numbers.
    """
    codes = np.arange(1, BYTE.steps)
    with np.errstate(all="ignore"):
        places = np.ceil((codes - offset) / factor) if factor > 0 else np.zeros(0)
        places = np.concatenate([places - 1, places])
        places = places[np.abs(places) < MOST]
        right = np.floor(places * factor + offset)
        for count in (1, 2, 3):
            factors = parts(factor, count)
            found = moved(_computed, places.astype(F32), [F32(f) for f in factors], F32(offset), finely=False)
            if np.array_equal(found, right):
                return factors, False
    return parts(factor, 3), True


def _computed(op: str, *operands: Any) -> Array:
    return np.asarray(COMPUTED[op](*(F32(o) if isinstance(o, float) else o for o in operands)))
