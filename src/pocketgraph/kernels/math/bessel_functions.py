"""Bessel functions, and integrals without elementary form: Dawson's, Fresnel's, the exponential one, Spence's.

All are computed in double precision and rounded once. Where TensorFlow gives no number (at infinities, most of them),
or an infinity (K and Y below 0), there is none here either. Source: NIST Digital Library of Mathematical Functions
(dlmf.nist.gov): power series where arguments are small, integrals by Gauss or trapezoids between, asymptotic series
where they are large.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from pocketgraph.kernels.arrays import Array, widened
from pocketgraph.kernels.registry import kernel

EULER = 0.5772156649015329
TERMS = 100
"""Terms of a power series; enough for arguments up to LARGE."""
PANELS = 8
"""Of an integral; each has 20 points."""
LARGE = 30.0
"""From here on the asymptotic series of Bessel functions reach double precision."""


@cache
def _gauss() -> tuple[Array, Array]:
    """Gauss' points and weights on [0, 1], by panels: those of high orders are not known to the last place."""
    points, weights = np.polynomial.legendre.leggauss(20)
    panels = np.arange(PANELS)[:, None] + (points + 1) / 2
    return panels.ravel() / PANELS, np.tile(weights / (2 * PANELS), PANELS)


def _pieces(x: Array, *pieces: tuple[Array, Callable[[Array], Array]]) -> Array:
    """Each function where its mask says so; NaN elsewhere."""
    result = np.full(x.shape, np.nan)
    for mask, function in pieces:
        if mask.any():
            result[mask] = function(x[mask])
    return result


def _power_series(order: int, quarter: Array, start: Array, weigh: Callable[[int], float] = lambda _: 1.0) -> Array:
    """The sum of weigh(k) start quarter^k / (k! (k + order)!)."""
    term = start / math.factorial(order)
    total = weigh(0) * term
    for k in range(1, TERMS):
        term = term * quarter / (k * (k + order))
        total = total + weigh(k) * term
    return np.asarray(total)


