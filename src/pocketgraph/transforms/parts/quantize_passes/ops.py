"""Replaces float operations by their eight-bit forms."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pocketgraph.errors import TransformError
from pocketgraph.graph import AttrValue, DType, Graph, Node, const, node_name, parse_ref
from pocketgraph.graph.dtype import FLOAT, INT32, QINT32, QUINT8
from pocketgraph.graph.edit import replace_matches
from pocketgraph.graph.pattern import Match, Pattern
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.original.matchable import matchable
from pocketgraph.transforms.original.node_types import input_types, output_types
from pocketgraph.transforms.parts.convolution_facts import copied
from pocketgraph.transforms.parts.quantize_passes.code_nodes import dequantize, ports, quantize, requantize, shared


@dataclass(frozen=True)
class _EightBit:
    """How a float op becomes ``Quantized`` and its name.

    Attributes:
        copied: attributes that stay.
        types: attributes that get the eight-bit type.
        result: the attribute that gets the 32-bit type; "" where the result has eight bits.
        as_is: the place of the input that is not quantized.
        ranges_apart: all minima come before all maxima, rather than a minimum and a maximum for each input.
    """

    copied: tuple[str, ...] = ()
    types: tuple[str, ...] = ("T",)
    result: str = ""
    as_is: int | None = None
    ranges_apart: bool = False


PRODUCT = ("T1", "T2")
WINDOW = ("ksize", "strides", "padding")
OPS = {
    "Add": _EightBit((), PRODUCT, "Toutput"),
    "AvgPool": _EightBit(WINDOW),
    "BiasAdd": _EightBit((), PRODUCT, "out_type"),
    "Concat": _EightBit(("N",), as_is=0, ranges_apart=True),
    "Conv2D": _EightBit(("strides", "padding"), ("Tinput", "Tfilter"), "out_type"),
    "MatMul": _EightBit(("transpose_a", "transpose_b"), PRODUCT, "Toutput"),
    "MaxPool": _EightBit(WINDOW),
    "Mul": _EightBit((), PRODUCT, "Toutput"),
    "Relu": _EightBit((), ("Tinput",)),
    "Relu6": _EightBit((), ("Tinput",)),
    "Reshape": _EightBit(as_is=1),
    "ResizeBilinear": _EightBit(("align_corners",), as_is=1),
}


def quantize_ops(
    graph: Graph, ignored: Collection[str], fallback: tuple[float, float] | None, *, strict: bool
) -> Graph:
    """Replaces each float operation of ``OPS`` by quantization, its eight-bit form, and a Dequantize of its name.

    Args:
        ignored: ops to leave alone.
        fallback: the range of what has 32 bits; None to search it while the graph runs.
        strict: an attribute that says a type must be there, an input may not come twice, and operations that the
            eight-bit form does otherwise are replaced all the same.

    Raises:
        TransformError: such an attribute is missing, or an input comes twice, with ``strict``.
    """
    wanted = [op for op in OPS if op not in ignored]
    if not wanted:
        return graph

    may_match = matchable(graph, Compat.ORIGINAL if strict else Compat.FIXED)

    def accept(match: Match) -> bool:
        return may_match(match.node)

    def rewrite(match: Match, used: frozenset[str]) -> list[Node]:
        node, form = match.node, OPS[match.node.op]
        if not _is_float(node, form, strict) or (not strict and not _does_the_same(node)):
            return [node]
        return _eight_bit(node, form, fallback, strict)

    return replace_matches(graph, Pattern("|".join(wanted)), rewrite, accept=accept).graph


def _is_float(node: Node, form: _EightBit, strict: bool) -> bool:
    """Whether all inputs but the one that is not quantized, and all outputs, are float."""
    inputs, outputs = input_types(node, strict=strict), output_types(node, strict=strict)
    return {dtype for place, dtype in enumerate(inputs) if place != form.as_is} | set(outputs) <= {FLOAT}


def _does_the_same(node: Node) -> bool:
    """Whether the eight-bit form knows all that the node's attributes ask for."""
    if node.attr("data_format", b"NHWC") != b"NHWC" or node.attr("padding", b"SAME") not in (b"SAME", b"VALID"):
        return False
    strides = node.attr("strides", ())
    if node.op == "Conv2D" and (set(node.attr("dilations", ())) > {1} or len(set(strides[1:3])) > 1):
        return False
    if node.op in ("AvgPool", "MaxPool") and (node.attr("ksize", (1,))[0], node.attr("ksize", (1,))[-1]) != (1, 1):
        return False
    return len(node.data_inputs) >= 1


