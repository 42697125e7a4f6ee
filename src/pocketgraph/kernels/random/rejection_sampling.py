"""Gamma, Poisson and binomial numbers, drawn from Philox as TensorFlow draws them.

Each number has blocks of its own in the generator's sequence, so one that is rejected and drawn again moves no other.

- Marsaglia, Tsang: A simple method for generating gamma variables (2000).
- Hörmann: The transformed rejection method for generating Poisson random variables (1993), The generation of binomial
  random variates (1993).
- Below a mean of ten, Knuth's products of uniform numbers (Poisson) and Devroye's sums of geometric ones (binomial).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.kernels.arrays import Array, ints, reserve, widened
from pocketgraph.kernels.philox import RESERVED, Philox

FEW = 10  # the mean from which on Poisson and binomial numbers are drawn by transformed rejection
RESERVED_SUMS = 42
"""Blocks that are kept for a binomial number that is drawn as a sum."""
DEVIATIONS = 4
"""Standard deviations below a Poisson number's mean that one in 30,000 reaches: TensorFlow draws until one does."""
LARGEST_FACTORIAL = 2.5e305  # whose logarithm is no infinity
STIRLING = np.log(np.array([math.factorial(k) for k in range(10)], np.float64))
STIRLING -= (np.arange(10) + 0.5) * np.log(np.arange(1, 11)) - np.arange(1, 11) + 0.5 * math.log(2 * math.pi)


class _Streams:
    """Doubles for many draws at once, each with its own place in the generator's sequence.

    A block gives two numbers, of which TensorFlow takes the second one first.
    """

    def __init__(self, generator: Philox, offsets: Array) -> None:
        self._generator = generator
        self._next = offsets.astype(np.uint64)
        self._uniform = np.zeros(offsets.size), np.zeros(offsets.size, bool)
        self._normal = np.zeros(offsets.size), np.zeros(offsets.size, bool)

    def uniform(self, draws: Array) -> Array:
        """A number in [0, 1) for each of these draws."""
        return self._taken(draws, *self._uniform, self._generator.uniform_pairs)

    def normal(self, draws: Array) -> Array:
        """A standard normal number for each of these draws."""
        return self._taken(draws, *self._normal, self._generator.normal_pairs)

    def _taken(self, draws: Array, kept: Array, is_kept: Array, pairs: Callable[[Array], Array]) -> Array:
        numbers = kept[draws]
        empty = np.flatnonzero(~is_kept[draws])
        if empty.size:
            made = pairs(self._next[draws[empty]])
            self._next[draws[empty]] += np.uint64(1)
            kept[draws[empty]], numbers[empty] = made[:, 0], made[:, 1]
        is_kept[draws] ^= True
        return numbers


def sizes_ending(shape: Array, *parameters: Array) -> tuple[int, ...]:
    """``shape``, once it is sure that it ends with what the parameters broadcast to.

    Raises:
        RunError: it does not.
    """
    sizes = reserve(ints(shape), np.float64)
    shapes = [p.shape for p in parameters]
    try:
        common = np.broadcast_shapes(*shapes)
    except ValueError:
        common = (-1,)
    if sizes[len(sizes) - len(common) :] != common:
        raise RunError(
            f"shapes that do not fit: {list(sizes)} must end with {' and '.join(str(list(s)) for s in shapes)}"
        )
    return sizes


def each_drawn(
    draw: Callable[..., Array], sizes: tuple[int, ...], parameters: tuple[Array, ...], dtype: np.dtype[np.generic]
) -> Array:
    """Numbers of the shape ``sizes``, which ends with that of the parameters.

    Args:
        draw: gives a double for each set of parameters in the order of TensorFlow, which makes all numbers of one set
            before it goes on to the next.
        sizes: the result's shape.
        parameters: arrays that broadcast.
        dtype: the result's type.
    """
    rows = [p.ravel() for p in np.broadcast_arrays(*parameters)]
    each = math.prod(sizes) // max(1, rows[0].size)
    drawn = draw(*(np.repeat(row, each) for row in rows))
    return np.asarray(drawn.reshape(rows[0].size, each).T.reshape(sizes).astype(dtype))


def gamma(generator: Philox, alpha: Array) -> Array:
    """A gamma number of rate 1 for each shape ``alpha`` (n,); NaN where that is below 0 or NaN."""
    alpha = _doubled(alpha)
    streams = _Streams(generator, np.arange(alpha.size) * RESERVED)
    result = np.where(alpha >= 0, np.inf, np.nan)
    simple = np.flatnonzero(alpha == 1)
    result[simple] = -np.log1p(-streams.uniform(simple))
    is_small = alpha < 1
    d = alpha + np.where(is_small, 2 / 3, -1 / 3)
    c = 1 / 3 / np.sqrt(d)
    left = np.flatnonzero((alpha >= 0) & (alpha != 1) & np.isfinite(alpha))
    while left.size:
        x = streams.normal(left)
        v = 1 + c[left] * x
        inside = np.flatnonzero(v > 0)
        tried, x, v = left[inside], x[inside], v[inside] ** 3
        u = streams.uniform(tried)
        taken = u < 1 - 0.0331 * (x * x) * (x * x)
        taken |= np.log(u) < 0.5 * x * x + d[tried] * (1 - v + np.log(v))
        good = tried[taken]
        result[good] = d[good] * v[taken]
        small = good[is_small[good]]
        result[small] *= streams.uniform(small) ** (1 / alpha[small])
        left = np.delete(left, inside[taken])
    return result


