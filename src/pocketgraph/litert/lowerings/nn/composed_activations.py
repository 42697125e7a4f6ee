"""Lowerings of activation functions that are made of several operators."""

from __future__ import annotations

from pocketgraph.graph import Node
from pocketgraph.kernels.selu_constants import SELU_ALPHA, SELU_SCALE
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.math.elementwise import binary
from pocketgraph.litert.lowerings.pieces import number


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


@lowers("Selu")
def selu(emit: Emit, node: Node) -> None:
    """scale * max(x, 0) + scale * alpha * elu(min(x, 0))."""
    source = emit.require(emit.input(0), "float")
    negative = emit.add("ELU", [binary(emit, "MINIMUM", source, number(emit, 0))], source.shape)
    low = binary(emit, "MUL", negative, number(emit, SELU_SCALE * SELU_ALPHA))
    high = binary(emit, "MUL", emit.add("RELU", [source], source.shape), number(emit, SELU_SCALE))
    emit.result(binary(emit, "ADD", high, low))
