"""Normal numbers between given bounds, each batch or element with a mean, a deviation and bounds of its own."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.kernels.arrays import Array, ints, reserve, widened
from pocketgraph.kernels.philox import MASK, Philox
from pocketgraph.kernels.random.sampling import drawing, stateless
from pocketgraph.kernels.registry import Context, kernel

WIDE = 1.0
"""Standard deviations of an interval round 0 from which on plain normal numbers fall into it often enough."""


def _source(generator: Philox) -> np.random.Generator:
    return np.random.default_rng([generator.key & MASK, generator.counter & MASK, generator.counter >> 64])


def _standard(source: np.random.Generator, low: Array, high: Array) -> Array:
    """Standard normal numbers in [low, high], each pair of bounds its own (Robert, Simulation of truncated normal
    variables, 1995): plain ones where the interval is wide, else proposals taken as often as the density says."""
    flip = high < 0  # the far side of the bell, seen in a mirror
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    result = np.empty_like(low)
    left = np.arange(low.size)
    while left.size:
        a, b = low[left], high[left]
        rate = (a + np.sqrt(a * a + 4)) / 2
        steep = (a > 0) & ((b - a) * rate > 1)
        plain = (a <= 0) & (b - a > WIDE) & (b > 0)
        uniform = source.random(left.size)
        flat = a + (b - np.where(np.isfinite(b), a, 0)) * np.where(np.isfinite(b), uniform, 0)
        proposal = np.where(steep, a + source.standard_exponential(left.size) / rate, flat)
        proposal = np.where(plain, source.standard_normal(left.size), proposal)
        nearest = np.maximum(a, 0.0)
        odds = np.where(steep, np.exp(-0.5 * (proposal - rate) ** 2), np.exp(0.5 * (nearest**2 - proposal**2)))
        taken = (proposal >= a) & (proposal <= b) & (plain | (source.random(left.size) <= odds))
        result[left[taken]] = proposal[taken]
        left = left[~taken]
    return np.asarray(np.where(flip, -result, result))


def _drawn(
    source: np.random.Generator, sizes: tuple[int, ...], parameters: tuple[Array, ...], dtype: DType
) -> Array:  # fmt: skip
    """Numbers for (means, deviations, least, largest), each of which broadcasts to ``sizes``; NaN where these make no
    sense, as in TensorFlow."""
    mean, deviation, least, most = (
        np.broadcast_to(widened(p).astype(np.float64), sizes).ravel() for p in parameters
    )  # fmt: skip
    good = (deviation > 0) & (least < most) & np.isfinite(mean) & np.isfinite(deviation)
    good &= ~(np.isnan(least) | np.isnan(most))
    low, high = (least - mean)[good] / deviation[good], (most - mean)[good] / deviation[good]
    result = np.full(mean.size, np.nan)
    result[good] = _standard(source, low, high) * deviation[good] + mean[good]
    result[good] = np.clip(result[good], least[good], most[good])
    return result.reshape(sizes).astype(dtype.numpy)


@kernel("ParameterizedTruncatedNormal")
def parameterized_truncated_normal(
    shape: Array,
    means: Array,
    stdevs: Array,
    minvals: Array,
    maxvals: Array,
    *,
    context: Context,
    dtype: DType,
    seed: int = 0,
    seed2: int = 0,
) -> Array:
    """``shape`` is (batches, …); each parameter is one number, or one a batch. Right in distribution; the numbers
    themselves are not TensorFlow's."""
    sizes = reserve(ints(shape), np.float64)
    if shape.ndim != 1 or not sizes:
        raise RunError(f"Shape vector must have at least one element, not the shape {list(shape.shape)}")
    columns = []
    for name, value in (("means", means), ("stdevs", stdevs), ("minvals", minvals), ("maxvals", maxvals)):
        if value.ndim > 1 or (value.size != 1 and value.shape != sizes[:1]):
            raise RunError(f"{name} must be a scalar or a vector of {sizes[0]}, not {list(value.shape)}")
        columns.append(value.reshape(-1, *(1,) * (len(sizes) - 1)))
    generator = drawing(context, seed, seed2, 256 * int(np.prod(sizes, dtype=np.int64)))
    return _drawn(_source(generator), sizes, tuple(columns), dtype)


@kernel("StatelessParameterizedTruncatedNormal")
def stateless_parameterized_truncated_normal(
    shape: Array, seed: Array, means: Array, stddevs: Array, minvals: Array, maxvals: Array, *, dtype: DType
) -> Array:
    """``shape`` ends with what the parameters broadcast to. Right in distribution; the numbers themselves are not
    TensorFlow's."""
    sizes = reserve(ints(shape), np.float64)
    parameters = (means, stddevs, minvals, maxvals)
    common = np.broadcast_shapes(*(p.shape for p in parameters))
    if len(common) > len(sizes) or (common and sizes[-len(common) :] != common):
        raise RunError(f"Shape passed in must end with broadcasted shape: {list(sizes)} and {list(common)}")
    return _drawn(_source(stateless(seed)), sizes, parameters, dtype)