def _eight_bit(node: Node, form: _EightBit, fallback: tuple[float, float] | None, strict: bool) -> list[Node]:
    nodes: list[Node] = []
    sources: list[str] = []  # of the eight-bit inputs
    inputs: list[str] = []
    given = node.inputs if strict else node.data_inputs
    for place, ref in enumerate(given):
        if place == form.as_is:
            inputs.append(ref)
            continue
        parts = _quantized_input(f"{node.name}_eightbit/{_flat(ref)}", ref)
        if strict and parts[-1].name in sources:
            raise TransformError(
                f"the inputs of the {node.op} are the same twice: '{ref}'",
                where=f"node '{node.name}'",
                hint="compat=fixed quantizes it",
            )
        nodes += parts
        sources.append(parts[-1].name)
        inputs.append(f"{sources[-1]}:0")
    if form.ranges_apart:
        inputs += [f"{source}:{port}" for port in (1, 2) for source in sources]
    else:
        inputs += [f"{source}:{port}" for source in sources for port in (1, 2)]
    if not strict:
        inputs += node.control_inputs
    main = Node(f"{node.name}/eightbit", f"Quantized{node.op}", inputs, _attributes(node, form, strict))
    nodes.append(main)
    if form.result:
        nodes += _narrowed(main.name, fallback)
    return [*nodes, dequantize(node.name, ports(nodes[-1].name))]


def _quantized_input(scope: str, ref: str) -> list[Node]:
    """The nodes that bring one float input to eight bits, in its range; the last one is the QuantizeV2."""
    after = (f"^{node_name(ref)}",)  # so that the constants belong to the frame of a loop that the input is in
    shape = Node(f"{scope}/reshape_dims", "Const", after, _FLAT)
    axis = Node(f"{scope}/reduction_dims", "Const", after, _FIRST_AXIS)
    flat = Node(f"{scope}/reshape", "Reshape", [ref, shape.name], shared(T=FLOAT))
    both = (flat.name, axis.name)
    low, high = (Node(f"{scope}/{op.lower()}", op, both, shared(T=FLOAT, keep_dims=False)) for op in ("Min", "Max"))
    return [shape, axis, flat, low, high, quantize(f"{scope}/quantize", ref, low.name, high.name, QUINT8)]


_FLAT = const("", [-1], INT32).attrs
_FIRST_AXIS = const("", [0], INT32).attrs


def _narrowed(main: str, fallback: tuple[float, float] | None) -> list[Node]:
    """The nodes that bring a 32-bit result to eight bits; the last one is the Requantize."""
    if fallback is None:
        source = ports(main)
        searched = Node(f"{main}/requant_range", "RequantizationRange", source, shared(Tinput=QINT32))
        return [searched, requantize(f"{main}/requantize", source, *ports(searched.name)[:2])]
    low, high = (
        const(f"{main}/fallback_{end}", value, FLOAT) for end, value in zip(("min", "max"), fallback, strict=True)
    )
    return [low, high, requantize(f"{main}/requantize", ports(main), low.name, high.name)]


def _attributes(node: Node, form: _EightBit, strict: bool) -> Mapping[str, AttrValue]:
    types: dict[str, DType] = dict.fromkeys(form.types, QUINT8)
    if form.result:
        types[form.result] = QINT32
    attrs: dict[str, AttrValue] = {**copied(node, *form.copied), **types}
    if not strict:
        if node.op == "Reshape" and node.attr("Tshape", INT32) is not INT32:
            attrs["Tshape"] = node.attrs["Tshape"]
        if node.attr("half_pixel_centers", False):
            attrs["half_pixel_centers"] = True
    try:
        return shared(**attrs)
    except TypeError:  # an attribute of a wrong kind that cannot be hashed
        return attrs


def _flat(ref: str) -> str:
    """A reference as part of a node's name."""
    name, port, control = parse_ref(ref)
    return f"{'__hat__' if control else ''}{name}" + (f"__port__{port}" if ref.endswith(f":{port}") else "")
