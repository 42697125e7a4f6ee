"""Finds the eight-bit parts of a graph that have a form in floats, and what is known of their ranges."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from pocketgraph.graph import Graph, Node, canonical, node_name, parse_ref
from pocketgraph.graph.dtype import QINT32, QUINT8
from pocketgraph.graph.groups import by_key, closure
from pocketgraph.kernels.quantized.eight_bit_arithmetic import BYTE, joint_range, widened_range
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.runtime.eight_bit.arithmetic_choice import Feeds, shapes_of
from pocketgraph.runtime.eight_bit.float_ops import CANDIDATES, KEEPS_RANGE, MOVES
from pocketgraph.runtime.eight_bit.quantized_operands import has_ranges, known_number, operands

Range = tuple[float, float]

MOST_BEFORE = 50  # nodes between the graph's input and its first layer


class EightBitParts:
    """Nodes that are eight-bit from where values get codes to where codes become values again.

    Args:
        kept: nodes whose outputs somebody feeds or fetches; they are in no part.
        needed: the nodes that will run.
        feeds: the types and shapes of what is fed.

    Attributes:
        inside: the names of the nodes.
        readers: by node, those that will run and read its outputs as data.
    """

    def __init__(self, graph: Graph, kept: Collection[str], needed: Collection[str], feeds: Feeds) -> None:
        self.graph = graph
        self.kept = kept
        self.feeds = feeds
        self.readers = by_key(
            (name, n) for n in graph if n.name in needed for name in dict.fromkeys(map(node_name, n.data_inputs))
        )
        self.inside = {n.name for n in graph if n.name in needed and n.op in CANDIDATES and self.is_plain(n)}
        while True:
            out = {name for name in self.inside if not self.fits(self.graph[name])}
            if not out:
                break
            self.inside -= out
        self.grids: dict[str, Range | None] = {}

    @cached_property
    def shapes(self) -> Inferred:
        """Those of the graph's tensors."""
        return shapes_of(self.graph, self.feeds)

    def is_plain(self, node: Node) -> bool:
        """Whether the node by itself, with its ranges, has a float form."""
        if node.name in self.kept:
            return False
        try:
            if any(low == codes or high == codes for codes, low, high in operands(node)):
                return False
            if not has_ranges(self.graph, node):
                return False  # the kernel says what is wrong with it
        except (IndexError, TypeError):
            return False  # inputs are missing; whoever runs the node will say so
        if node.op == "QuantizeV2":
            known = self.number(node, 1) is not None and self.number(node, 2) is not None
            searched = self.is_searched(node, 1, "Min") and self.is_searched(node, 2, "Max")
            kind = node.attr("T")
            return (
                node.attr("mode") == b"MIN_FIRST"
                and (known or searched)
                and (kind is QUINT8 or (known and kind is QINT32))
            )
        if node.op == "Requantize":
            low, high = self.number(node, 3), self.number(node, 4)
            is_fixed = low is not None and high is not None and low <= 0 and low <= high
            return node.attr("out_type") is QUINT8 and (is_fixed or self.follows_range(node))
        if node.op == "QuantizeDownAndShrinkRange":
            return node.attr("out_type") is QUINT8
        if node.op == "QuantizedConv2D":
            return self.starts_where_floats_do(node)
        kinds = {node.attr(name, QUINT8) for name in ("T", "T1", "T2", "Tinput")}
        return node.op == "RequantizationRange" or kinds == {QUINT8}

    def starts_where_floats_do(self, node: Node) -> bool:
        """Whether the windows cannot begin elsewhere than Conv2D's, as they do where strides leave pixels out."""
        strides, dilations = node.attr("strides", ()), node.attr("dilations", (1, 1, 1, 1))
        weights = self.graph.nodes.get(parse_ref(operands(node)[1].codes).name)
        tensor = None if weights is None else self.behind_quantization(weights).attr("value")
        if len(strides) != 4 or set(dilations) != {1} or tensor is None or len(tensor.shape) != 4:
            return False
        is_valid = node.attr("padding") == b"VALID"
        if strides[1] < 4 if is_valid else strides[1] - min(tensor.shape[:2]) < 2:
            return True
        image = self.shapes.shape(operands(node)[0].codes)
        sizes = zip(image.known[1:3] if image.is_known else (), tensor.shape[:2], strict=False)
        return image.is_known and all(begins_alike(size, taps, strides[1], is_valid) for size, taps in sizes)

    def behind_quantization(self, node: Node) -> Node:
        """The constant that a node's codes are made of, if it is one."""
        while node.op in ("QuantizeV2", "Identity") and node_name(node.data_inputs[0]) in self.graph.nodes:
            node = self.graph[node_name(node.data_inputs[0])]
        return node

    def number(self, node: Node, index: int) -> float | None:
        """The value of one of a node's inputs, if it is known."""
        return known_number(self.graph, node.data_inputs[index])

    def is_searched(self, node: Node, index: int, op: str) -> bool:
        """Whether a range's end is searched in the values themselves."""
        source = self.graph.find_producer(node.data_inputs[index])
        return source is not None and source.op == op

    def fixed_range(self, node: Node) -> Range | None:
        """The constant range that a Requantize asks for, where a code of it stands for zero."""
        low, high = self.number(node, 3), self.number(node, 4)
        return None if low is None or high is None or not low <= 0 <= high or low == high else (low, high)

    def follows_range(self, node: Node) -> bool:
        """Whether a Requantize asks for the range that RequantizationRange finds for the same codes."""
        refs = [canonical(ref) for ref in node.data_inputs]
        source = self.graph.find_producer(refs[3])
        if source is None or source.op != "RequantizationRange":
            return False
        same = [canonical(ref) for ref in source.data_inputs] == refs[:3]
        return same and refs[3:] == [f"{source.name}:0", f"{source.name}:1"]

    def fits(self, node: Node) -> bool:
        """Whether all that the node reads and all who read it are such that it can be rewritten."""
        for codes, low, high in operands(node):
            source = node_name(codes)
            if source in self.inside and (codes, low, high) != (f"{source}:0", f"{source}:1", f"{source}:2"):
                return False
            if source not in self.inside and node.op in (*MOVES, "RequantizationRange"):
                return False
        return all(self.may_read(reader, node) for reader in self.readers.get(node.name, ()))

    def may_read(self, reader: Node, node: Node) -> bool:
        """Whether ``reader`` will not miss the codes or the range of ``node``."""
        if node.op == "RequantizationRange":
            return reader.op == "Requantize" and reader.name in self.inside
        if reader.name in self.inside and reader.op != "QuantizeV2":
            return True
        return self.ends_part(reader, node.name)

    def ends_part(self, node: Node, source: str) -> bool:
        """Whether the node gives floats for the codes of ``source``."""
        is_first = node.op == "Dequantize" and node.attr("mode") == b"MIN_FIRST" and node.attr("T") is QUINT8
        return is_first and [canonical(ref) for ref in node.data_inputs] == [f"{source}:{port}" for port in range(3)]

    # What is known of ranges

    def has_grids(self) -> bool:
        """Whether any range in the parts is known: near the original counts, not only speed."""
        return any(self.graph[name].op == "Requantize" and self.grid(name) is not None for name in self.inside)

    def follows(self) -> bool:
        """Whether results are moved to ranges that are found while running."""
        nodes = [self.graph[name] for name in self.inside]
        return any(
            node.op == "QuantizeDownAndShrinkRange" or (node.op == "Requantize" and self.follows_range(node))
            for node in nodes
        )

    def found_between(self) -> int:
        """How many tensors get codes of a range found while running, other than what comes before the first layer."""
        nodes = [self.graph[name] for name in self.inside if self.graph[name].op == "QuantizeV2"]
        return sum(None in (self.number(n, 1), self.number(n, 2)) and not self.is_given(n) for n in nodes)

    def is_rounded(self, node: Node) -> bool:
        """Whether a QuantizeV2 has a range found while running in which it is to be rounded."""
        is_searched = self.is_searched(node, 1, "Min") and self.is_searched(node, 2, "Max")
        return is_searched and self.grid(node.name) is None and node.attr("T") is QUINT8

    def is_given(self, node: Node) -> bool:
        """Whether a QuantizeV2 rounds, in a range found while running, what comes before the first layer.

        A photo's values lie just between two codes there, all of them, when they were scaled to -1…1: LiteRT, which
        rounds halves to even, would give other codes to every second one.
        """
        if not (self.is_searched(node, 1, "Min") and self.is_searched(node, 2, "Max")) or self.grid(node.name):
            return False
        nodes = self.graph.nodes
        first = node_name(node.data_inputs[0])
        before = closure([first], lambda name: map(node_name, nodes[name].data_inputs), nodes.__contains__)
        return not any(
            nodes[name].op == "Dequantize" or nodes[name].op in CANDIDATES or count > MOST_BEFORE
            for count, name in enumerate(before, 1)
        )

    def grid(self, name: str) -> Range | None:
        """The constant range of a node's codes, None where it is found while the graph runs."""
        if name not in self.grids:
            self.grids[name] = None
            self.grids[name] = self._grid(self.graph[name])
        return self.grids[name]

    def _grid(self, node: Node) -> Range | None:
        if node.name not in self.inside:
            return None
        if node.op == "QuantizeV2":
            low, high = self.number(node, 1), self.number(node, 2)
            if low is None or high is None or node.attr("T") is not QUINT8:  # of 32 bits, as good as floats
                return None
            return widened_range(low, high)
        if node.op == "Requantize":
            return self.fixed_range(node)
        if node.op in KEEPS_RANGE:
            return self.grid(parse_ref(operands(node)[0].codes).name)
        if node.op == "QuantizedConcat":
            found = [self.grid(node_name(operand.codes)) for operand in operands(node)]
            known = [grid for grid in found if grid is not None]
            if len(known) == len(found):
                return joint_range([low for low, _ in known], [high for _, high in known], BYTE)
        return None


def begins_alike(size: int, taps: int, stride: int, is_valid: bool) -> bool:
    """Whether the first window along an axis begins where Conv2D's does.

    Conv2D leaves out what does not fill a window behind the last one; the original leaves out half of it in front.
    """
    left = (size - taps) % stride if is_valid else size - ((-(-size // stride) - 1) * stride + taps)
    return left < (3 if is_valid else 2)
