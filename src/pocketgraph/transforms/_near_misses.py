"""Says why a rule left places alone that look as if they were for it, and which rule would help."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pocketgraph.graph import Graph, Node, Tensor, node_name, parse_ref
from pocketgraph.graph.dtype import DOUBLE, FLOAT, HALF
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.transforms._affine import BATCH_NORMS
from pocketgraph.transforms._weight_rules import depthwise
from pocketgraph.transforms._weights import LINEAR

THROUGH = ops_with("passes", "checks")
VARIABLES = ops_with("variable") | {"ReadVariableOp"}


class Miss(NamedTuple):
    """A place that a rule left alone.

    Attributes:
        node: its head.
        why: the reason.
        remedy: what to run first, or "".
    """

    node: str
    why: str
    remedy: str = ""


def near_misses(rule: str, graph: Graph, arguments: Mapping[str, Any]) -> list[Miss]:
    """The places in the graph that a rule made that look as if they were for the rule, in graph order."""
    explain = EXPLAINED.get(rule)
    return [] if explain is None else list(explain(graph, arguments))


def remedies(misses: list[Miss]) -> dict[str, list[Miss]]:
    """The near misses that another rule would help, by that rule."""
    found: dict[str, list[Miss]] = {}
    for miss in misses:
        if miss.remedy:
            found.setdefault(miss.remedy, []).append(miss)
    return found


def _source(graph: Graph, ref: str) -> Node | None:
    return graph.nodes.get(node_name(ref))


def _not_constant(graph: Graph, ref: str, what: str) -> tuple[str, str] | None:
    """Why a reference is no Const, and the remedy; None when it is one."""
    node = _source(graph, ref)
    if node is None or node.op == "Const":
        return None
    seen = node
    for _ in range(8):
        if seen.op not in THROUGH or not seen.data_inputs:
            break
        following = _source(graph, seen.data_inputs[0])
        if following is None:
            break
        seen = following
    if seen.op in VARIABLES:
        return f"{what} are a variable ({seen.op} '{seen.name}')", "freeze_graph"
    if seen.op == "Const":
        return f"{what} are not a Const but an {node.op} of one", "fold_constants"
    if seen.op == "Dequantize":
        return f"{what} are quantized already", ""
    if _is_computed_from_constants(graph, seen):
        return f"{what} are not a Const but computed by {node.op} '{node.name}'", "fold_constants"
    return f"{what} are not constant: they come from {seen.op} '{seen.name}'", ""


def _is_computed_from_constants(graph: Graph, node: Node) -> bool:
    waiting, seen = [node], {node.name}
    while waiting and len(seen) < 64:
        current = waiting.pop()
        if current.op.startswith("Placeholder") or current.op in VARIABLES:
            return False
        if not current.data_inputs and current.op != "Const":
            return False
        for ref in current.data_inputs:
            source = _source(graph, ref)
            if source is None:
                return False
            if source.name not in seen:
                seen.add(source.name)
                waiting.append(source)
    return not waiting


def _held_by(graph: Graph, node: Node, reader: Node, between: Node | None = None) -> str:
    """Who else than its reader wants a node, or what is between the two, as a reason; "" when nobody does."""
    if between is not None:
        return _held_by(graph, node, between) or _held_by(graph, between, reader)
    if any(node_name(ref) == node.name for ref in graph.outputs):
        return f"the {node.op} '{node.name}' is an output"
    if any(node_name(ref) == node.name for ref in graph.inputs):
        return f"the {node.op} '{node.name}' is an input"
    other = next((user for user in graph.consumers.get(node.name, ()) if user.name != reader.name), None)
    return "" if other is None else f"the {node.op} '{node.name}' is also read by '{other.name}'"


def _around(graph: Graph, head: Node) -> tuple[Node, Node, Node | None] | None:
    """The linear node before or behind a head, the node that has to have one reader for the fold, and what is between
    the two."""
    for ref in head.data_inputs:
        current, between = _source(graph, ref), None
        if current is not None and current.op in ("BiasAdd", "BatchToSpaceND") and current.data_inputs:
            current, between = _source(graph, current.data_inputs[0]), current
        if current is not None and current.op in LINEAR:
            return current, current, between
    users = graph.consumers.get(head.name, ())
    if users and users[0].op in LINEAR:
        return users[0], head, None
    return None


def _of_folds(graph: Graph, head: Node, product: Node, single: Node, between: Node | None, others: list[str]) -> Miss:
    held = _held_by(graph, single, head if single is product else product, between)
    if held:
        return Miss(head.name, held)
    weights = product.data_inputs[LINEAR[product.op].weights] if len(product.data_inputs) > 1 else ""
    constant = _not_constant(graph, weights, "weights")
    if constant is not None:
        return Miss(head.name, *constant)
    for ref in others:
        constant = _not_constant(graph, ref, "factors")
        if constant is not None:
            return Miss(head.name, *constant)
    if product.attr("T", FLOAT) is not FLOAT:
        return Miss(head.name, f"'{product.name}' is of type {product.dtype().name}, not float")
    holder = _source(graph, weights)
    held = _held_by(graph, holder, product) if holder is not None else ""
    if held:
        return Miss(head.name, held)
    if single is head and product.attr("padding") == b"SAME":
        return Miss(head.name, f"what it adds would be missing at the borders of '{product.name}' (SAME padding)")
    if head.attr("data_format", b"NHWC") != product.attr("data_format", b"NHWC") and head.op in BATCH_NORMS:
        return Miss(head.name, f"its data_format is not that of '{product.name}'")
    return Miss(head.name, f"its constants are not one number for each channel of '{product.name}'")


def _fold_batch_norms(graph: Graph, arguments: Mapping[str, Any]) -> Iterator[Miss]:
    for node in graph:
        if node.op != "Mul" or len(node.data_inputs) != 2:
            continue
        found = _around(graph, node)
        if found is None:
            continue
        product, single, between = found
        inner = (between or product).name
        others = [ref for ref in node.data_inputs if node_name(ref) != inner]
        if single is node:  # before a convolution: only what is constant is of interest
            others = [ref for ref in others if graph.constant(ref) is not None]
            if not others:
                continue
        elif all(_source(graph, ref) is not None and not _constant_like(graph, ref) for ref in others):
            continue  # a product of two signals is no batch normalization
        yield _of_folds(graph, node, product, single, between, others)


def _constant_like(graph: Graph, ref: str) -> bool:
    node = _source(graph, ref)
    return node is not None and (
        node.op in VARIABLES or node.op == "Const" or node.op in THROUGH or _is_computed_from_constants(graph, node)
    )


def _fold_old_batch_norms(graph: Graph, arguments: Mapping[str, Any]) -> Iterator[Miss]:
    for node in graph:
        if node.op not in BATCH_NORMS or not node.data_inputs:
            continue
        found = _around(graph, node)
        if found is None:
            source = _source(graph, node.data_inputs[0])
            if source is not None and source.op in THROUGH:
                yield Miss(node.name, f"an {source.op} stands before it", f"remove_nodes(op={source.op})")
            else:
                yield Miss(node.name, f"no convolution is next to it (before it: {source.op if source else 'nothing'})")
            continue
        if any(parse_ref(ref).port > 0 for user in graph.consumers.get(node.name, ()) for ref in user.inputs
               if node_name(ref) == node.name):  # fmt: skip
            yield Miss(node.name, "another output than its first is used")
            continue
        moments = [graph.constant(ref) for ref in node.data_inputs[3:5]]
        if node.attr("is_training", node.op.startswith("Fused")) and any(m is not None and not m.size for m in moments):
            yield Miss(node.name, "it is of training: it has no mean and variance of its own")
            continue
        yield _of_folds(graph, node, *found, list(node.data_inputs[1:]))


def _fused(before: str, wanted: str) -> Callable[[Graph, Mapping[str, Any]], Iterator[Miss]]:
    def explain(graph: Graph, arguments: Mapping[str, Any]) -> Iterator[Miss]:
        for node in graph:
            if node.op != "Conv2D" or not node.data_inputs:
                continue
            source = _source(graph, node.data_inputs[0])
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
                held = _held_by(graph, source, node)
                if held:
                    yield Miss(node.name, held)

    return explain


def _fuse_resize_pad_and_conv(graph: Graph, arguments: Mapping[str, Any]) -> Iterator[Miss]:
    for node in graph:
        if node.op == "Conv2D" and node.data_inputs:
            pad = _source(graph, node.data_inputs[0])
            if pad is not None and pad.op in ("Pad", "PadV2") and pad.data_inputs:
                resize = _source(graph, pad.data_inputs[0])
                if resize is not None and resize.op == "ResizeBilinear":
                    yield Miss(node.name, f"between it and the resize stands {pad.op} '{pad.name}', not MirrorPad")


def _quantize_weights(graph: Graph, arguments: Mapping[str, Any]) -> Iterator[Miss]:
    least, most = arguments.get("minimum_size", 1024), arguments.get("maximum_size")
    for node in graph:
        if node.op == "Const":
            tensor = node.attrs.get("value")
            if isinstance(tensor, Tensor) and tensor.size > 1:
                if tensor.dtype is FLOAT and tensor.size < least:
                    yield Miss(node.name, f"{tensor.size} elements are fewer than minimum_size={least}")
                elif tensor.dtype is FLOAT and most is not None and tensor.size > most:
                    yield Miss(node.name, f"{tensor.size} elements are more than maximum_size={most}")
                elif tensor.dtype in (DOUBLE, HALF) and tensor.size >= least:
                    yield Miss(node.name, f"its type is {tensor.dtype.name}, not float")
        elif node.op in VARIABLES and node.op != "ReadVariableOp":
            yield Miss(node.name, f"{node.op} holds no value", "freeze_graph")


def _mobile_8bit(graph: Graph, arguments: Mapping[str, Any]) -> Iterator[Miss]:
    """The convolutions of a model that went on computing in floats."""
    fragile = depthwise(graph)
    for name in fragile:
        yield Miss(
            name, "eight-bit arithmetic ruins depthwise convolutions: the model computes in floats, weights are codes"
        )
    if fragile or any(node.op == "QuantizedConv2D" for node in graph):
        return
    for node in graph:
        if node.op == "Conv2D":
            yield Miss(node.name, "a deep model of which eight-bit arithmetic leaves too little: it computes in floats")


EXPLAINED: dict[str, Callable[[Graph, Mapping[str, Any]], Iterator[Miss]]] = {
    "fold_batch_norms": _fold_batch_norms,
    "fold_old_batch_norms": _fold_old_batch_norms,
    "fuse_pad_and_conv": _fused("MirrorPad", "MirrorPad"),
    "fuse_resize_and_conv": _fused("Resize", "ResizeBilinear"),
    "fuse_resize_pad_and_conv": _fuse_resize_pad_and_conv,
    "mobile_8bit": _mobile_8bit,
    "quantize_weights": _quantize_weights,
}
"""The rules whose near misses are told."""
