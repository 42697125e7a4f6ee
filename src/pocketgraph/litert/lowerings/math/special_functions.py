"""Lowerings of functions that LiteRT has no operator for, written with those that it has."""

from __future__ import annotations

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.math.elementwise import binary
from pocketgraph.litert.lowerings.pieces import number
from pocketgraph.litert.program import Value

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
