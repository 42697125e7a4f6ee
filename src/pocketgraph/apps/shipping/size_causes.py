"""Why a file is larger than its weights: many operations, as of loops that are written out step by step."""

from __future__ import annotations

import os

from pocketgraph.errors import PocketgraphError
from pocketgraph.formats import load
from pocketgraph.pages.quantities import bytes_text

MANY_OPERATIONS = 100
LARGE_SHARE = 0.3  # of the file, from which what describes operations is told of


def size_cause(model: str) -> str:
    """What takes most of a LiteRT file beside its weights, in a sentence; "" where nothing does.

    Args:
        model: the file.
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
    return (
        f"{bytes_text(rest)} of it describe its {operations} operations, as loops are written out step by step; "
        f"weights are in it once, {bytes_text(weights)}. Fewer steps make it smaller"
    )
