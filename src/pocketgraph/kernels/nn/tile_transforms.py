"""The small matrices of Winograd's convolutions: F(m, r) makes m sums of r products with m + r - 1 multiplications.

With the data d (m + r - 1 numbers) and the filter g (r numbers), the sums are ``result ((filter g) * (data d))``, where
``*`` goes element by element. The matrices are those of Toom and Cook for polynomials, transposed: S. Winograd,
Arithmetic Complexity of Computations (1980); A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks
(2016). Filters are transformed when compiling, in double precision.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pocketgraph.graph.record import Record
from pocketgraph.kernels.arrays import Array

if TYPE_CHECKING:
    from fractions import Fraction

POINTS = (0, 1, -1, 2, -2, 0.5, -0.5)
"""Where the polynomials are evaluated, besides at infinity. The second is 1, whose column of ``result`` is all ones."""
BIAS_POINT = 1
"""The point that a bias is added at, to be in every result once."""


class Tiling(NamedTuple):
    """How results are cut into tiles.

    Attributes:
        rows, columns: of a tile.
        down, across: how many tiles there are of an image.
    """

    rows: int
    columns: int
    down: int
    across: int


class TileTransform(Record):
    """The transforms along one axis.

    Attributes:
        data: float64 (points, points), from a tile of the input.
        filter: float64 (points, r), from the weights.
        result: float64 (m, points), to the results.
        points: where they are evaluated; the last is infinity, which is not listed.
    """

    data: Array
    filter: Array
    result: Array
    points: tuple[Fraction, ...]


@lru_cache(maxsize=16)
def tile_transform(results: int, taps: int) -> TileTransform:
    """The matrices of F(results, taps); for a window of one element there is nothing to transform."""
    if taps == 1:
        one = np.ones((1, 1))
        return TileTransform(one, one, one, ())
    from fractions import Fraction

    count = results + taps - 1
    points = tuple(Fraction(point) for point in POINTS[: count - 1])
    data, weights, back = np.zeros((count, count)), np.zeros((count, taps)), np.zeros((results, count))
    for place, point in enumerate(points):
        others = [other for other in points if other != point]
        norm = Fraction(1)
        for other in others:
            norm *= point - other
        data[place, : count - 1] = _from_roots(others)
        weights[place] = [float(point**power / norm) for power in range(taps)]
        back[:, place] = [float(point**power) for power in range(results)]
    data[-1] = _from_roots(list(points))
    weights[-1, -1] = back[-1, -1] = 1
    return TileTransform(data, weights, back, points)


def _from_roots(roots: list[Fraction]) -> list[float]:
    """The coefficients of the polynomial that is zero at these, the constant one first."""
    from fractions import Fraction

    found = [Fraction(1)]
    for root in roots:
        found = [low - root * high for low, high in zip([Fraction(0), *found], [*found, Fraction(0)], strict=True)]
    return [float(coefficient) for coefficient in found]
