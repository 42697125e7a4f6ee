"""Gradients of the incomplete gamma function, and of gamma draws, by their parameter."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pocketgraph.kernels.arrays import Array, widened
from pocketgraph.kernels.math.arithmetic import paired
from pocketgraph.kernels.math.special_functions import digamma
from pocketgraph.kernels.registry import kernel

PANELS, POINTS = 24, 20  # of an integral over the tail
LARGEST = 1e6  # beyond it, a sum over all terms takes too long; TensorFlow's series do not converge either


def share_by_parameter(a: float, x: float) -> tuple[float, float]:
    """(dP(a, x)/da, the density of x) for the regularised incomplete gamma function P (DLMF 8.7.1, 8.2.4).

    Below the mean it is summed by the terms of P's series, above it integrated over the tail, in which nothing cancels.
    At 0, whatever ``a`` is, and where one of both is infinite, both are 0, as in TensorFlow.
    """
    if x == 0 or (min(a, x) > 0 and math.isinf(a + x)):
        return 0.0, 0.0
    if not (a > 0 and x > 0) or max(a, x) > LARGEST:
        return math.nan, math.nan
    logarithm = math.log(x)
    density = math.exp((a - 1) * logarithm - x - math.lgamma(a))
    if x <= a + 1:
        count = int(x + 12 * math.sqrt(x + 1) + 40)
        psi, shares = digamma(a + 1), 0.0
        term = a * logarithm - x - math.lgamma(a + 1)
        for k in range(count):
            shares += math.exp(term) * (logarithm - psi)
            psi += 1 / (a + 1 + k)
            term += logarithm - math.log(a + 1 + k)
        return shares, density
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    reach = 60 + 12 * math.sqrt(a)
    along = (np.arange(PANELS)[:, None] + (nodes + 1) / 2).ravel() / PANELS * reach
    t = x + along
    falling = np.exp((a - 1) * np.log(t) - t - math.lgamma(a)) * (np.log(t) - digamma(a))
    return -float(falling @ np.tile(weights, PANELS)) * reach / (2 * PANELS), density


def _each(function: Callable[[float, float], float], a: Array, x: Array) -> Array:
    paired(a, x)
    first, second = np.broadcast_arrays(widened(a).astype(np.float64), widened(x).astype(np.float64))
    found = [function(p, q) for p, q in zip(first.ravel().tolist(), second.ravel().tolist(), strict=True)]
    return np.array(found, dtype=np.float64).reshape(first.shape).astype(a.dtype)


@kernel("IgammaGradA")
def igamma_grad_a(a: Array, x: Array) -> Array:
    """The derivative of Igamma by a."""
    return _each(lambda p, q: share_by_parameter(p, q)[0], a, x)


def _sample_by_parameter(a: float, x: float) -> float:
    by_parameter, density = share_by_parameter(a, x)
    return -by_parameter / density if density else by_parameter  # of both 0 TensorFlow's is 0, too


@kernel("RandomGammaGrad")
def random_gamma_grad(alpha: Array, sample: Array) -> Array:
    """How a gamma draw moves with alpha when its quantile stays: -(dP/dalpha) / density (Figurnov and others, 2018)."""
    return _each(_sample_by_parameter, alpha, sample)
