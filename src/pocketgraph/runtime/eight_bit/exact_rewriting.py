"""Rewrites eight-bit operations as the original's own arithmetic on codes, with floats that hold the whole numbers.

    x ─QuantizeV2─ QuantizedConv2D ─RequantizationRange, Requantize─ Dequantize─ y
becomes
    x ─× scale, floor, limit─ Conv2D(centred codes) ─Min, Max, × scale, floor─ × step─ y

Sums of products of codes are exact in float32 up to 2^24, and nearly so beyond. Products carry the ends between which
their codes lie, so that the fast engine can do them on its eight-bit kernels (``WHOLE_NUMBERS``). What is left of a
difference is that a number just between two codes may go the other way. The fast engine runs all of it, more slowly
than coded weights with values that stay float, but it comes to the original's codes where these do not.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.dtype import FLOAT, INT32, QINT32, QUINT8
from pocketgraph.graph.order import topological
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.image.resizing import neighbours
from pocketgraph.kernels.quantized.eight_bit_arithmetic import (
    BIAS_HEADROOM,
    BYTE,
    SUM_HEADROOM,
    WIDE,
    dequantized_first,
    from_code,
    quantized,
    to_code,
)
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.litert.lowering import WHOLE_NUMBERS
from pocketgraph.runtime.eight_bit.float_ops import CANDIDATES
from pocketgraph.runtime.eight_bit.quantized_operands import Operand, known_number, operands
from pocketgraph.runtime.eight_bit.range_numbers import HALF_RANGE, RangeNumber
from pocketgraph.runtime.eight_bit.ranges import RangeWriter, Span

LERP = 128.0  # what stands for 1 in weights of seven binary digits
WINDOWS = ("strides", "padding", "ksize")
OPS = CANDIDATES - {"QuantizedBatchNormWithGlobalNormalization"}
"""What this file rewrites."""


class Between(NamedTuple):
    """Tensors to interpolate between: the start, the way to the end, and how much of that to go, of ``LERP``."""

    start: str
    change: str
    share: str


class ExactCodes:
    """Writes the nodes that stand for eight-bit ones.

    Args:
        inside: the nodes to rewrite, all of them of ``OPS``, whose outputs only each other and Dequantize read.
        shapes: those of the graph's tensors.
    """

    def __init__(self, graph: Graph, inside: Collection[str], shapes: Inferred) -> None:
        self.graph = graph
        self.inside = inside
        self.shapes = shapes
        self.write = RangeWriter(graph.nodes)
        self.spans: dict[str, Span] = {}
        """The ranges of eight-bit codes, by node."""
        self.around_zero: set[Span] = set()
        """Ranges found while running that contain zero for certain."""
        self.units: dict[str, RangeNumber] = {}
        """What a wide code is worth, by node."""

    def rewritten(self) -> Graph:
        """The graph with floats for codes."""
        nodes: list[Node] = []
        ordered = topological(self.graph, partial=True)
        for node in ordered:
            source = node_name(node.data_inputs[0]) if node.data_inputs else ""
            if node.name in self.inside:
                self.write.begin(node)
                self.in_floats(node)
                nodes += self.write.nodes
            elif node.op == "Dequantize" and source in self.inside:
                self.write.begin(node)
                scaled, start = self.write.values(source, self.spans[source])
                self.write.op("Add", scaled, start, name=node.name)
                nodes += self.write.nodes
            else:
                nodes.append(node)
        reached = {node.name for node in ordered}
        return self.graph.replace([*nodes, *(node for node in self.graph if node.name not in reached)])

    def in_floats(self, node: Node) -> None:
        """Writes what stands for a node; the node of its name gives its codes."""
        op = node.op.removeprefix("Quantized")
        if node.op == "QuantizeV2":
            self.quantize(node)
        elif op in ("Conv2D", "MatMul", "Mul"):
            self.product(node, op)
        elif op == "BiasAdd":
            self.bias_add(node)
        elif op == "Add":
            self.add(node)
        elif node.op == "RequantizationRange":
            (operand,) = operands(node)
            self.spans[node.name] = self.used(operand)
        elif node.op in ("Requantize", "QuantizeDownAndShrinkRange"):
            self.requantize(node)
        elif op == "Concat":
            self.concat(node)
        else:
            self.same_range(node, op)

    # Operands

    def name_of(self, operand: Operand) -> str:
        """The node that gives the codes."""
        return node_name(operand.codes)

    def span(self, operand: Operand) -> Span:
        """The range of eight-bit codes."""
        if self.name_of(operand) in self.inside:
            return self.spans[self.name_of(operand)]
        ends = [RangeNumber(known_number(self.graph, ref), ref) for ref in (operand.low, operand.high)]
        return Span(*ends)

    def codes(self, operand: Operand) -> str:
        """ExactCodes as floats."""
        if self.name_of(operand) in self.inside:
            return self.name_of(operand)
        tensor = self.graph.constant(operand.codes)
        if tensor is not None:
            return self.write.constant(tensor.numpy())
        write = self.write
        name = write.fresh("codes")
        ends = [write.constant(end) for end in (0.0, 255.0)]
        write.nodes.append(Node(name, "Dequantize", [operand.codes, *ends], {"T": QUINT8, "mode": b"MIN_FIRST"}))
        return name

    def centred(self, operand: Operand, zero: RangeNumber) -> str:
        """ExactCodes less the code of zero, as floats."""
        tensor = self.constant_codes(operand)
        if tensor is not None and zero.value is not None:
            return self.write.constant(tensor.astype(np.float32) - np.float32(zero.value))
        codes = self.codes(operand)
        return codes if zero.value == 0 else self.write.op("Sub", codes, zero)

    def constant_codes(self, operand: Operand) -> Array | None:
        """The codes of a constant, or of what is quantized from one in a known range."""
        tensor = self.graph.constant(operand.codes)
        if tensor is not None:
            return tensor.numpy()
        source = self.graph.nodes.get(self.name_of(operand))
        if source is None or source.op != "QuantizeV2" or source.name not in self.inside:
            return None
        floats, known = self.graph.constant(source.data_inputs[0]), self.spans[source.name].known
        if floats is None or known is None:
            return None
        return quantized(floats.numpy(), *known, BYTE, "MIN_FIRST", least=least_range(source))[0]

    # Operations

    def quantize(self, node: Node) -> None:
        """Writes QuantizeV2: the codes of floats in a range that grows as the original's does."""
        write = self.write
        low, high = (RangeNumber(known_number(self.graph, ref), ref) for ref in node.data_inputs[1:3])
        if node.attr("T") is QINT32:  # as good as floats
            self.units[node.name] = RangeNumber(1.0)
            write.op("Identity", node.data_inputs[0], *node.control_inputs, name=node.name)
            return
        span = write.widened(low, high, least_range(node))
        self.spans[node.name] = span
        self.around_zero.add(span)
        found = write.codes(node.data_inputs[0], span)
        self.finish(found, node)

    def finish(self, found: str, node: Node) -> None:
        """Gives the last tensor written the node's name."""
        self.write.nodes.append(Node(node.name, "Identity", [found, *node.control_inputs], {"T": FLOAT}))

    def product(self, node: Node, op: str) -> None:
        """Writes a product of codes (Conv2D, MatMul or Mul): its sums, exact, in units of both scales."""
        write = self.write
        first, second = operands(node)
        kept = ("strides", "padding", "transpose_a", "transpose_b")
        attrs: dict[str, Any] = {key: node.attrs[key] for key in kept if key in node.attrs}
        span = self.span(first)
        zero = held = write.zero(span)
        leaves_out_zero = span not in self.around_zero if zero.value is None else zero.value > BYTE.high
        sums = self.sums_of_weights(second) if op == "Conv2D" and leaves_out_zero else None
        if sums is not None:
            held = write.in_a_byte(zero)
        if op != "Mul":
            is_known = held.value is not None or sums is not None or not leaves_out_zero
            attrs[WHOLE_NUMBERS] = (-int(held.value or 0), BYTE.high - int(held.value or 0)) if is_known else (0, 0)
        found = write.op(op, self.centred(first, held), self.centred(second, write.zero(self.span(second))), **attrs)
        if sums is not None:
            found = write.op("Add", found, write.op("Mul", write.constant(sums), write.number("Sub", held, zero)))
        self.units[node.name] = write.number("Mul", *(write.step(self.span(operand)) for operand in (first, second)))
        self.finish(found, node)

    def sums_of_weights(self, operand: Operand) -> Array | None:
        """What a convolution gives for each channel where its input is one everywhere.

        A range that lies below zero has a code of zero that no byte holds. The original pads with what a byte holds of
        it: centred around that code, the padding is zero as ever, and what is missing everywhere alike is added.
        """
        codes, known = self.constant_codes(operand), self.span(operand).known
        if codes is None or known is None or codes.ndim != 4:
            return None
        return np.asarray((codes.astype(np.float64) - to_code(0.0, *known, BYTE)).sum(axis=(0, 1, 2)), np.float32)

    def bias_add(self, node: Node) -> None:
        """Writes QuantizedBiasAdd, whose bias and sums move to a common range."""
        write = self.write
        both = operands(node)
        spans = [self.span(operand) for operand in both]
        top = self.largest(spans, float(BIAS_HEADROOM))
        scale, lost = write.wide_scale(top)
        parts = []
        for operand, span in zip(both, spans, strict=True):
            constant, known = self.constant_codes(operand), span.known
            if constant is not None and known is not None:
                scaled = write.scaled(write.constant(dequantized_first(constant, *known, BYTE)), scale)
            else:
                scaled, start = write.values(self.codes(operand), span)
                scaled = write.scaled(write.op("Add", scaled, start), scale)
            parts.append(
                write.op("Floor", write.op("Add", scaled, 0.5)) if has_no_halves(span, scale) else write.away(scaled)
            )
        start = write.number("Add", write.number("Mul", lost, 2.0), write.below_zero(top))
        parts[1] = write.scaled(parts[1], RangeNumber(1.0), start)
        self.units[node.name] = write.number("Mul", top, 1 / HALF_RANGE)
        self.finish(write.op("Add", *parts), node)

    def largest(self, spans: list[Span], times: float) -> RangeNumber:
        """The largest of all ends of ranges, many times."""
        do = self.write.number
        sizes = [do("Abs", end) for span in spans for end in span]
        found = sizes[0]
        for size in sizes[1:]:
            found = do("Maximum", found, size)
        return do("Mul", found, times)

    def add(self, node: Node) -> None:
        """Writes QuantizedAdd, whose terms move to a common range."""
        write = self.write
        both = operands(node)
        spans = [self.span(operand) for operand in both]
        top = self.largest(spans, float(SUM_HEADROOM))
        lines = self.lines(spans, top)
        parts = [write.scaled(self.codes(o), gain, start) for o, (gain, start) in zip(both, lines, strict=True)]
        self.units[node.name] = write.number("Mul", top, 1 / HALF_RANGE)
        self.finish(write.op("Add", *parts), node)

    def lines(self, spans: list[Span], top: RangeNumber) -> list[tuple[RangeNumber, RangeNumber]]:
        """For each range (gain, start) of the line on which the original puts its codes in -top…top.

        That goes through the wide codes of the codes 0 and 1.
        """
        known = [span.known for span in spans]
        if top.value is not None and None not in known:
            ends = [
                [float(from_code(code, *limits, BYTE)) for code in (0, 1)] for limits in known if limits is not None
            ]
            found = [[to_code(value, -top.value, top.value, WIDE) for value in pair] for pair in ends]
            return [(RangeNumber(float(after - start)), RangeNumber(float(start))) for start, after in found]
        write, do = self.write, self.write.number
        span = Span(*(write.together(*ends) for ends in zip(*spans, strict=True)))
        first, step = write.start(span)
        both = write.whole_ratio(write.together(first, write.second(span, first, step)), top)
        start, after = write.apart(both, 2)
        gains, starts = do("Sub", after, start), do("Add", start, write.below_zero(top))
        return list(zip(*(write.apart(part, len(spans)) for part in (gains, starts)), strict=True))

    def used(self, operand: Operand) -> Span:
        """The range that codes of 32 bits really use, as RequantizationRange finds it."""
        return self.write.used(
            self.name_of(operand), self.units[self.name_of(operand)], self.shapes.shape(operand.codes).rank
        )

    def requantize(self, node: Node) -> None:
        """Writes Requantize or QuantizeDownAndShrinkRange: codes of 32 bits become codes of eight."""
        operand = operands(node)[0]
        if node.op == "Requantize":
            low, high = node.data_inputs[3:5]
            source = node_name(low)
            fixed = source not in self.inside
            span = (
                Span(RangeNumber(known_number(self.graph, low)), RangeNumber(known_number(self.graph, high)))
                if fixed
                else self.spans[source]
            )
        else:
            span, fixed = self.used(operand), False
        self.spans[node.name] = span
        codes = self.name_of(operand)
        self.finish(self.write.requantized(codes, self.units[codes], span, limited=fixed), node)

    def concat(self, node: Node) -> None:
        """Writes QuantizedConcat, whose parts move to their joint range."""
        write = self.write
        parts = operands(node)
        spans = [self.span(operand) for operand in parts]
        low, high = RangeNumber(0.0), spans[0].high
        for span in spans:
            low, high = write.number("Minimum", low, span.low), write.number("Maximum", high, span.high)
        joint = self.spans[node.name] = Span(low, high)
        moved = []
        for operand, span in zip(parts, spans, strict=True):
            codes = self.codes(operand)
            if joint.known is None or span.known != joint.known:
                codes = write.moved(codes, span, joint)
            moved.append(codes)
        self.finish(write.op("Concat", node.data_inputs[0], *moved, N=len(moved)), node)

    def same_range(self, node: Node, op: str) -> None:
        """An operation whose result has the range of what it reads."""
        write = self.write
        (operand,) = operands(node)
        span, codes = self.span(operand), self.codes(operand)
        self.spans[node.name] = span
        attrs: dict[str, Any] = {key: node.attrs[key] for key in WINDOWS if key in node.attrs}
        if op in ("Relu", "Relu6"):
            zero = write.code(span, 0.0)
            found = codes if zero.value == 0 else write.op("Maximum", codes, zero)
            if op == "Relu6":
                found = write.op("Minimum", found, write.code(span, 6.0))
        elif op == "MaxPool":
            found = write.op(op, codes, **attrs)
        elif op == "AvgPool":
            mean = write.op(op, codes, **attrs)
            found = write.op("Floor", write.op("Add", mean, 0.5 / math.prod(node.attr("ksize", (1,)))))
        elif op == "Reshape":
            found = write.op(op, codes, node.data_inputs[1], Tshape=node.attr("Tshape", INT32))
        else:
            found = self.resized(node, codes)
        self.finish(found, node)

    def resized(self, node: Node, codes: str) -> str:
        """ExactCodes between which is interpolated, as the original does it: with weights of seven binary digits."""
        write = self.write
        shape, size = self.shapes.shape(operands(node)[0].codes), self.shapes.value(node.data_inputs[1])
        flags: dict[str, Any] = {key: bool(node.attr(key, False)) for key in ("align_corners", "half_pixel_centers")}
        if shape.rank != 4 or None in (shape[1], shape[2]) or size is None:
            resized = write.op("ResizeBilinear", codes, node.data_inputs[1], **flags)
            return write.op("Floor", write.op("Add", resized, 0.5))
        wanted = [int(count) for count in size]
        if wanted == [shape[1], shape[2]]:
            return codes
        columns = self.between(codes, 2, neighbours(shape[2] or 0, wanted[1], *flags.values()))
        lines = write.op("Add", write.op("Mul", columns.start, LERP), write.op("Mul", columns.change, columns.share))
        rows = self.between(lines, 1, neighbours(shape[1] or 0, wanted[0], *flags.values()))
        sizes = write.op("Floor", write.op("Mul", write.op("Abs", rows.change), 1 / LERP))
        cut = write.op("Mul", sizes, write.op("Sign", rows.change))
        values = write.op("Add", rows.start, write.op("Mul", cut, rows.share))
        return write.op("Floor", write.op("Add", write.op("Mul", values, 1 / LERP), 0.5))

    def between(self, values: str, axis: int, places: tuple[Array, Array, Array]) -> Between:
        """The neighbours of each result along an axis of images."""
        write = self.write
        ends = [write.gathered(values, places[end].astype(np.int32), axis) for end in (0, 1)]
        share = np.floor(places[2] * np.float32(LERP)).reshape([-1 if index == axis else 1 for index in range(4)])
        return Between(ends[0], write.op("Sub", ends[1], ends[0]), write.constant(share.astype(np.float32)))


def has_no_halves(span: Span, scale: RangeNumber) -> bool:
    """Whether no code of a known range stands, many times, for a half below zero, which is rounded away from it."""
    if span.known is None or scale.value is None:
        return False
    values = dequantized_first(np.arange(BYTE.steps, dtype=BYTE.dtype), *span.known, BYTE) * np.float32(scale.value)
    return not bool((values[values < 0] % 1 == 0.5).any())


def least_range(node: Node) -> float:
    """The share of its ends, or of 1, that the range of a QuantizeV2 has at least."""
    return float(node.attr("ensure_minimum_range", 0.01))
