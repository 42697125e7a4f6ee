"""Where a model is cut: what its last layer with weights takes tells things apart, whatever it was trained for."""

from __future__ import annotations

from dataclasses import dataclass

from pocketgraph.datasets import presets
from pocketgraph.errors import UsageError, option
from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.order import topological

LAYERS = ops_with("matrix_product", "convolution")
FAR = 24
"""Nodes between the output and the last layer with weights, at most."""


@dataclass(frozen=True)
class Cut:
    """Where a model is cut.

    Attributes:
        tensor: what the head takes.
        layer: the node of the old last layer; "" where the caller named the tensor.
    """

    tensor: str
    layer: str


def found_cut(graph: Graph, output: str, tensor: str | None = None) -> Cut:
    """The cut of a classifier.

    Args:
        graph: the classifier.
        output: its scores.
        tensor: the bottleneck, where the caller knows it.

    Raises:
        UsageError: no layer with weights is near the output.
        GraphError: there is no such tensor.
    """
    if tensor is not None:
        graph.producer(tensor)
        return Cut(canonical(tensor), "")
    layer = _last_layer(graph, node_name(output))
    if layer is None:
        raise UsageError(
            f"it is not clear where to cut: near '{node_name(output)}' is no layer with weights of its own",
            hint=f"name the tensor that the new layer takes with {option('bottleneck_tensor')}",
        )
    return Cut(canonical(layer.data_inputs[0]), layer.name)


def output_of(graph: Graph) -> str:
    """The scores of a classifier: its preset's, or what nothing consumes.

    Raises:
        UsageError: that is not clear.
    """
    from pocketgraph.apps.picture_model import find_output

    preset = presets.recognise(graph)
    return preset.output_layer if preset is not None else find_output(graph)


def _last_layer(graph: Graph, output: str) -> Node | None:
    """The last product with constants on the way to an output."""
    waiting, seen = [output], set[str]()
    constant = _constants(graph)
    while waiting and len(seen) < FAR:
        node = graph[waiting.pop(0)]
        if node.name in seen:
            continue
        seen.add(node.name)
        data = node.data_inputs
        if node.op in LAYERS and len(data) == 2 and node_name(data[1]) in constant:
            return node
        waiting.extend(node_name(ref) for ref in data if node_name(ref) not in constant)
    return None


def _constants(graph: Graph) -> set[str]:
    """Nodes that depend on constants alone."""
    found: set[str] = set()
    fed = ops_with("placeholder") | ops_with("random")
    for node in topological(graph, partial=True):
        if node.op == "Const" or (
            node.data_inputs and node.op not in fed and all(node_name(ref) in found for ref in node.data_inputs)
        ):
            found.add(node.name)
    return found
