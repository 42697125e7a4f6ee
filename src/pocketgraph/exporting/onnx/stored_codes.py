"""Weights that a graph stores in eight bits: what makes numbers of them is not folded, so that they stay codes."""

from __future__ import annotations

import math

from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.shapes import infer
from pocketgraph.litert.static_values import Statics

FAKES = ops_with("fake_quantization")


def stored_codes(graph: Graph) -> frozenset[str]:
    """The tensors that are numbers of stored codes.

    These are the results of quantize_weights (Dequantize of a constant), of our own quantized graphs (a Cast of int8
    constants times steps), and what a FakeQuant rounds that is computed of constants alone.
    """
    statics = Statics(graph, infer(graph, outputs=[node.name for node in graph if node.op in FAKES]))
    return frozenset(f"{node.name}:0" for node in graph if _is_stored(graph, node, statics))


def _is_stored(graph: Graph, node: Node, statics: Statics) -> bool:
    if node.op == "Mul":
        return codes_and_steps(graph, node) is not None
    if not node.data_inputs:
        return False
    if node.op in FAKES:
        rounded = statics.constant(canonical(node.data_inputs[0]))
        return rounded is not None and math.prod(rounded.shape) > 1
    source = _constant(graph, node.data_inputs[0]) if node.op == "Dequantize" else None
    return source is not None and source.tensor.size > 1 and source.tensor.dtype.name in ("quint8", "qint8")


def codes_and_steps(graph: Graph, node: Node) -> tuple[Node, Node] | None:
    """The constants of a Mul that scales int8 codes: the codes, and their steps."""
    if len(node.data_inputs) != 2:
        return None
    cast = graph.nodes.get(node_name(node.data_inputs[0]))
    if cast is None or cast.op != "Cast" or not cast.data_inputs:
        return None
    codes, steps = _constant(graph, cast.data_inputs[0]), _constant(graph, node.data_inputs[1])
    if codes is None or steps is None or codes.tensor.dtype.name != "int8" or steps.tensor.dtype.name != "float":
        return None
    return codes, steps


def _constant(graph: Graph, ref: str) -> Node | None:
    """The constant that a tensor is, behind what passes it on."""
    for _ in range(len(graph.nodes)):
        node = graph.nodes.get(node_name(ref))
        if node is None or node.op != "Identity" or not node.data_inputs:
            break
        ref = node.data_inputs[0]
    return node if node is not None and node.op == "Const" else None
