"""Lowerings of functions that LiteRT has no operator for, written with those that it has."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.math.elementwise import binary, log_of_one_more
from pocketgraph.litert.lowerings.pieces import number
from pocketgraph.litert.program import Value

ERF_P = 0.3275911
ERF_A = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


@lowers("Erf", takes=("float",))
def error_function(emit: Emit, node: Node, source: Value) -> Value:
    """The error function to 5e-7; see ``tail``."""
    positive = binary(emit, "SUB", number(emit, 1), tail(emit, emit.add("ABS", [source], source.shape)))
    return binary(emit, "MUL", emit.add("SIGN", [source], source.shape), positive)


@lowers("Erfc", takes=("float",))
def complement_of_error_function(emit: Emit, node: Node, source: Value) -> Value:
    """1 - erf(x) to 5e-7; see ``tail``: that for x above 0, 2 less it below. XNNPACK has signs, and no choices."""
    rest = tail(emit, emit.add("ABS", [source], source.shape))
    sign = emit.add("SIGN", [source], source.shape)
    return binary(emit, "ADD", binary(emit, "SUB", number(emit, 1), sign), binary(emit, "MUL", sign, rest))


def tail(emit: Emit, size: Value) -> Value:
    """1 - erf(x) for x of 0 or more.

    Source: Abramowitz and Stegun, "Handbook of Mathematical Functions", formula 7.1.26.
    """
    divisor = binary(emit, "ADD", binary(emit, "MUL", size, number(emit, ERF_P)), number(emit, 1))
    t = binary(emit, "DIV", number(emit, 1), divisor)
    polynomial = binary(emit, "MUL", t, number(emit, ERF_A[-1]))
    for coefficient in ERF_A[-2::-1]:
        polynomial = binary(emit, "MUL", binary(emit, "ADD", polynomial, number(emit, coefficient)), t)
    decayed = emit.add("EXP", [emit.add("NEG", [binary(emit, "MUL", size, size)], size.shape)], size.shape)
    return binary(emit, "MUL", polynomial, decayed)


@lowers("Tan", takes=("float",))
def tangent(emit: Emit, node: Node, source: Value) -> Value:
    sine, cosine = (emit.add(code, [source], source.shape) for code in ("SIN", "COS"))
    return binary(emit, "DIV", sine, cosine)


@lowers("Atan2", "Atan", takes=("float",))
def angle(emit: Emit, node: Node, height: Value) -> Value:
    if node.op == "Atan":
        return emit.add("ATAN2", [height, emit.constant_like(height, 1)], height.shape)
    width = emit.require(emit.input(1), "float")
    shape = emit.output()[1]
    one = emit.const(np.ones(shape, np.float32))  # a product with it keeps the sign of 0, by which the angle turns
    sides = [value if value.shape == shape else binary(emit, "MUL", value, one) for value in (height, width)]
    return emit.add("ATAN2", sides, shape)


@lowers("Asin", "Acos", takes=("float",))
def angle_of_ratio(emit: Emit, node: Node, ratio: Value) -> Value:
    """By the other side of the right-angled triangle, the root of (1 - x) (1 + x), which keeps its digits near 1."""
    one = number(emit, 1)
    product = binary(emit, "MUL", binary(emit, "SUB", one, ratio), binary(emit, "ADD", one, ratio))
    other = emit.add("SQRT", [product], ratio.shape)
    return emit.add("ATAN2", [ratio, other] if node.op == "Asin" else [other, ratio], ratio.shape)


COSH_SERIES = (1.0, 1 / 2, 1 / 24, 1 / 720, 1 / 40320, 1 / 3628800)
SINH_SERIES = (1.0, 1 / 6, 1 / 120, 1 / 5040, 1 / 362880)
ASINH_SERIES = (1.0, -1 / 6, 3 / 40, -15 / 336, 105 / 3456)
ATANH_SERIES = (1.0, 1 / 3, 1 / 5, 1 / 7, 1 / 9, 1 / 11)
ACOSH_SERIES = (1.0, -1 / 12, 3 / 160, -5 / 896)
"""Taylor's coefficients: of the squares of x, and for acosh(1 + u) / sqrt(2 u) of u."""
NEAR, NEAR_ONE, HYPERBOLIC_NEAR = 0.25, 0.06, 1.0
"""Of x, of u, and of x for sinh and cosh, up to which series are exact to 3e-8; LOG is 1e-7 off near 1, which is much
of a small result."""


