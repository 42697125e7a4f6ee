"""The nodes that bring float values to eight bits and back, with the attributes that every pass gives them."""

from __future__ import annotations

from pocketgraph.graph import DType, Node
from pocketgraph.graph.dtype import QINT32, QUINT8

MIN_FIRST = b"MIN_FIRST"


def quantize(name: str, value: str, low: str, high: str, dtype: DType) -> Node:
    """``QuantizeV2`` of a float tensor in the range from ``low`` to ``high``; gives the tensor and its range."""
    return Node(name, "QuantizeV2", [value, low, high], {"T": dtype, "mode": MIN_FIRST})


def requantize(name: str, source: str, low: str, high: str) -> Node:
    """From the 32-bit tensor and range that the node ``source`` gives to eight bits in the range given here."""
    return Node(name, "Requantize", [*ports(source), low, high], {"Tinput": QINT32, "out_type": QUINT8})


def dequantize(name: str, inputs: list[str]) -> Node:
    """Back to float, from an eight-bit tensor and its range."""
    return Node(name, "Dequantize", inputs, {"T": QUINT8, "mode": MIN_FIRST})


def ports(name: str) -> list[str]:
    """What a quantized node gives: the tensor, the least value of its range, the greatest."""
    return [f"{name}:0", f"{name}:1", f"{name}:2"]
