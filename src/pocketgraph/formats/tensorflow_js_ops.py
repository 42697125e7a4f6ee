"""Writes the ops that only TensorFlow.js has, and its fused ones, in the ops of TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator

from pocketgraph.graph import Graph, Node, opdefs
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.edit import claim_name

CONTRACTIONS = {
    "_FusedConv2D": "Conv2D", "_FusedMatMul": "MatMul", "FusedDepthwiseConv2dNative": "DepthwiseConv2dNative",
    "_FusedDepthwiseConv2dNative": "DepthwiseConv2dNative",
}  # fmt: skip
"""The op without what is fused to it. A spelling of TensorFlow.js' converter, so no trait of the ops."""
PRELU = "Prelu"
WITH_OPERAND = ("BiasAdd", PRELU)
"""Of the fused ops, those that have a tensor of their own behind the contraction's two."""


def with_plain_ops(graph: Graph) -> Graph:
    """The graph with each fused op as the ops that it stands for; the last of them has its name.

    ::

        y = _FusedConv2D(x, w, b, fused_ops=["BiasAdd", "Relu"])    y/Conv2D = Conv2D(x, w)
                                                                    y/BiasAdd = BiasAdd(y/Conv2D, b)
                                                                    y = Relu(y/BiasAdd)

        y = Prelu(x, alpha)                                         y = Relu(x) - alpha * Relu(-x)

    Those with a batch norm fused to them stay, which TensorFlow.js has not, and those that lack an input.
    """
    if not any(node.op in CONTRACTIONS or node.op == PRELU for node in graph):
        return graph
    taken = set(graph.nodes)
    return graph.replace([plain for node in graph for plain in _plain(node, taken)])


def _plain(node: Node, taken: set[str]) -> Iterator[Node]:
    """The nodes that one stands for."""
    steps = node.attr("fused_ops", ()) if node.op in CONTRACTIONS else ()
    fused = [step.decode() for step in steps] if isinstance(steps, tuple | list) else []
    operands = 2 + sum(step in WITH_OPERAND for step in fused)
    if len(node.data_inputs) != operands or "FusedBatchNorm" in fused or not (fused or node.op == PRELU):
        yield node
        return
    if node.op == PRELU:
        yield from _prelu(node, node.name, node.inputs[0], node.inputs[1], taken)
        return
    op = CONTRACTIONS[node.op]
    kept = opdefs.definition(op).attrs
    attrs = {name: value for name, value in node.attrs.items() if name in kept}
    last = claim_name(f"{node.name}/{op}", taken)
    first, second, *rest = node.data_inputs
    yield Node(last, op, [first, second, *node.control_inputs], attrs)
    typed = {"T": node.dtype("T", FLOAT)}
    for at, step in enumerate(fused):
        name = node.name if at == len(fused) - 1 else claim_name(f"{node.name}/{step}", taken)
        if step == PRELU:
            yield from _prelu(node, name, last, rest.pop(0), taken)
        elif step == "BiasAdd":
            layout = {"data_format": node.attr("data_format", b"NHWC")}
            yield Node(name, step, [last, rest.pop(0)], {**typed, **layout})
        else:
            slope = {"alpha": node.attr("leakyrelu_alpha", 0.2)} if step == "LeakyRelu" else {}
            yield Node(name, step, [last], {**typed, **slope})
        last = name


def _prelu(node: Node, name: str, value: str, alpha: str, taken: set[str]) -> Iterator[Node]:
    typed = {"T": node.dtype("T", FLOAT)}
    above, negated, below, scaled = (
        claim_name(f"{name}/{part}", taken) for part in ("above", "negated", "below", "scaled")
    )
    waits = node.control_inputs if node.op == PRELU else ()
    yield Node(above, "Relu", [value, *waits], typed)
    yield Node(negated, "Neg", [value], typed)
    yield Node(below, "Relu", [negated], typed)
    yield Node(scaled, "Mul", [alpha, below], typed)
    yield Node(name, "Sub", [above, scaled], typed)
