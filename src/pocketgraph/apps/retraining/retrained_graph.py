"""The graph that comes out: the base up to the cut, the place where features can be fed, and the new layer."""

from __future__ import annotations

import numpy as np

from pocketgraph.apps.retraining.softmax_head import Head
from pocketgraph.errors import UsageError, option
from pocketgraph.formats.meta_graph_writer import PREDICT, keyed
from pocketgraph.graph import Graph, Node, Shape, Signature, Tensor, canonical, node_name
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.graph.graph import DEFAULT_SIGNATURE
from pocketgraph.graph.order import reachable
from pocketgraph.runtime.feeding.default_tensors import needed_placeholders

BOTTLENECK = "input/BottleneckInputPlaceholder"
LAYER = "final_training_ops"


def with_head(graph: Graph, cut: str, head: Head, final: str, rank: int) -> Graph:
    """A classifier of the new classes, with the names that TensorFlow's retrain.py gives.

    Args:
        graph: the base.
        cut: the tensor that the head takes.
        head: weights [features, classes] and biases.
        final: the name of the scores.
        rank: how many axes the cut tensor has.

    Raises:
        UsageError: the base has a node of one of these names, before the cut.
    """
    kept = reachable(graph, [cut])
    size = len(head.weights)
    source = cut
    made = []
    if rank != 2:
        made += [
            Node(
                "input/shape", "Const", (), {"dtype": INT32, "value": Tensor.from_numpy(np.array([-1, size], np.int32))}
            ),
            Node("input/features", "Reshape", (cut, "input/shape"), {"T": FLOAT, "Tshape": INT32}),
        ]
        source = "input/features"
    weights, biases = f"{LAYER}/weights/final_weights", f"{LAYER}/biases/final_biases"
    product, added = f"{LAYER}/Wx_plus_b/MatMul", f"{LAYER}/Wx_plus_b/add"
    made += [
        Node(BOTTLENECK, "PlaceholderWithDefault", (source,), {"dtype": FLOAT, "shape": Shape((None, size))}),
        Node(weights, "Const", (), {"dtype": FLOAT, "value": Tensor.from_numpy(head.weights)}),
        Node(biases, "Const", (), {"dtype": FLOAT, "value": Tensor.from_numpy(head.biases)}),
        Node(product, "MatMul", (BOTTLENECK, weights), {"T": FLOAT, "transpose_a": False, "transpose_b": False}),
        Node(added, "Add", (product, biases), {"T": FLOAT}),
        Node(final, "Softmax", (added,), {"T": FLOAT}),
    ]
    taken = next((node.name for node in made if node.name in kept), None)
    if taken is not None:
        another = f"pass another {option('final_tensor_name')}"
        raise UsageError(
            f"the base has a node '{taken}' already, before the cut",
            hint=another if taken == final else "give the model that this one was made of",
        )
    before = [node for node in graph if node.name in kept]
    return graph.replace([*before, *made], outputs=(f"{final}:0",), signatures={})


def with_serving_signature(graph: Graph, *, takes_photos: bool) -> Graph:
    """A retrained graph with the signature of the SavedModel that retrain.py writes: ``image`` in, ``prediction`` out.
    What is no photo keeps the names of its placeholders.

    Args:
        graph: what ``with_head`` made.
        takes_photos: whether its input is a photo.
    """
    inputs = [name for name in needed_placeholders(graph, graph.outputs) if node_name(name) != BOTTLENECK]
    named = {"image": canonical(inputs[0])} if takes_photos and len(inputs) == 1 else keyed(inputs)
    return graph.replace(
        signatures={DEFAULT_SIGNATURE: Signature(named, {"prediction": canonical(graph.outputs[0])}, PREDICT)}
    )
