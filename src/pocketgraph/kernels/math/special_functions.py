"""Special functions: error, gamma, zeta and beta functions and their kin, computed in double precision.

Sources: NIST Digital Library of Mathematical Functions (dlmf.nist.gov), chapters 5, 7, 8 and 25.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pocketgraph.budgets import timed
from pocketgraph.kernels.arrays import Array, widened
from pocketgraph.kernels.math.arithmetic import paired
from pocketgraph.kernels.registry import kernel

TINY = 1e-300
"""Stands in for 0 in continued fractions."""
SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
LARGE = 1e8
"""From here on the incomplete gamma functions are computed by their expansion for large a."""
TERMS = 300
"""The most terms that a series or fraction is given to settle."""

# B(2k) / (2k)! and B(2k) / 2k for k = 1…12 are all made from these Bernoulli numbers.
BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
    854513 / 138, -236364091 / 2730,
)  # fmt: skip


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of one number, on every element of an array; a domain error gives NaN, an overflow infinity."""

    def guarded(value: float) -> float:
        try:
            return function(value)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    def run(x: Array) -> Array:
        wide = x.astype(np.float64)
        found = np.array([guarded(v) for v in wide.ravel().tolist()], dtype=np.float64)
        return np.asarray(found.reshape(x.shape).astype(x.dtype))

    return run


def lgamma(x: float) -> float:
    """log |gamma(x)|, infinite at 0, -1, -2, …"""
    if x <= 0 and x == math.floor(x):
        return math.inf
    return math.lgamma(x)


def digamma(x: float) -> float:
    """The derivative of log gamma; NaN at 0, -1, -2, … (DLMF 5.5.2, 5.5.4, 5.11.2)."""
    if math.isnan(x) or x == -math.inf:
        return math.nan
    if x == math.inf:
        return x
    if x <= 0:
        if x == math.floor(x):
            return math.nan
        return digamma(1 - x) - math.pi / math.tan(math.pi * (x - round(x)))  # exact at any distance from a pole
    total = 0.0
    while x < 12:
        total -= 1 / x
        x += 1
    square = 1 / (x * x)
    series = sum(b / (2 * k) * square**k for k, b in enumerate(BERNOULLI[:8], 1))
    return total + math.log(x) - 0.5 / x - series


def zeta(s: float, q: float) -> float:
    """Hurwitz' zeta function: the sum of (q + n)^-s (DLMF 25.11.5)."""
    if math.isnan(s) or math.isnan(q) or s < 1:
        return math.nan
    if s == 1:
        return math.inf
    if q == -math.inf:  # as at a whole number
        return math.nan if math.isfinite(s) and s % 2 else math.inf
    if math.isinf(s) and math.isfinite(q):  # q^-s, whatever comes after it
        return math.inf if q < 1 else float(q == 1)
    if q <= 0:
        if math.isinf(s) or s != math.floor(s):
            return math.nan
        if q == math.floor(q):
            return math.nan if s % 2 else math.inf
    if math.isinf(s) or math.isinf(q):
        return 0.0
    start = 10 + max(0, math.ceil(-q))
    total = math.fsum((q + n) ** -s for n in range(start))
    a = q + start
    total += a ** (1 - s) / (s - 1) + 0.5 * a**-s
    factor = s * a ** (-s - 1)
    for k, bernoulli in enumerate(BERNOULLI, 1):
        total += bernoulli / math.factorial(2 * k) * factor
        factor *= (s + 2 * k - 1) * (s + 2 * k) / (a * a)
    return float(total)


def polygamma(order: float, x: float) -> float:
    """The ``order``-th derivative of digamma."""
    if order == math.inf:  # infinity times what comes after it, which is 0 beyond 1
        return math.inf if x <= 1 else math.nan
    if order < 0 or order != math.floor(order):
        return math.nan
    if order == 0:
        return digamma(x)
    sign = 1.0 if int(order) % 2 else -1.0
    return sign * math.gamma(order + 1) * zeta(order + 1, x)


def gamma_share(a: float, x: float) -> tuple[float, float]:
    """The regularised incomplete gamma functions P(a, x) and Q(a, x) (DLMF 8.7.1, 8.9.2)."""
    if x == 0:
        return 0.0, 1.0 if a > 0 else math.nan
    if math.isnan(a) or math.isnan(x) or a <= 0 or x < 0:
        return math.nan, math.nan
    if math.isinf(x):
        return 0.0 if math.isinf(a) else 1.0, 0.0
    if math.isinf(a):
        return 0.0, 1.0
    if a < SMALLEST_NORMAL:  # its quotients may be infinite; of the rest of the way to 0 nothing is left
        return 1.0, 0.0
    if a > LARGE:
        return _large_gamma_share(a, x)
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        for n in range(1, TERMS * 10):
            term *= x / (a + n)
            total += term
            if abs(term) < abs(total) * 1e-17:
                break
        return front * total, max(1 - front * total, 0.0)
    b = x + 1 - a
    c, d = 1 / TINY, 1 / b
    fraction = d
    for n in range(1, TERMS * 10):
        step = -n * (n - a)
        b += 2
        d = 1 / ((step * d + b) or TINY)
        c = (b + step / c) or TINY
        fraction *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return 1 - front * fraction, front * fraction


