"""The nodes that bring float values to eight bits and back, with the attributes that every pass gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

from pocketgraph.graph import AttrValue, DType, Node
from pocketgraph.graph.dtype import QINT32, QUINT8

MIN_FIRST = b"MIN_FIRST"


@lru_cache(maxsize=256, typed=True)
def shared(**attrs: AttrValue) -> Mapping[str, AttrValue]:
    """These attributes, as one value for all nodes that have them: large graphs get very many such nodes."""
    return MappingProxyType(attrs)


def quantize(name: str, value: str, low: str, high: str, dtype: DType) -> Node:
    """``QuantizeV2`` of a float tensor in the range from ``low`` to ``high``; gives the tensor and its range."""
    return Node(name, "QuantizeV2", [value, low, high], shared(T=dtype, mode=MIN_FIRST))


def requantize(name: str, source: Iterable[str], low: str, high: str) -> Node:
    """From the 32-bit tensor and range in ``source`` to eight bits in the range given here."""
    return Node(name, "Requantize", [*source, low, high], shared(Tinput=QINT32, out_type=QUINT8))


def dequantize(name: str, inputs: list[str]) -> Node:
    """Back to float, from an eight-bit tensor and its range."""
    return Node(name, "Dequantize", inputs, shared(T=QUINT8, mode=MIN_FIRST))


def ports(name: str) -> list[str]:
    """What a quantized node gives: the tensor, the least value of its range, the greatest."""
    return [f"{name}:0", f"{name}:1", f"{name}:2"]
