"""Which outputs of a model ship: all that are numbers, what it is judged by first."""

from __future__ import annotations

from pocketgraph.graph import Graph, canonical
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.entry_points import main_outputs
from pocketgraph.graph.node import parse_ref
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.shapes import infer
from pocketgraph.runtime.feeding.made_up_feeds import sample_fetches


def whole_model(graph: Graph) -> list[str]:
    """All outputs of the model; where nothing states them, the likeliest one and those that are no part of it."""
    stated = graph.outputs or any(not key.startswith("__") for key in graph.signatures)
    guessed = [] if stated else main_outputs(graph)
    return guessed or list(sample_fetches(graph))[: None if stated else 1]


def numbers_and_texts(graph: Graph, names: list[str]) -> tuple[list[str], list[str]]:
    """The outputs that are numbers, what the model is judged by first (shares, then other floats); and the texts."""
    inferred = infer(graph)

    def order(name: str) -> int:
        dtype = inferred.dtype(canonical(name))
        node = graph.producer(name)
        while node.op in ops_with("passes", "view") and node.data_inputs:
            node = graph.producer(node.data_inputs[0])
        return 2 if dtype is None or not dtype.is_floating else 0 if node.op in ("Softmax", "Sigmoid") else 1

    texts = [name for name in names if inferred.dtype(canonical(name)) is STRING]
    left = sorted((name for name in names if name not in texts), key=order)
    return ([_apart(graph, name) for name in left], texts) if texts and left else (left or names, [])


def _apart(graph: Graph, name: str) -> str:
    """A tensor without the texts that pass through the same node."""
    node, port = graph.producer(name), parse_ref(canonical(name)).port
    return canonical(node.data_inputs[port]) if node.op == "IdentityN" else name
