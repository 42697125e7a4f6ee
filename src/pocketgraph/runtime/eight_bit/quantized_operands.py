"""Where an eight-bit op takes its codes and their ranges from."""

from __future__ import annotations

from typing import NamedTuple

from pocketgraph.errors import RunError
from pocketgraph.graph import Graph, Node, canonical
from pocketgraph.kernels.quantized.range_checks import checked


class Operand(NamedTuple):
    """Codes and the two ends of their range, as inputs of a node."""

    codes: str
    low: str
    high: str


def operands(node: Node) -> list[Operand]:
    """The coded inputs of an eight-bit op."""
    refs = [canonical(ref) for ref in node.data_inputs]
    if node.op == "QuantizedConcat":
        count = (len(refs) - 1) // 3
        return [Operand(refs[1 + i], refs[1 + count + i], refs[1 + 2 * count + i]) for i in range(count)]
    if node.op == "QuantizedBatchNormWithGlobalNormalization":
        return [Operand(*refs[i : i + 3]) for i in range(0, 15, 3)]
    if node.op in ("QuantizedReshape", "QuantizedResizeBilinear"):
        return [Operand(refs[0], refs[2], refs[3])]
    if node.op in ("QuantizedConv2D", "QuantizedMatMul", "QuantizedBiasAdd", "QuantizedAdd", "QuantizedMul"):
        return [Operand(refs[0], refs[2], refs[3]), Operand(refs[1], refs[4], refs[5])]
    return [] if node.op == "QuantizeV2" else [Operand(*refs[:3])]


WITH_WIDTH = frozenset(("QuantizedMatMul", "QuantizedAdd", "QuantizedMul"))
"""Not a trait: ops of the original that refuse ranges of no width, or the wrong way round."""


def has_ranges(graph: Graph, node: Node) -> bool:
    """Whether none of the constant ranges of an eight-bit op is one that its kernel refuses."""
    refs = [canonical(ref) for ref in node.data_inputs]
    limits = [(refs[1], refs[2])] if node.op == "QuantizeV2" else [(low, high) for _, low, high in operands(node)]
    if node.op == "Requantize":
        limits.append((refs[3], refs[4]))
    for names in limits:
        low, high = (known_number(graph, ref) for ref in names)
        if low is None or high is None:
            continue
        try:
            low, high = checked(low, high)
        except RunError:
            return False
        if node.op in WITH_WIDTH and low >= high:
            return False
    return True


def known_number(graph: Graph, ref: str) -> float | None:
    """The value of a single number that is constant, or the smallest or largest of a constant."""
    tensor = graph.constant(ref)
    source = graph.find_producer(ref)
    if tensor is None and source is not None and source.op in ("Min", "Max"):
        return _end_of_constant(graph, source)
    return float(tensor.numpy().reshape(-1)[0]) if tensor is not None and tensor.size >= 1 else None


def _end_of_constant(graph: Graph, node: Node) -> float | None:
    """What Min or Max finds over all of a constant."""
    source = graph.find_producer(node.data_inputs[0])
    if source is None or source.op != "Reshape":
        return None
    flat = graph.constant(source.data_inputs[1])
    tensor = graph.constant(source.data_inputs[0])
    if tensor is None or not tensor.size or flat is None or flat.numpy().reshape(-1).tolist() != [-1]:
        return None
    return float(getattr(tensor.numpy(), node.op.lower())())