def poisson(generator: Philox, rate: Array, dtype: DType) -> Array:
    """A Poisson number for each mean ``rate`` (n,), none larger than ``dtype`` holds; NaN where the mean is NaN.

    Raises:
        RunError: hardly any numbers of a mean are as small as that.
    """
    rate = _doubled(rate)
    kind = dtype.numpy
    most = float(np.iinfo(kind).max) if kind.kind == "i" else float(np.finfo(kind).max)
    beyond = np.isfinite(rate) & (rate - DEVIATIONS * np.sqrt(np.maximum(rate, 1)) > most)
    if beyond.any():
        raise RunError(f"Poisson numbers of mean {rate[beyond][0]:g} are beyond what {dtype.name} holds")
    streams = _Streams(generator, np.arange(rate.size) * RESERVED)
    result = np.where(rate < FEW, 0, rate)
    product = np.ones(rate.size)
    left = np.flatnonzero(rate < FEW)
    while left.size:
        product[left] *= streams.uniform(left)
        left = left[product[left] > np.exp(-rate[left])]
        result[left] += 1
    left = np.flatnonzero((rate >= FEW) & np.isfinite(rate))
    while left.size:
        mean = rate[left]
        b = 0.931 + 2.53 * np.sqrt(mean)
        a = -0.059 + 0.02483 * b
        u, v = streams.uniform(left) - 0.5, streams.uniform(left)
        shifted = 0.5 - np.abs(u)
        k = np.floor((2 * a / shifted + b) * u + mean + 0.43)
        taken = (shifted >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
        slow = np.flatnonzero(~taken & (k >= 0) & ~((shifted < 0.013) & (v > shifted)))
        area = np.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (shifted * shifted) + b))
        factorials = np.array([math.lgamma(min(n + 1, LARGEST_FACTORIAL)) for n in k[slow].tolist()])
        taken[slow] = area[slow] <= -mean[slow] + k[slow] * np.log(mean[slow]) - factorials
        taken &= k <= most
        result[left[taken]] = k[taken]
        left = left[~taken]
    return result


def binomial(generator: Philox, counts: Array, probs: Array) -> Array:
    """How many of ``counts`` (n,) trials succeed that do so with ``probs`` (n,); NaN where one of them is NaN, or
    infinitely many do."""
    flipped = probs > 0.5
    chance = np.where(flipped, counts.dtype.type(1) - probs, probs)
    trials, odds = _doubled(counts), _doubled(chance)
    is_many = counts * chance >= counts.dtype.type(FEW)  # in the parameters' own type, as in TensorFlow
    result = np.where(np.isnan(trials) | np.isnan(odds), np.nan, 0.0)
    drawn = (trials > 0) & (odds > 0)
    result[drawn & np.isinf(trials)] = np.nan
    drawn &= np.isfinite(trials)
    at = np.arange(counts.size)
    few, many = at[drawn & ~is_many], at[drawn & is_many]
    result[few] = _summed(_Streams(generator, few * RESERVED_SUMS), trials[few], odds[few])
    result[many] = _by_rejection(_Streams(generator, many * RESERVED), trials[many], odds[many])
    return np.where(flipped & ~np.isnan(result), trials - result, result)


def _summed(streams: _Streams, trials: Array, odds: Array) -> Array:
    """Binomial numbers: so many geometric ones fit into the trials."""
    result, total = np.zeros(trials.size), np.zeros(trials.size)
    left = np.arange(trials.size)
    while left.size:
        total[left] += np.ceil(np.log(streams.uniform(left)) / np.log1p(-odds[left]))
        left = left[total[left] <= trials[left]]
        result[left] += 1
    return result


def _by_rejection(streams: _Streams, trials: Array, odds: Array) -> Array:
    """Binomial numbers of means of ten and more."""
    result = np.zeros(trials.size)
    left = np.arange(trials.size)
    while left.size:
        n, p = trials[left], odds[left]
        deviation = np.sqrt(n * p * (1 - p))
        b = 1.15 + 2.53 * deviation
        a = -0.0873 + 0.0248 * b + 0.01 * p
        u, v = streams.uniform(left) - 0.5, streams.uniform(left)
        shifted = 0.5 - np.abs(u)
        k = np.floor((2 * a / shifted + b) * u + n * p + 0.5)
        taken = (shifted >= 0.07) & (v <= 0.92 - 4.2 / b)
        m, r = np.floor((n + 1) * p), p / (1 - p)
        bound = (m + 0.5) * np.log((m + 1) / (r * (n - m + 1))) + (n + 1) * np.log((n - m + 1) / (n - k + 1))
        bound += (k + 0.5) * np.log(r * (n - k + 1) / (k + 1))
        bound += _stirling(m) + _stirling(n - m) - _stirling(k) - _stirling(n - k)
        area = np.log(v * (2.83 + 5.1 / b) * deviation / (a / (shifted * shifted) + b))
        taken |= (k >= 0) & (k <= n) & (area <= bound)
        result[left[taken]] = k[taken]
        left = left[~taken]
    return result


def _stirling(k: Array) -> Array:
    """What Stirling's formula for log k! leaves out."""
    square = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    return np.where(k <= 9, STIRLING[np.clip(k, 0, 9).astype(np.int64)], series)


def _doubled(value: Array) -> Array:
    return widened(value).astype(np.float64)
