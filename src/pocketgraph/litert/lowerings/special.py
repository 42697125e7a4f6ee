"""Lowerings of functions that LiteRT has no operator for, written with those that it has."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.math import binary
from pocketgraph.litert.program import Value


def number(emit: Emit, value: float) -> Value:
    """A constant scalar."""
    return emit.const(value, np.float32)


@lowers("Softplus")
def softplus(emit: Emit, node: Node) -> None:
    """log(1 + exp(x)) as max(x, 0) + log(1 + exp(-\\|x\\|)), which does not overflow."""
    source = emit.require(emit.input(0), "float")
    decayed = emit.add("EXP", [emit.add("NEG", [emit.add("ABS", [source], source.shape)], source.shape)], source.shape)
    tail = emit.add("LOG", [binary(emit, "ADD", decayed, number(emit, 1))], source.shape)
    emit.result(binary(emit, "ADD", emit.add("RELU", [source], source.shape), tail))


@lowers("Softsign")
def softsign(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), "float")
    divisor = binary(emit, "ADD", emit.add("ABS", [source], source.shape), number(emit, 1))
    emit.result(binary(emit, "DIV", source, divisor))


SELU_SCALE = 1.0507009873554804934193349852946
SELU_ALPHA = 1.6732632423543772848170429916717


@lowers("Selu")
def selu(emit: Emit, node: Node) -> None:
    """scale * max(x, 0) + scale * alpha * elu(min(x, 0)); constants of Klambauer et al., 2017."""
    source = emit.require(emit.input(0), "float")
    negative = emit.add("ELU", [binary(emit, "MINIMUM", source, number(emit, 0))], source.shape)
    low = binary(emit, "MUL", negative, number(emit, SELU_SCALE * SELU_ALPHA))
    high = binary(emit, "MUL", emit.add("RELU", [source], source.shape), number(emit, SELU_SCALE))
    emit.result(binary(emit, "ADD", high, low))


@lowers("Log1p")
def log_of_one_plus(emit: Emit, node: Node) -> None:
    """x log(u) / (u - 1) with u = 1 + x, and x where u is 1, which keeps the digits of a small x.

    Source: Goldberg, "What every computer scientist should know about floating-point arithmetic", theorem 4.
    """
    source = emit.require(emit.input(0), "float")
    u = binary(emit, "ADD", source, number(emit, 1))
    is_one = binary(emit, "EQUAL", u, number(emit, 1), BOOL)
    rest = binary(emit, "SUB", u, number(emit, 1))
    divisor = emit.add("SELECT_V2", [is_one, emit.constant_like(source, 1), rest], source.shape, source.dtype)
    large = binary(emit, "MUL", source, binary(emit, "DIV", emit.add("LOG", [u], u.shape), divisor))
    emit.result(emit.add("SELECT_V2", [is_one, source, large], source.shape, source.dtype))


ERF_P = 0.3275911
ERF_A = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


@lowers("Erf")
def error_function(emit: Emit, node: Node) -> None:
    """The error function to 5e-7; see ``tail``."""
    source = emit.require(emit.input(0), "float")
    positive = binary(emit, "SUB", number(emit, 1), tail(emit, emit.add("ABS", [source], source.shape)))
    emit.result(binary(emit, "MUL", emit.add("SIGN", [source], source.shape), positive))


@lowers("Erfc")
def complement_of_error_function(emit: Emit, node: Node) -> None:
    """1 - erf(x) to 5e-7; see ``tail``: that for x of 0 or more, 2 less it for others."""
    source = emit.require(emit.input(0), "float")
    rest = tail(emit, emit.add("ABS", [source], source.shape))
    is_below = emit.add("LESS", [source, emit.constant_like(source, 0)], source.shape, BOOL)
    other = binary(emit, "SUB", number(emit, 2), rest)
    emit.result(emit.add("SELECT_V2", [is_below, other, rest], source.shape, source.dtype))


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


@lowers("L2Loss")
def half_squared_norm(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), "float")
    flat = emit.reshape(source, (source.size,))
    total = emit.add("SUM", [emit.add("SQUARE", [flat], flat.shape), emit.const([0], np.int32)], (), keep_dims=False)
    emit.result(binary(emit, "MUL", total, number(emit, 0.5)))
