"""Whether what a compiled part gave is what the reference engine gives, up to what rounding may do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TypeAlias

import numpy as np

from pocketgraph.graph.dtype import DType
from pocketgraph.graph.record import Record
from pocketgraph.graph.tensor import Array

Noisy: TypeAlias = "Callable[[int, float], list[Array] | None]"
"""Computes the outputs with noise of a relative size in every tensor on the way, another one for each seed; None where
that says nothing, because something on the way is not finite or very large."""

DRAWS = 6  # of noise
CHAOTIC = 0.3  # of the largest magnitude: what noise may move so far says nothing
TINY = float(np.finfo(np.float32).tiny)  # what is smaller is 0 to LiteRT, as to TensorFlow
MARGIN = 16  # times what noise moves a result: sums round more than once


class Precision(Record):
    """How exact a part computes.

    Attributes:
        tolerance: how far results may be apart, as a share of the largest magnitude of an output.
        noise: what rounding and approximations of a kernel come to, as a share of each tensor.
    """

    tolerance: float
    noise: float


FLOAT = Precision(1e-4, 2.0**-20)  # what docs/exactness.md promises
SHORT_FLOAT = Precision(1e-2, 2.0**-9)  # 16-bit floats, which LiteRT keeps as 32-bit ones between two steps
EIGHT_BITS = Precision(0.15, 2.0**-6)  # codes


class Agreement(Enum):
    """What a comparison says: the part is right, it is wrong, or these feeds do not tell."""

    RIGHT = "right"
    WRONG = "wrong"
    UNCLEAR = "unclear"


def judged(
    given: Sequence[Array], right: Sequence[Array], feeds: Sequence[Array], noisy: Noisy, precision: Precision = FLOAT
) -> Agreement:
    """The verdict on a compiled part's outputs.

    A difference beyond the tolerance is taken for rounding where small noise in the reference engine's own tensors
    moves the same elements as far: results of loops that are chaotic, of differences that cancel, and the places of the
    largest among nearly equal ones.

    Args:
        given: the part's outputs.
        right: the reference engine's.
        feeds: what went in.
        noisy: computes the reference engine's outputs with noise; only asked where there are differences.
        precision: how exact the part computes.
    """
    if [(a.shape, a.dtype) for a in given] != [(b.shape, b.dtype) for b in right]:
        return Agreement.WRONG
    bounds = [max(TINY, precision.tolerance * _peak(b)) if _is_number(b) else 0.0 for b in right]
    wrong = [_distance(a, b) > bound for a, b, bound in zip(given, right, bounds, strict=True)]
    if not any(mask.any() for mask in wrong):
        return Agreement.RIGHT
    if not all(not _is_number(feed) or bool(np.isfinite(feed.astype(np.float64)).all()) for feed in feeds):
        return Agreement.UNCLEAR
    moved = [np.zeros(b.shape) for b in right]
    for seed in range(DRAWS):
        drawn = noisy(seed, precision.noise)
        if drawn is None:
            return Agreement.UNCLEAR
        moved = [np.maximum(m, _distance(d, b)) for m, d, b in zip(moved, drawn, right, strict=True)]
    found = Agreement.RIGHT
    for a, b, bound, far in zip(given, right, bounds, moved, strict=True):
        if not far.size:
            continue
        # What is whole changes by whole numbers: noise tells where it may, not by how much.
        allowed = MARGIN * np.maximum(far, far.mean()) if _is_number(b) else np.where(far > 0, np.inf, 0.0)
        beyond = _distance(a, b)
        if np.any(beyond > bound + allowed):
            return Agreement.WRONG
        if _is_number(b) and np.any((beyond > bound) & (allowed > CHAOTIC * _peak(b))):
            found = Agreement.UNCLEAR
    return found


def varied(feeds: Sequence[Array], factor: float) -> list[Array]:
    """Feeds with other floats: each times a number near ``factor``.

    A part that agrees by chance, as a wrong rectifier does on what is small, is found out with these.
    """
    return [np.asarray(array * _near(factor, array), array.dtype) if _is_number(array) else array for array in feeds]


def _near(factor: float, array: Array) -> Array:
    """Numbers from a half to one and a half of ``factor``, unlike their neighbours; importing numpy.random takes longer
    than most comparisons."""
    golden = np.arange(array.size) * 0.6180339887498949
    found: Array = (factor * (0.5 + golden % 1)).reshape(array.shape)
    return found


def _peak(right: Array) -> float:
    wide = np.abs(right.astype(np.float64))
    return float(np.max(wide[np.isfinite(wide)], initial=0.0))


def _is_number(array: Array) -> bool:
    """Whether an array holds numbers with fractions, which may be rounded."""
    return DType.of_numpy(array.dtype).is_floating


def _distance(given: Array, right: Array) -> Array:
    """|given - right|: 0 where the right one is not finite, since the edges of types are documented to differ; infinite
    where only the given one is not."""
    if given.dtype.kind in "bO":
        found: Array = (given != right).astype(np.float64)
        return found
    with np.errstate(all="ignore"):
        a, b = given.astype(np.float64), right.astype(np.float64)
        distance: Array = np.asarray(np.abs(a - b))
        distance[~np.isfinite(distance)] = np.inf
        distance[~np.isfinite(b)] = 0.0
    return distance