def _falling(order: int, x: Array, sign: int) -> tuple[Array, Array]:
    """The even and the odd terms of the asymptotic series of a Bessel function (DLMF 10.17.1), with signs that go on by
    ``sign`` from one to the next of each."""
    term, even, odd = np.ones_like(x), np.ones_like(x), np.zeros_like(x)
    for k in range(1, 30):
        term = term * (4 * order * order - (2 * k - 1) ** 2) / (8 * k * x)
        if k % 2:
            odd = odd + term * sign ** (k // 2)
        else:
            even = even + term * sign ** (k // 2)
    return even, odd


def bessel_i_scaled(order: int, x: Array) -> Array:
    """e^-|x| I(x) (DLMF 10.25.2, 10.40.1)."""
    size = np.abs(x)

    def small(v: Array) -> Array:
        return _power_series(order, v * v / 4, (v / 2) ** order) * np.exp(-v)

    def large(v: Array) -> Array:
        even, odd = _falling(order, v, 1)
        return (even - odd) / (math.sqrt(2 * math.pi) * np.sqrt(v))

    found = _pieces(size, (size <= LARGE, small), (size > LARGE, large))
    return np.where(np.isinf(size), 0.0, np.where((x < 0) & (order == 1), -found, found))


def bessel_k_scaled(order: int, x: Array) -> Array:
    """e^x K(x) for x ≥ 0 (DLMF 10.31.1, 10.31.2, 10.32.9, 10.40.2)."""

    def small(v: Array) -> Array:
        whole = bessel_i_scaled(order, v) * np.exp(v)
        if order == 0:
            harmonics = _power_series(0, v * v / 4, np.ones_like(v), _harmonic)
            return np.asarray((harmonics - (np.log(v / 2) + EULER) * whole) * np.exp(v))
        sums = _power_series(1, v * v / 4, np.ones_like(v), lambda k: _harmonic(k) + _harmonic(k + 1) - 2 * EULER)
        return np.asarray((1 / v + np.log(v / 2) * whole - v / 4 * sums) * np.exp(v))

    def middle(v: Array) -> Array:
        step = 0.1
        total = np.full(v.shape, 0.5)
        for k in range(1, 52):
            total = total + np.exp(-v * (math.cosh(k * step) - 1)) * math.cosh(order * k * step)
        return total * step

    def large(v: Array) -> Array:
        even, odd = _falling(order, v, 1)
        return (even + odd) * (math.sqrt(math.pi / 2) / np.sqrt(v))

    found = _pieces(x, ((x > 0) & (x <= 1), small), ((x > 1) & (x <= LARGE), middle), (x > LARGE, large))
    return np.where(np.isposinf(x), 0.0, np.where(x <= 0, np.inf, found))


@cache
def _harmonic(k: int) -> float:
    return math.fsum(1 / n for n in range(1, k + 1))


def _waves(order: int, x: Array) -> tuple[Array, Array]:
    """(J, Y) for large x (DLMF 10.17.3, 10.17.4)."""
    even, odd = _falling(order, x, -1)
    # x less (2 order + 1) π/4, by addition theorems, since the difference of large numbers is not exact
    sine, cosine = np.sin(x), np.cos(x)
    root = np.sqrt(1 / (np.pi * x))
    if order == 0:
        along, across = cosine + sine, sine - cosine
    else:
        along, across = sine - cosine, -sine - cosine
    return root * (even * along - odd * across), root * (even * across + odd * along)


def bessel_j(order: int, x: Array) -> Array:
    """J(x) (DLMF 10.9.1, 10.17.3)."""
    size = np.abs(x)

    def small(v: Array) -> Array:
        angles = np.pi * (np.arange(64) + 0.5) / 64
        inner = v[:, None] * np.sin(angles)
        return np.asarray((np.cos(inner) if order == 0 else np.sin(inner) * np.sin(angles)).mean(axis=1))

    found = _pieces(size, (size <= LARGE, small), (size > LARGE, lambda v: _waves(order, v)[0]))  # at infinity NaN
    return np.where(np.signbit(x) & (order == 1), -found, found)


def bessel_y(order: int, x: Array) -> Array:
    """Y(x) for x ≥ 0 (DLMF 10.8.1, 10.8.2, 10.9.6)."""

    def small(v: Array) -> Array:
        whole, quarter = bessel_j(order, v), -v * v / 4
        if order == 0:
            return 2 / np.pi * ((np.log(v / 2) + EULER) * whole - _power_series(0, quarter, np.ones_like(v), _harmonic))
        sums = _power_series(1, quarter, np.ones_like(v), lambda k: _harmonic(k) + _harmonic(k + 1) - 2 * EULER)
        return (2 * np.log(v / 2) * whole - 2 / v - v / 2 * sums) / np.pi

    def middle(v: Array) -> Array:
        points, weights = _gauss()
        angles = np.pi * points
        waves = np.sin(v[:, None] * np.sin(angles) - order * angles) @ weights
        reach = np.arcsinh(45 / v)
        t = reach[:, None] * points
        growing = np.exp(order * t) + (-1) ** order * np.exp(-order * t)
        return np.asarray(waves - (growing * np.exp(-v[:, None] * np.sinh(t))) @ weights * reach / np.pi)

    found = _pieces(x, ((x > 0) & (x <= 3), small), ((x > 3) & (x <= LARGE), middle),
                    (x > LARGE, lambda v: _waves(order, v)[1]))  # fmt: skip
    return np.where(x <= 0, -np.inf, found)


def dawson(x: Array) -> Array:
    """e^(-x²) times the integral of e^(t²) from 0 to x, by Rybicki's sum (Computers in Physics 3, 85, 1989)."""
    size, step = np.abs(x), 0.2

    def small(v: Array) -> Array:
        total = np.zeros_like(v)
        for n in range(1, 101, 2):  # two neighbours at once, whose difference is exact for small v
            total = total + (np.exp(-((v - n * step) ** 2)) - np.exp(-((v + n * step) ** 2))) / n
        return total / math.sqrt(math.pi)

    def tiny(v: Array) -> Array:
        term, total = v, v
        for k in range(1, 20):
            term = term * -2 * v * v / (2 * k + 1)
            total = total + term
        return total

    def large(v: Array) -> Array:
        term, total = 1 / (2 * v), 1 / (2 * v)
        for k in range(1, 20):
            term = term * (2 * k - 1) / (2 * v * v)
            total = total + term
        return total

    found = _pieces(size, (size <= 0.5, tiny), ((size > 0.5) & (size <= 10), small), (size > 10, large))
    return np.copysign(found, x)


def exponential_integral(x: Array) -> Array:
    """Ei(x) for x ≥ 0 (DLMF 6.6.2, 6.12.2)."""

    def near(v: Array) -> Array:
        term, total = np.ones_like(v), np.zeros_like(v)
        for k in range(1, 150):
            term = term * v / k
            total = total + term / k
        return EULER + np.log(v) + total

    def above(v: Array) -> Array:
        term, total = np.ones_like(v), np.ones_like(v)
        for k in range(1, 40):
            term = term * k / v
            total = total + term
        return np.exp(v) / v * total

    found = _pieces(x, ((x > 0) & (x <= 45), near), ((x > 45) & np.isfinite(x), above))
    return np.where(x == 0, -np.inf, found)


def fresnel(x: Array, sine: bool) -> Array:
    """The integral of sin or cos of π t²/2 from 0 to x (DLMF 7.2.7, 7.2.8, 7.12.2, 7.12.3)."""
    size = np.minimum(np.abs(x), 1e70)  # from 1e17 on the result is a half; the fourth power is a number

    def small(v: Array) -> Array:
        points, weights = _gauss()
        angles = np.pi / 2 * (v[:, None] * points) ** 2
        return np.asarray(((np.sin(angles) if sine else np.cos(angles)) @ weights) * v)

    def large(v: Array) -> Array:
        square = np.pi * v * v
        f, g, term = np.ones_like(v), np.ones_like(v), np.ones_like(v)
        second = np.ones_like(v)
        for k in range(1, 8):
            term = term * -(4 * k - 1) * (4 * k - 3) / square**2
            second = second * -(4 * k + 1) * (4 * k - 1) / square**2
            f, g = f + term, g + second
        f, g = f / (np.pi * v), g / (np.pi * v * square)
        angle = np.pi / 2 * np.fmod(v * v, 4)
        if sine:
            return np.asarray(0.5 - f * np.cos(angle) - g * np.sin(angle))
        return np.asarray(0.5 + f * np.sin(angle) - g * np.cos(angle))

    found = _pieces(size, (size <= 6, small), (size > 6, large))
    return np.copysign(found, x)


def spence(x: Array) -> Array:
    """Minus the integral of log t / (t - 1) from 1 to x, which is the dilogarithm of 1 - x (DLMF 25.12)."""

    def series(z: Array) -> Array:
        power, total = np.ones_like(z), np.zeros_like(z)
        for k in range(1, 70):
            power = power * z
            total = total + power / (k * k)
        return total

    def small(v: Array) -> Array:
        product = np.where(v == 0, 0.0, np.log(np.where(v == 0, 1, v)) * np.log1p(-v))
        return np.pi**2 / 6 - product - series(v)

    def middle(v: Array) -> Array:
        return series(1 - v)

    def large(v: Array) -> Array:
        back = 1 / v
        turned = _pieces(back, (back <= 0.5, small), (back > 0.5, middle))
        return -0.5 * np.log(v) ** 2 - turned

    finite = np.isfinite(x)
    return _pieces(x, ((x >= 0) & (x <= 0.5), small), ((x > 0.5) & (x < 1.5), middle), (finite & (x >= 1.5), large))


def _grown(scaled: Callable[[int, Array], Array], order: int, sign: int) -> Callable[[Array], Array]:
    """A function without the factor that its scaled form has."""

    def run(x: Array) -> Array:
        found = scaled(order, x)
        size = np.abs(x) if sign > 0 else x
        half = np.exp(sign * size / 2)  # in two steps: e^|x| overflows before the function does
        grown = found * half * half
        return np.where(np.isposinf(x), 0.0, np.where(x <= 0, np.inf, grown)) if sign < 0 else grown

    return run


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "BesselI0e": lambda x: bessel_i_scaled(0, x), "BesselI1e": lambda x: bessel_i_scaled(1, x),
    "BesselI0": _grown(bessel_i_scaled, 0, 1), "BesselI1": _grown(bessel_i_scaled, 1, 1),
    "BesselK0e": lambda x: bessel_k_scaled(0, x), "BesselK1e": lambda x: bessel_k_scaled(1, x),
    "BesselK0": _grown(bessel_k_scaled, 0, -1), "BesselK1": _grown(bessel_k_scaled, 1, -1),
    "BesselJ0": lambda x: bessel_j(0, x), "BesselJ1": lambda x: bessel_j(1, x),
    "BesselY0": lambda x: bessel_y(0, x), "BesselY1": lambda x: bessel_y(1, x),
    "Dawsn": dawson, "Expint": exponential_integral, "Spence": spence,
    "FresnelCos": lambda x: fresnel(x, False), "FresnelSin": lambda x: fresnel(x, True),
}  # fmt: skip
"""By op: the function of float64 arrays."""


def _kernel(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def run(x: Array) -> Array:
        wide = widened(x).astype(np.float64)
        return np.asarray(function(wide.ravel()).reshape(x.shape).astype(x.dtype))

    return run


for _op, _function in FUNCTIONS.items():
    kernel(_op)(_kernel(_function))
