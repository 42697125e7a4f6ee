"""The move of wide codes to eight bits, which the original counts in fixed point, in float32 operations.

The original's ``floor(code * factor + offset)`` has 16 binary digits behind the point and 48 in the factor, a float32
has 24 in all. So the factor comes in parts: products with the first are whole multiples of 2^-16, those with the second
of 2^-20, and whole codes are set aside before the smaller parts are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.quantized.eight_bit_arithmetic import BYTE, F32, FRACTION
from pocketgraph.runtime.eight_bit.range_numbers import COMPUTED, TENS

Do = Callable[..., Any]
"""A float32 operation: its name, and operands."""
LARGEST = 2.0**14  # factor whose product with the codes before and after a change 63 binary digits hold
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


def parts(factor: float, count: int, *, below: bool = False) -> list[float]:
    """A factor as the sum of so many float32, one to three; ``below``: of which the first is not above it."""
    found: list[float] = []
    for tens in TENS[: count - 1]:
        cut = np.floor if below and not found else np.rint
        found.append(float(cut((factor - sum(found)) * tens) / tens))
    return [float(F32(part)) for part in (*found, factor - sum(found))]


def simplest(factor: float, offset: float) -> tuple[list[float], bool]:
    """The fewest parts, and whether to count ``finely``, that give every wide code its right code, or the most of them.

    Where codes change is known, and nothing but these places is to be tried: all operations keep the order of numbers.
    """
    codes = np.arange(1, BYTE.steps)
    with np.errstate(all="ignore"):
        places = np.ceil((codes - offset) / factor) if factor > 0 else np.zeros(0)
        places = np.concatenate([places - 1, places, places + 1])  # a double may be off by one
        places = places[np.abs(places) < MOST]
        right = _in_fixed_point(places, factor, offset)
        forms = [(parts(factor, count), False) for count in (1, 2, 3)]
        # products with a first part above the factor may pass 256, from which on a float32 has no 16 digits left
        forms += [(parts(factor, 3, below=below), finely) for finely in (False, True) for below in (False, True)]
        wrong = []
        for factors, finely in forms:
            found = moved(_computed, places.astype(F32), [F32(f) for f in factors], F32(offset), finely=finely)
            wrong.append(np.count_nonzero(found != right))
            if not wrong[-1]:
                break
    return forms[wrong.index(min(wrong))]


def _in_fixed_point(codes: Array, factor: float, offset: float) -> Array:
    """``floor(codes * factor + offset)`` with the original's binary digits (see kernels.eight_bit.requantized)."""
    if factor >= LARGEST:
        return np.asarray(np.floor(codes * factor + offset))
    products = codes.astype(np.int64) * int(factor * 2.0 ** (32 + FRACTION)) >> 32
    return np.asarray(products + int(offset * 2**FRACTION) >> FRACTION)


def _computed(op: str, *operands: Any) -> Array:
    return np.asarray(COMPUTED[op](*(F32(o) if isinstance(o, float) else o for o in operands)))
