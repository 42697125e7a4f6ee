"""Why a file is larger than its weights: many operations, such as those of loops that are written out step by step."""

from __future__ import annotations

import os

from pocketgraph.errors import PocketgraphError
from pocketgraph.formats import load
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.pages.quantities import bytes_text

MANY_OPERATIONS = 100
LARGE_SHARE = 0.3  # of the file, from which what describes operations is told of


def size_cause(model: str, source: str | None = None) -> str:
    """What takes most of a LiteRT file beside its weights, in a sentence; "" where nothing does.

    Args:
        model: the file.
        source: the graph that it was made of, whose loops are written out in it.
    """
    try:
        graph = load(model)
    except PocketgraphError:
        return ""
    operations = sum(node.op.startswith("tfl.") for node in graph)
    weights = sum(node.tensor.nbytes for node in graph if node.op == "Const")
    rest = os.path.getsize(model) - weights
    if operations < MANY_OPERATIONS or rest < LARGE_SHARE * os.path.getsize(model):
        return ""
    described = f"{bytes_text(rest)} of it describe its {operations} operations"
    loops = ops_with("enter") | ops_with("loop")
    if source is None or not any(node.op in loops for node in load(source)):
        return f"{described}, {bytes_text(weights)} are weights"
    return (
        f"{described}, as loops are written out step by step; weights are in it once, {bytes_text(weights)}. "
        "Fewer steps make it smaller"
    )
