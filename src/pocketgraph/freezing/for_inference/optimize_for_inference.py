"""optimize_for_inference: strips a frozen graph, takes training's nodes out, and fuses what convolutions can hold."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np

from pocketgraph.errors import GraphError
from pocketgraph.freezing.for_inference.batch_norm_folding import fold_batch_norms
from pocketgraph.freezing.for_inference.decomposed_batch_norms import fuse_decomposed_batch_norms
from pocketgraph.freezing.for_inference.remove_training_nodes import Version, remove_training_nodes
from pocketgraph.freezing.for_inference.resize_fusion import fuse_resize_and_conv
from pocketgraph.freezing.for_inference.strip import FLOAT, strip_unused
from pocketgraph.graph import DType, Graph, Node, const
from pocketgraph.graph.colocation import without_colocations
from pocketgraph.graph.model_file_graph import refuse_finished

log = logging.getLogger("pocketgraph.freezing")

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
