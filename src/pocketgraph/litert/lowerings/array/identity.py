"""Lowerings of what hands its input on."""

from __future__ import annotations

from pocketgraph.graph import Node, Shape
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.static_values import PASS_THROUGH


@lowers(*sorted(PASS_THROUGH))
def identity(emit: Emit, node: Node) -> None:
    source, wanted = emit.input(0), node.attr("shape")
    if node.op == "EnsureShape" and isinstance(wanted, Shape) and not wanted.fits(source.shape):
        raise emit.unsupported(f"the shape {list(source.shape)}, which is not {wanted}")
    emit.result(source)


@lowers("IdentityN", "XlaOptimizationBarrier")
def identities(emit: Emit, node: Node) -> None:
    for port, value in enumerate(emit.inputs()):
        emit.result(value, port)
