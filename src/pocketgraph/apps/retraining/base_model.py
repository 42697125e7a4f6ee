"""Where a model is cut: what its last layer with weights takes tells things apart, whatever it was trained for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pocketgraph.apps.picture_model import SHARES, SHARES_OF_TWO, PictureModel, find_output
from pocketgraph.apps.retraining.retrained_graph import BOTTLENECK
from pocketgraph.datasets import presets
from pocketgraph.errors import UsageError, did_you_mean, option
from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.op_traits import CONTRACTIONS, CONVOLUTIONS, PLACEHOLDERS, RANDOM
from pocketgraph.graph.order import reachable, topological

POOLS = frozenset({"Mean", "AvgPool", "Max", "MaxPool"})
"""Not a trait: what makes one vector of a picture's places."""
FAR = 24
"""Nodes between the output and the last layer with weights, at most."""


@dataclass(frozen=True)
class Cut:
    """Where a model is cut.

    Attributes:
        tensor: what the head takes.
        layer: the node of the old last layer; "" where none is replaced, as the caller named the tensor or
            the model gives features.
    """

    tensor: str
    layer: str


def found_cut(graph: Graph, output: str, tensor: str | None = None) -> Cut:
    """The cut of a classifier.

    Args:
        graph: the classifier.
        output: its scores.
        tensor: the bottleneck, where the caller knows it.

    A model whose answer is the average of a convolution's places, without shares of classes, gives features, as
    modules of TensorFlow Hub do: the new layer takes its answer.

    Raises:
        UsageError: no layer with weights is near the output, or there is no such tensor.
        GraphError: there is no such output.
    """
    if tensor is not None:
        if node_name(tensor) not in graph:
            hint = f"leave {option('bottleneck_tensor')} out, and what the last layer takes is found"
            raise UsageError(f"the graph has no node '{tensor}'", hint=did_you_mean(tensor, graph.nodes) or hint)
        return Cut(_before_bottleneck(graph, tensor), "")
    end = (graph.find_producer(output, ("IdentityN",)) or graph.producer(output)).name
    layer = _last_layer(graph, end)
    if layer is None:
        raise UsageError(
            f"it is not clear where to cut: near '{node_name(output)}' is no layer with weights of its own",
            hint=f"name the tensor that the new layer takes with {option('bottleneck_tensor')}",
        )
    if layer.op in CONVOLUTIONS and _is_pooled(graph, layer, end):
        return Cut(canonical(output), "")
    return Cut(_before_bottleneck(graph, layer.data_inputs[0]), layer.name)


def _before_bottleneck(graph: Graph, tensor: str) -> str:
    """A tensor; what goes into the place where features can be fed where it is that of a model retrained here."""
    return canonical(graph[BOTTLENECK].inputs[0] if node_name(tensor) == BOTTLENECK else tensor)


def output_of(graph: Graph) -> str:
    """The scores of a classifier: its preset's, or what nothing consumes.

    Raises:
        UsageError: that is not clear.
    """
    preset = presets.recognise(graph)
    return preset.output_layer if preset is not None else find_output(graph)


def cut_model(graph: Graph, tensor: str | None = None, **how: Any) -> tuple[Cut, PictureModel]:
    """What gives a picture's features: the model up to its cut.

    Args:
        graph: the classifier.
        tensor: the cut, where the caller knows it.
        how: as in PictureModel; the preset is that of the layers' names.

    Raises:
        UsageError: the cut is not clear, or the graph takes no pictures.
        GraphError: there is no such output.
    """
    cut = found_cut(graph, output_of(graph) if tensor is None else tensor, tensor)
    preset = presets.recognise(graph)
    if how.get("preset") is None and how.get("input_layer") is None and preset is not None:
        how["preset"] = preset.name
    return cut, PictureModel(graph, [cut.tensor], **how)


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
        if node.op in CONTRACTIONS and len(data) == 2 and node_name(data[1]) in constant:
            return node
        waiting.extend(node_name(ref) for ref in data if node_name(ref) not in constant)
    return None


def _is_pooled(graph: Graph, layer: Node, output: str) -> bool:
    """Whether the way from a layer to an output makes one vector of all places, and no shares of classes."""
    between = reachable(graph, [output], data_only=True) - reachable(graph, [layer.name], data_only=True)
    ops = {graph[name].op for name in between}
    return not ops.isdisjoint(POOLS) and ops.isdisjoint({*SHARES, *SHARES_OF_TWO})


def _constants(graph: Graph) -> set[str]:
    """Nodes that depend on constants alone."""
    found: set[str] = set()
    fed = PLACEHOLDERS | RANDOM
    for node in topological(graph, partial=True):
        if node.op == "Const" or (
            node.data_inputs and node.op not in fed and all(node_name(ref) in found for ref in node.data_inputs)
        ):
            found.add(node.name)
    return found
