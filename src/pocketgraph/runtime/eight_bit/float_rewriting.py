"""Rewrites the eight-bit parts of a graph in float terms that the fast engine turns into its own eight-bit kernels.

    x ─QuantizeV2─ QuantizedConv2D ─Requantize─ QuantizedRelu ─Dequantize─ y
becomes
    x ─Conv2D ─Relu ─ y            where the ranges are found while the graph runs
    x ─grid─ Conv2D ─ Relu ─grid─ y  where they are known (frozen or trained)

A grid is a FakeQuantWithMinMaxVars: the same values that the codes would stand for. It, and every Conv2D and MatMul
that may use eight-bit weights, carries the attribute MAY_QUANTIZE. The integer arithmetic of the original kernels is
not kept; ``Session(…, exact=True)`` leaves the graph alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.dtype import FLOAT, QUINT8
from pocketgraph.graph.op_traits import ENTER
from pocketgraph.kernels.quantized.eight_bit_arithmetic import (
    BYTE,
    WIDE,
    bias_range,
    dequantized_first,
    from_code,
    quantized_first,
    sum_range,
    to_code,
)
from pocketgraph.litert.lowering import MAY_QUANTIZE
from pocketgraph.runtime.eight_bit.arithmetic_choice import Feeds, wants_codes
from pocketgraph.runtime.eight_bit.eight_bit_parts import EightBitParts, Range
from pocketgraph.runtime.eight_bit.exact_rewriting import OPS, ExactCodes, least_range
from pocketgraph.runtime.eight_bit.float_ops import CANDIDATES, FLOAT_OPS, MOVES
from pocketgraph.runtime.eight_bit.quantized_operands import operands
from pocketgraph.runtime.eight_bit.range_numbers import RangeNumber
from pocketgraph.runtime.eight_bit.ranges import RangeWriter

ATTRS = (
    "strides", "padding", "ksize", "transpose_a", "transpose_b", "N", "Tshape", "align_corners", "half_pixel_centers",
    "variance_epsilon", "scale_after_normalization",
)  # fmt: skip
"""The attributes that the float op has as well."""
ROUNDED_LATER = frozenset(("QuantizedRelu", "QuantizedRelu6"))
"""What may read a result before it is rounded to its grid: zero and six lie on it, or are moved there by rounding."""


def without_codes(graph: Graph, kept: Collection[str], needed: Collection[str], feeds: Feeds) -> Graph:
    """The graph with its eight-bit parts in float terms; itself when there are none.

    Args:
        kept: nodes whose outputs somebody feeds or fetches; they stay as they are.
        needed: the nodes that will run; what only others read does not count.
        feeds: the types and shapes of what is fed.
    """
    if not any(node.op in CANDIDATES for node in graph):
        return graph
    parts = EightBitParts(graph, frozenset(kept), frozenset(needed), feeds)
    if not parts.inside:
        return graph
    inside = [graph[name] for name in parts.inside]
    has_loops = any(node.op in ENTER for node in graph)  # constants would have to enter them
    may_hold_codes = all(node.op in OPS for node in inside) and not has_loops
    if may_hold_codes and wants_codes(inside, parts.shapes, parts.follows(), parts.found_between()):
        return ExactCodes(graph, parts.inside, parts.shapes).rewritten()
    return _Floats(parts).rewritten()


class _Floats:
    """Writes parts in floats."""

    def __init__(self, parts: EightBitParts) -> None:
        self.parts = parts
        self.graph = parts.graph
        self.write = RangeWriter(self.graph.nodes)

    def rewritten(self) -> Graph:
        nodes: list[Node] = []
        for node in self.graph:
            if node.name in self.parts.inside:
                self.write.begin(node)
                self.in_floats(node)
                nodes += self.write.nodes
            elif node.op == "Dequantize" and node_name(node.data_inputs[0]) in self.parts.inside:
                nodes.append(Node(node.name, "Identity", [node.data_inputs[0], *node.control_inputs], {"T": FLOAT}))
            else:
                nodes.append(node)
        return self.graph.replace(nodes)

    def in_floats(self, node: Node) -> None:
        """Writes what stands for a node of a part; the node of its name gives its floats."""
        if node.op == "RequantizationRange":
            return
        write = self.write
        grid = None if self.is_rounded_later(node) else self.parts.grid(node.name)
        shift = self.shift(node)
        last = node.name if grid is None else write.fresh("float")
        name = last if shift == 0 else write.fresh("unshifted")
        refs = [
            codes if node_name(codes) in self.parts.inside
            else write.op("Dequantize", codes, low, high, T=QUINT8, mode=b"MIN_FIRST")
            for codes, low, high in operands(node)
        ]  # fmt: skip
        for index, (gain, offset) in enumerate(self.sum_lines(node)):
            refs[index] = write.scaled(refs[index], RangeNumber(gain), RangeNumber(offset))
        if node.op in FLOAT_OPS:
            attrs: dict[str, Any] = {key: node.attrs[key] for key in ATTRS if key in node.attrs}
            if node.op in ("QuantizedConv2D", "QuantizedMatMul"):
                attrs[MAY_QUANTIZE] = True
            if node.op == "QuantizedConcat":
                refs.insert(0, node.data_inputs[0])
            elif node.op in ("QuantizedReshape", "QuantizedResizeBilinear"):
                refs.append(node.data_inputs[1])
            write.op(FLOAT_OPS[node.op], *refs, *node.control_inputs, name=name, **attrs)
        elif node.op == "QuantizeV2" and self.parts.has_grids() and self.parts.is_rounded(node):
            self.round_to_codes(node, name)
        else:
            write.op("Identity", refs[0] if refs else node.data_inputs[0], *node.control_inputs, name=name)
        if shift != 0 and node.op == "Requantize" and self.parts.fixed_range(node) is None:
            low, high = (self.parts.number(node, place) or 0.0 for place in (3, 4))
            above = write.op("Maximum", write.op("Add", name, shift), low + shift)
            write.op("Minimum", above, high + shift, name=last)  # no code stands for zero there, so there is no grid
        elif shift != 0:
            write.op("Add", name, shift, name=last)
        if grid is not None:
            ends = map(write.constant, map(float, grid))
            attrs = {"num_bits": 8, MAY_QUANTIZE: True}
            write.nodes.append(Node(node.name, "FakeQuantWithMinMaxVars", [last, *ends], attrs))

    def round_to_codes(self, node: Node, name: str) -> None:
        """Rounds what a QuantizeV2 reads to the values of its codes, in a range that is found while running."""
        write, do = self.write, self.write.number
        source, low, high = node.data_inputs[:3]
        span = write.widened(RangeNumber(None, low), RangeNumber(None, high), least_range(node))
        scale = do("RealDiv", 255.0, do("Sub", span.high, span.low))
        start, levels = (write.away(write.op("Mul", of, scale)) for of in (span.low, source))
        write.op("RealDiv", write.op("Minimum", levels, write.op("Add", start, 255.0)), scale, name=name)

    def shift(self, node: Node) -> float:
        """What rounding in the original adds to all values alike, as far as that is known before the run.

        Requantize counts its codes from the requested minimum, whereas whoever reads them counts from the nearest
        multiple of the step; an average is cut to a whole code.
        """
        if node.op == "Requantize":
            low, high = self.parts.number(node, 3), self.parts.number(node, 4)
            return 0.0 if low is None or high is None else float(from_code(0, low, high, BYTE)) - low
        grid = self.parts.grid(node.name) if node.op == "QuantizedAvgPool" else None
        if grid is None:
            return 0.0
        count = int(math.prod(node.attr("ksize", (1,))))
        return -0.5 * float(1 - 1 / count) * (grid[1] - grid[0]) / BYTE.high

    def sum_lines(self, node: Node) -> list[tuple[float, float]]:
        """For each operand of a sum with a constant (gain, offset) of the line on which the original puts its codes.

        That of QuantizedAdd goes through two whole numbers (``moved_on_line``), so that it is up to a percent too
        steep or flat; that of QuantizedBiasAdd is parallel, but may lie some steps of the result too low, because 2^31
        and the ends of the range meet in float32. Empty where a range is only known when running, and for single
        numbers, which have no line. Two results of other operations are left alone as well: LiteRT adds them as they
        are.
        """
        if node.op not in ("QuantizedAdd", "QuantizedBiasAdd"):
            return []
        limits: list[Range] = []
        sources = [self.graph.find_producer(operand.codes) for operand in operands(node)]
        tensors = [
            None if source is None else self.parts.behind_quantization(source).attr("value") for source in sources
        ]
        for index, source in enumerate(sources):
            grid = None if source is None or source.name not in self.parts.inside else self.parts.grid(source.name)
            low, high = self.parts.number(node, 2 + 2 * index), self.parts.number(node, 3 + 2 * index)
            if grid is not None:
                limits.append(grid)
            elif low is not None and high is not None and low < high:
                limits.append((low, high))
        if len(limits) != 2 or tensors.count(None) != 1 or any(t is not None and t.size == 1 for t in tensors):
            return []
        if node.op == "QuantizedAdd":
            wanted = sum_range(*limits[0], *limits[1])
            return [sum_line(mine, wanted) for mine in limits]
        wanted = bias_range(*limits[0], *limits[1])
        return [(1.0, bias_offset(mine, wanted)) for mine in limits]

    def is_rounded_later(self, node: Node) -> bool:
        readers = self.parts.readers.get(node.name, ())
        return node.op in MOVES and len(readers) == 1 and readers[0].op in ROUNDED_LATER


def sum_line(limits: Range, wanted: Range) -> tuple[float, float]:
    """(gain, offset) of what becomes of the values of codes of ``limits`` on the line through the codes 0 and 1."""
    first, second = (float(from_code(code, *limits, BYTE)) for code in (0, 1))
    start, end = (to_code(value, *wanted, WIDE) for value in (first, second))
    unit = (wanted[1] - wanted[0]) / (WIDE.high - WIDE.low)
    gain = unit * (end - start) / ((limits[1] - limits[0]) / BYTE.high)
    return gain, unit * start - gain * first


def bias_offset(limits: Range, wanted: Range) -> float:
    """How much higher QuantizedBiasAdd puts the values of codes of ``limits`` on average."""
    codes = np.arange(BYTE.steps, dtype=BYTE.dtype)
    values = dequantized_first(codes, *limits, BYTE)
    unit = (wanted[1] - wanted[0]) / WIDE.steps
    return float(np.mean(quantized_first(values, *wanted, WIDE).astype(np.float64) * unit - values))
