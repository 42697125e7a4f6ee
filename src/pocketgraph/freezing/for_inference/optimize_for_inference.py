"""optimize_for_inference: strips a frozen graph, takes training's nodes out, and fuses what convolutions can hold."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from pocketgraph.errors import GraphError
from pocketgraph.freezing.for_inference.batch_norm_folding import fold_batch_norms
from pocketgraph.freezing.for_inference.decomposed_batch_norms import fuse_decomposed_batch_norms
from pocketgraph.freezing.for_inference.remove_training_nodes import Version, remove_training_nodes
from pocketgraph.freezing.for_inference.strip import FLOAT, strip_unused
from pocketgraph.graph import AttrValue, DType, Graph, Node, const, node_name
from pocketgraph.graph.colocation import without_colocations
from pocketgraph.graph.model_file_graph import refuse_finished
from pocketgraph.passes.fusible_convolutions import is_plain, takes_resize

log = logging.getLogger("pocketgraph.freezing")

KEPT = ("strides", "padding")
"""Attributes of a convolution that a fused one has, too."""

CONSTANT_PLACEHOLDERS = {"keras_learning_phase": "False"}
_TRUE, _FALSE = ("True", "true"), ("False", "false")


def optimize_for_inference(
    graph: Graph,
    input_node_names: Sequence[str],
    output_node_names: Sequence[str],
    placeholder_type_enum: int | Sequence[int] = FLOAT,
    toco_compatible: bool = False,
    placeholder_to_const_names: Sequence[str] = (),
    *,
    like: Version = "2.x",
) -> Graph:
    """What TensorFlow's optimize_for_inference makes of a frozen graph, node for node.

    In this order: bool placeholders become constants (like 2.x), strip_unused, remove_training_nodes, decomposed batch
    norms are fused (like 2.x), batch norms are folded, resizes are fused unless ``toco_compatible``.

    Differs from the original: like 2.x, no node asks any more to be placed with one that is gone (``_class``), with
    which TensorFlow loads no graph.

    Args:
        input_node_names, output_node_names: names of nodes.
        placeholder_type_enum: see strip_unused.
        toco_compatible: leave out the ops that TensorFlow Lite does not know.
        placeholder_to_const_names: ``name=true`` or ``name=false``: a bool placeholder whose name contains this
            becomes a constant. ``keras_learning_phase=False`` always holds.
        like: whose rules, those of TensorFlow 1.15 or 2.x.

    Raises:
        GraphError: an input refers to a node that is not there.
        UsageError, FreezeError: see strip_unused.
    """
    refuse_finished(graph, "optimize_for_inference")
    _validate(graph)
    given = graph.nodes.keys()
    if like == "2.x":
        graph = placeholders_to_constants(graph, placeholder_to_const_names)
    graph = strip_unused(graph, input_node_names, output_node_names, placeholder_type_enum)
    graph = remove_training_nodes(graph, output_node_names, like=like)
    if like == "2.x":
        graph = fuse_decomposed_batch_norms(graph)
    graph = fold_batch_norms(graph, like=like)
    if not toco_compatible:
        graph = fuse_resize_and_conv(graph, output_node_names)
    _validate(graph)
    if like == "2.x":
        graph = without_colocations(graph, given - graph.nodes.keys())
    return graph.replace(inputs=[name for name in graph.inputs if name in graph])


def placeholders_to_constants(graph: Graph, names: Sequence[str] = ()) -> Graph:
    """Bool placeholders whose names contain one of these become constants.

    Args:
        names: ``name=true`` or ``name=false``; any other value is false, with a warning.
    """
    values: dict[str, str] = dict(CONSTANT_PLACEHOLDERS)
    for entry in names:
        name, equals, value = entry.partition("=")
        if equals and name.strip():
            values[name.strip()] = value
    return graph.map_nodes(lambda node: _constant(node, values))


def _constant(node: Node, values: Mapping[str, str]) -> Node:
    if node.op not in ("Placeholder", "PlaceholderWithDefault"):
        return node
    key = next((key for key in values if key in node.name), None)
    if key is None:
        return node
    if node.attrs.get("dtype") is not DType.named("bool"):
        log.warning("the placeholder '%s' stays one: only bool placeholders can become constants", node.name)
        return node
    if values[key] not in _TRUE + _FALSE:
        log.warning("'%s' is neither true nor false; '%s' becomes false", values[key], node.name)
    return const(node.name, np.array(values[key] in _TRUE))


def _validate(graph: Graph) -> None:
    missing = graph.dangling()
    if missing:
        node, source = missing[0]
        raise GraphError(f"Input for {node} not found: {source}")


def fuse_resize_and_conv(graph: Graph, output_node_names: Iterable[str]) -> Graph:
    """Fuses ResizeBilinear, MirrorPad or both into the Conv2D behind them; nodes that nothing uses are dropped.

    ::

        r = ResizeBilinear(x, size)
        p = MirrorPad(r, paddings)    ->   y = FusedResizeAndPadConv2D(x, size, paddings, w)
        y = Conv2D(p, w)

    Without a resize it is FusedPadConv2D; without a border ``y_dummy_paddings`` are zeros. New nodes come last.

    Differs from the original: what the fused ops do not compute is left alone, which are convolutions in NCHW, with
    dilations or explicit paddings, and resizes with half_pixel_centers or of other types than the convolution (the
    original makes graphs of them that give other numbers or do not load).
    """
    uses = Counter(node_name(ref) for node in graph for ref in node.inputs)
    uses.update(output_node_names)
    new: list[Node] = []
    for node in graph:
        if node.op != "Conv2D" or len(node.data_inputs) != 2:
            continue
        before = graph.find_producer(node.data_inputs[0])
        pad = before if before is not None and before.op == "MirrorPad" else None
        source = graph.find_producer(pad.data_inputs[0]) if pad is not None else before
        resize = source if source is not None and source.op == "ResizeBilinear" else None
        if resize is not None and not takes_resize(node, resize):
            resize = None
        if not is_plain(node) or (pad is None and resize is None):
            continue
        uses[node.name] = 0
        for fused in (pad, resize):
            if fused is not None:
                uses[fused.name] -= 1
        new += _fused(node, pad, resize)
    kept = [node for node in graph if uses[node.name] > 0]
    return graph.replace([*kept, *new])


def _fused(conv: Node, pad: Node | None, resize: Node | None) -> list[Node]:
    made: list[Node] = []
    if pad is not None:
        paddings, mode = pad.data_inputs[1], pad.attrs.get("mode", b"REFLECT")
    else:
        paddings, mode = f"{conv.name}_dummy_paddings", b"REFLECT"
        made.append(const(paddings, np.zeros((4, 2), np.int32)))
    attrs: dict[str, AttrValue] = {"T": conv.dtype(), "mode": mode}
    attrs.update({key: conv.attrs[key] for key in KEPT if key in conv.attrs})
    if resize is not None:
        attrs["resize_align_corners"] = resize.attr("align_corners", False)
        inputs = [*resize.data_inputs[:2], paddings, conv.data_inputs[1]]
        return [*made, Node(conv.name, "FusedResizeAndPadConv2D", inputs, attrs)]
    assert pad is not None
    return [*made, Node(conv.name, "FusedPadConv2D", [pad.data_inputs[0], paddings, conv.data_inputs[1]], attrs)]