@lowers("Sinh", "Cosh", takes=("float",))
def hyperbolic(emit: Emit, node: Node, source: Value) -> Value:
    """Half of exp(a) less, or more, exp(-a), with a = |x|; near 0, and for NaN, a series. exp(a) is the square
    of exp(a / 2), which is finite for as long as the result is."""
    half = number(emit, 0.5)
    size = emit.add("ABS", [source], source.shape)
    root = emit.add("EXP", [binary(emit, "MUL", size, half)], source.shape)
    large = binary(emit, "MUL", binary(emit, "MUL", root, half), root)
    small = binary(emit, "MUL", emit.add("EXP", [emit.add("NEG", [size], source.shape)], source.shape), half)
    square = binary(emit, "MUL", source, source)
    if node.op == "Cosh":
        far, near = binary(emit, "ADD", large, small), polynomial(emit, square, COSH_SERIES)
    else:
        far = binary(emit, "MUL", emit.add("SIGN", [source], source.shape), binary(emit, "SUB", large, small))
        near = binary(emit, "MUL", source, polynomial(emit, square, SINH_SERIES))
    is_far = binary(emit, "GREATER", size, number(emit, HYPERBOLIC_NEAR), BOOL)
    return emit.add("SELECT_V2", [is_far, far, near], source.shape, source.dtype)


@lowers("Asinh", takes=("float",))
def inverse_hyperbolic_sine(emit: Emit, node: Node, source: Value) -> Value:
    """sign(x) log(a + sqrt(a^2 + 1)) with a = |x|, by way of 1 + a + a / (1 / a + sqrt(1 / a^2 + 1)), which squares no
    large a; near 0 a series."""
    size = emit.add("ABS", [source], source.shape)
    inverse = binary(emit, "DIV", number(emit, 1), size)
    square = binary(emit, "ADD", binary(emit, "MUL", inverse, inverse), number(emit, 1))
    divisor = binary(emit, "ADD", inverse, emit.add("SQRT", [square], source.shape))
    quarter = binary(emit, "MUL", size, number(emit, 0.25))
    far = log_of_quarters(emit, binary(emit, "ADD", quarter, binary(emit, "DIV", quarter, divisor)))
    return odd(emit, source, size, far, ASINH_SERIES)


@lowers("Atanh", takes=("float",))
def inverse_hyperbolic_tangent(emit: Emit, node: Node, source: Value) -> Value:
    """sign(x) / 2 log(1 + 2 a / (1 - a)) with a = |x|; near 0 a series."""
    size = emit.add("ABS", [source], source.shape)
    more = binary(emit, "DIV", binary(emit, "ADD", size, size), binary(emit, "SUB", number(emit, 1), size))
    far = binary(emit, "MUL", log_of_one_more(emit, more), number(emit, 0.5))
    return odd(emit, source, size, far, ATANH_SERIES)


@lowers("Acosh", takes=("float",))
def inverse_hyperbolic_cosine(emit: Emit, node: Node, source: Value) -> Value:
    """log(1 + u + sqrt(u) sqrt(u + 2)) with u = x - 1, which is exact near 1; there a series."""
    more = binary(emit, "SUB", source, number(emit, 1))
    quarter = binary(emit, "MUL", more, number(emit, 0.25))
    beyond = binary(emit, "ADD", quarter, number(emit, 0.5))
    roots = [emit.add("SQRT", [value], source.shape) for value in (quarter, beyond)]
    far = log_of_quarters(emit, binary(emit, "ADD", quarter, binary(emit, "MUL", roots[0], roots[1])))
    scale = binary(emit, "MUL", roots[0], number(emit, 8**0.5))
    near = binary(emit, "MUL", scale, polynomial(emit, more, ACOSH_SERIES))
    is_near = binary(emit, "LESS", more, number(emit, NEAR_ONE), BOOL)
    return emit.add("SELECT_V2", [is_near, near, far], source.shape, source.dtype)


def log_of_quarters(emit: Emit, quarter: Value) -> Value:
    """log(1 + 4 q), where 4 q may be too large for the type."""
    total = binary(emit, "ADD", quarter, number(emit, 0.25))
    return binary(emit, "ADD", emit.add("LOG", [total], total.shape), number(emit, log(4)))


def odd(emit: Emit, source: Value, size: Value, far: Value, series: Sequence[float]) -> Value:
    """An odd function: by its series near 0, elsewhere what it is of the sizes."""
    near = binary(emit, "MUL", source, polynomial(emit, binary(emit, "MUL", source, source), series))
    far = binary(emit, "MUL", emit.add("SIGN", [source], source.shape), far)
    is_near = binary(emit, "LESS", size, number(emit, NEAR), BOOL)
    return emit.add("SELECT_V2", [is_near, near, far], source.shape, source.dtype)


def polynomial(emit: Emit, x: Value, coefficients: Sequence[float]) -> Value:
    """The sum of ``coefficients[n] x^n``, by Horner's rule."""
    value = binary(emit, "MUL", x, number(emit, coefficients[-1]))
    for coefficient in coefficients[-2:0:-1]:
        value = binary(emit, "MUL", binary(emit, "ADD", value, number(emit, coefficient)), x)
    return binary(emit, "ADD", value, number(emit, coefficients[0]))
