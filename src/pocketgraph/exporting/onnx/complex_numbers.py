"""Complex numbers in ONNX: real and imaginary parts along a last axis of two, as its DFT takes and gives them."""

from __future__ import annotations

from itertools import count, takewhile
from typing import Any

import numpy as np

from pocketgraph.exporting.onnx.broadcasting import add, mul, sub
from pocketgraph.exporting.onnx.converter_table import BY_PARTS, COMPLEX, Converter
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.graph import Node
from pocketgraph.graph.dtype import DOUBLE, FLOAT
from pocketgraph.litert.constant import Constant

REFUSED = "ONNX's operators compute with no complex numbers"


def by_parts(emit: OnnxEmit, node: Node, converter: Converter) -> None:
    """Converts a node that takes complex numbers as it is converted for floats, for each of their parts."""
    if node.op not in BY_PARTS:
        raise emit.unsupported(REFUSED)
    taken = [(ref, emit.value(ref)) for ref in map(emit.ref, range(emit.count)) if emit.dtype(ref).is_complex]
    parts = [{ref: part_of(emit, value, place) for ref, value in taken} for place in (0, 1)]
    if node.op == "Mul":
        (a, b), (c, d) = ([each[emit.ref(place)] for each in parts] for place in (0, 1))
        product = [sub(emit, mul(emit, a, c), mul(emit, b, d)), add(emit, mul(emit, a, d), mul(emit, b, c))]
        return give_pairs(emit, node, joined(emit, product))
    made: list[list[OnnxValue]] = []
    for each in parts:
        with emit.rebound(each):
            emit.results(converter(emit, node))
            refs = takewhile(emit.bound.__contains__, (f"{node.name}:{port}" for port in count()))
            made.append([emit.bound[ref] for ref in refs])
    return give_pairs(emit, node, *(joined(emit, [*both]) for both in zip(*made, strict=True)))


def joined(emit: OnnxEmit, parts: list[OnnxValue]) -> OnnxValue:
    """Pairs, of their real and imaginary parts."""
    rank = emit.rank(parts[0])
    return emit.concat([emit.unsqueeze(each, [rank]) for each in parts], rank)


def give_pairs(emit: OnnxEmit, node: Node, *pairs: OnnxValue) -> None:
    """Says what the node yields, where whoever takes it takes pairs."""
    others = [other.name for other in emit.takers if other.op not in COMPLEX and other.op not in BY_PARTS]
    if others:
        raise emit.unsupported(f"{REFUSED}, as '{others[0]}' would")
    for port, value in enumerate(pairs):
        emit.bound[f"{node.name}:{port}"] = value  # not by ``result``: the graph knows a shape without the last axis


def pairs_of(emit: OnnxEmit, place: int = 0) -> OnnxValue:
    """What a node takes, as pairs."""
    value = emit.input(place)
    if value.dtype not in (FLOAT, DOUBLE):
        raise emit.unsupported(REFUSED)
    return value


def part_of(emit: OnnxEmit, pairs: OnnxValue, place: int) -> OnnxValue:
    """The real (0) or imaginary (1) parts, of pairs or of a complex constant."""
    if pairs.dtype.is_complex and pairs.constant is not None:
        numbers: np.ndarray[Any, Any] = pairs.constant.numpy()
        return emit.constant(Constant.of(np.ascontiguousarray(numbers.imag if place else numbers.real)))
    if pairs.dtype not in (FLOAT, DOUBLE):
        raise emit.unsupported(REFUSED)
    shape = None if pairs.shape.dims is None else list(pairs.shape.dims)[:-1]
    return emit.op("Gather", [pairs, emit.const(np.int64(place))], shape, axis=emit.rank(pairs) - 1)