def _large_gamma_share(a: float, x: float) -> tuple[float, float]:
    """The same for a above LARGE, by two terms of the uniform expansion (DLMF 8.12.3, 8.12.4, 8.12.7)."""
    excess = (x - a) / a
    if abs(excess) > 0.1:
        return (1.0, 0.0) if excess > 0 else (0.0, 1.0)
    if abs(excess) < 1e-3:
        half = sum((-excess) ** k / k for k in range(2, 9))
        correction = -1 / 3 + excess / 12
    else:
        half = excess - math.log1p(excess)
        correction = 1 / excess - 1 / math.copysign(math.sqrt(2 * half), excess)
    eta = math.copysign(math.sqrt(2 * half), excess)
    rest = math.exp(-a * half) / math.sqrt(2 * math.pi * a) * correction
    return 0.5 * math.erfc(-eta * math.sqrt(a / 2)) - rest, 0.5 * math.erfc(eta * math.sqrt(a / 2)) + rest


def beta_share(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b) (DLMF 8.17.22)."""
    if math.isnan(a + b + x) or a <= 0 or b <= 0 or not 0 <= x <= 1:
        return math.nan
    if x in (0, 1):
        return x
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    c = 1.0
    d = 1 / ((1 - (a + b) * x / (a + 1)) or TINY)
    fraction = d
    for m in range(1, TERMS):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / ((1 + step * d) or TINY)
            c = (1 + step / c) or TINY
            fraction *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return front * fraction


def normal_quantile(p: float) -> float:
    """The number below which a standard normal one lies with probability ``p``, by Newton's method on erfc."""
    if math.isnan(p) or not 0 <= p <= 1:
        return math.nan
    if p in (0, 1):
        return math.copysign(math.inf, p - 0.5)
    if p >= 0.5:
        return -normal_quantile(1 - p) if p > 0.5 else 0.0
    # the tail expansion gives a start near enough for Newton's method on the logarithm to converge
    t = math.sqrt(-2 * math.log(p))
    x = -(t - (2.30753 + 0.27061 * t) / (1 + 0.99229 * t + 0.04481 * t * t))
    for _ in range(20):
        chance = 0.5 * math.erfc(-x / math.sqrt(2))
        density = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        step = chance / density * math.log(chance / p)
        x -= step
        if abs(step) < 1e-16 * max(1.0, abs(x)):
            break
    return x


@kernel("Erfinv")
def inverse_erf(x: Array) -> Array:
    """The argument at which erf is x: the normal quantile of (x + 1) / 2, divided by √2.

    That half is rounded to the type of x first, as TensorFlow does it, which costs what is near zero its last digits.
    """
    wide = widened(x)
    chance = wide.dtype.type(0.5) * (wide + wide.dtype.type(1))
    found = np.array([normal_quantile(float(p)) / math.sqrt(2) for p in chance.ravel().tolist()], dtype=np.float64)
    return np.asarray(found.reshape(x.shape).astype(x.dtype))


for _op, _function in {
    "Erf": math.erf, "Erfc": math.erfc, "Lgamma": lgamma, "Digamma": digamma,
    "Ndtri": normal_quantile,
}.items():  # fmt: skip
    kernel(_op)(_each(_function))


def _pairs(function: Callable[[float, float], float], x: Array, y: Array) -> Array:
    paired(x, y)
    wide, other = np.broadcast_arrays(x.astype(np.float64), y.astype(np.float64))
    pairs = zip(wide.ravel().tolist(), other.ravel().tolist(), strict=True)
    found = [_safely(function, a, b) for a, b in timed(pairs)]
    return np.array(found, dtype=np.float64).reshape(wide.shape).astype(x.dtype)


def _safely(function: Callable[[float, float], float], a: float, b: float) -> float:
    try:
        return function(a, b)
    except (ValueError, ZeroDivisionError):
        return math.nan
    except OverflowError:
        return math.inf


kernel("Igamma")(lambda a, x: _pairs(lambda s, v: gamma_share(s, v)[0], a, x))
kernel("Igammac")(lambda a, x: _pairs(lambda s, v: gamma_share(s, v)[1], a, x))
kernel("Zeta")(lambda x, q: _pairs(zeta, x, q))
kernel("Polygamma")(lambda a, x: _pairs(polygamma, a, x))


@kernel("Betainc")
def betainc(a: Array, b: Array, x: Array) -> Array:
    if len({v.shape for v in (a, b, x) if v.ndim}) > 1:
        raise ValueError(f"Shapes of a, b and x are inconsistent: {list(a.shape)}, {list(b.shape)}, {list(x.shape)}")
    first, second, third = np.broadcast_arrays(a, b, x)
    flat = (v.astype(np.float64).ravel().tolist() for v in (first, second, third))
    found = [beta_share(*values) for values in zip(*flat, strict=True)]
    return np.array(found, dtype=np.float64).reshape(first.shape).astype(x.dtype)
