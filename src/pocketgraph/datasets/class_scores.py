"""The scores of classes that a graph's answer is picked from."""

from __future__ import annotations

from pocketgraph.graph import Graph, canonical
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.shapes import infer

_HANDS_ON = ops_with("passes", "view") | {"Cast"}
_PICK = "ArgMax"


def scores_picked_from(graph: Graph, output: str) -> str | None:
    """The tensor of scores whose largest one a graph gives as its answer; None for other outputs.

    Only where the scores are a row for each sample, [batch, classes]: those of each place of a picture are many times
    as large as the answer, and who picked there wants no scores.

    Args:
        graph: the graph.
        output: the tensor or node that gives the answer, such as int64 [batch].
    """
    node = graph.find_producer(output, _HANDS_ON)
    if node is None or node.op != _PICK:
        return None
    scores = canonical(node.data_inputs[0])
    inferred = infer(graph, outputs=[output])
    sizes, axis = inferred.shape(scores).dims, inferred.value(canonical(node.data_inputs[1]))
    is_row = sizes is not None and len(sizes) == 2 and sizes[1] != 1 and axis is not None and int(axis) in (1, -1)
    return scores.removesuffix(":0") if is_row else None


def picked_note(output: str, scores: str) -> str:
    """What to say where the scores are taken in place of the answer."""
    return f"'{output}' is the place of the largest of '{scores}', whose scores are taken"
