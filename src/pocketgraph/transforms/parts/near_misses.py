"""What near misses of several rules have in common: weights that are not constant, nodes that others read as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.op_traits import VARIABLES, ops_with
from pocketgraph.passes.channel_scaling import LINEAR
from pocketgraph.transforms.near_miss import Miss
from pocketgraph.transforms.parts.affine_folding import BATCH_NORMS

THROUGH = ops_with("passes", "checks")
READ = VARIABLES | {"ReadVariableOp"}


def source_of(graph: Graph, ref: str) -> Node | None:
    return graph.nodes.get(node_name(ref))


def not_constant(graph: Graph, ref: str, what: str) -> tuple[str, str] | None:
    """Why a reference is no Const, and the remedy; None when it is one."""
    node = source_of(graph, ref)
    if node is None or node.op == "Const":
        return None
    seen = node
    for _ in range(8):
        if seen.op not in THROUGH or not seen.data_inputs:
            break
        following = source_of(graph, seen.data_inputs[0])
        if following is None:
            break
        seen = following
    if seen.op in READ:
        return f"{what} are a variable ({seen.op} '{seen.name}')", "freeze_graph"
    if seen.op == "Const":
        return f"{what} are not a Const but an {node.op} of one", "fold_constants"
    if seen.op == "Dequantize":
        return f"{what} are quantized already", ""
    if is_computed_from_constants(graph, seen):
        return f"{what} are not a Const but computed by {node.op} '{node.name}'", "fold_constants"
    return f"{what} are not constant: they come from {seen.op} '{seen.name}'", ""


def is_computed_from_constants(graph: Graph, node: Node) -> bool:
    waiting, seen = [node], {node.name}
    while waiting and len(seen) < 64:
        current = waiting.pop()
        if current.op.startswith("Placeholder") or current.op in READ:
            return False
        if not current.data_inputs and current.op != "Const":
            return False
        for ref in current.data_inputs:
            source = source_of(graph, ref)
            if source is None:
                return False
            if source.name not in seen:
                seen.add(source.name)
                waiting.append(source)
    return not waiting


def held_by(graph: Graph, node: Node, reader: Node, between: Node | None = None) -> str:
    """Who else than its reader wants a node, or what is between the two, as a reason; "" when nobody does."""
    if between is not None:
        return held_by(graph, node, between) or held_by(graph, between, reader)
    if any(node_name(ref) == node.name for ref in graph.outputs):
        return f"the {node.op} '{node.name}' is an output"
    if any(node_name(ref) == node.name for ref in graph.inputs):
        return f"the {node.op} '{node.name}' is an input"
    other = next((user for user in graph.consumers.get(node.name, ()) if user.name != reader.name), None)
    return "" if other is None else f"the {node.op} '{node.name}' is also read by '{other.name}'"


def around(graph: Graph, head: Node) -> tuple[Node, Node, Node | None] | None:
    """The linear node before or behind a head, the node that has to have one reader for the fold, and what is between
    the two."""
    for ref in head.data_inputs:
        current, between = source_of(graph, ref), None
        if current is not None and current.op in ("BiasAdd", "BatchToSpaceND") and current.data_inputs:
            current, between = source_of(graph, current.data_inputs[0]), current
        if current is not None and current.op in LINEAR:
            return current, current, between
    users = graph.consumers.get(head.name, ())
    if users and users[0].op in LINEAR:
        return users[0], head, None
    return None


def fold_miss(graph: Graph, head: Node, product: Node, single: Node, between: Node | None, others: list[str]) -> Miss:
    held = held_by(graph, single, head if single is product else product, between)
    if held:
        return Miss(head.name, held)
    weights = product.data_inputs[LINEAR[product.op].weights] if len(product.data_inputs) > 1 else ""
    constant = not_constant(graph, weights, "weights")
    if constant is not None:
        return Miss(head.name, *constant)
    for ref in others:
        constant = not_constant(graph, ref, "factors")
        if constant is not None:
            return Miss(head.name, *constant)
    if product.attr("T", FLOAT) is not FLOAT:
        return Miss(head.name, f"'{product.name}' is of type {product.dtype().name}, not float")
    holder = source_of(graph, weights)
    held = held_by(graph, holder, product) if holder is not None else ""
    if held:
        return Miss(head.name, held)
    if single is head and product.attr("padding") == b"SAME":
        return Miss(head.name, f"what it adds would be missing at the borders of '{product.name}' (SAME padding)")
    if head.attr("data_format", b"NHWC") != product.attr("data_format", b"NHWC") and head.op in BATCH_NORMS:
        return Miss(head.name, f"its data_format is not that of '{product.name}'")
    return Miss(head.name, f"its constants are not one number for each channel of '{product.name}'")


def is_constant_like(graph: Graph, ref: str) -> bool:
    node = source_of(graph, ref)
    return node is not None and (
        node.op in READ or node.op == "Const" or node.op in THROUGH or is_computed_from_constants(graph, node)
    )


def fusion_misses(before: str, wanted: str) -> Callable[[Graph, Mapping[str, Any]], Iterator[Miss]]:
    def explain(graph: Graph, arguments: Mapping[str, Any]) -> Iterator[Miss]:
        for node in graph:
            if node.op != "Conv2D" or not node.data_inputs:
                continue
            source = source_of(graph, node.data_inputs[0])
            if source is None or not source.op.startswith(before):
                continue
            if source.op != wanted:
                yield Miss(node.name, f"it is behind {source.op} '{source.name}', not {wanted}")
            elif node.attr("data_format", b"NHWC") != b"NHWC":
                yield Miss(node.name, "it is NCHW; the fused op is NHWC")
            elif set(node.attr("dilations", ())) - {1}:
                yield Miss(node.name, "it is dilated; the fused op is not")
            elif node.attr("padding") not in (b"SAME", b"VALID"):
                yield Miss(node.name, "it has paddings of its own; the fused op has not")
            elif source.attr("half_pixel_centers"):
                yield Miss(node.name, f"'{source.name}' has half_pixel_centers; the fused op has not")
            else:
                held = held_by(graph, source, node)
                if held:
                    yield Miss(node.name, held)

    return explain
