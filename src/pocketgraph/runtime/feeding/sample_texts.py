"""Made-up texts for inputs of strings that a graph looks up: words that its tables know."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Graph, node_name
from pocketgraph.graph.op_traits import TABLE_FILLERS, ops_with
from pocketgraph.graph.order import dependents

SPLITTERS = ("StringSplit", "RegexSplit", "UnicodeDecode")
HASHES = "StringToHashBucket"
ANY_WORDS = b"the quick brown fox jumps over the lazy dog".split()
"""Where a graph hashes words, whichever they are, or its tables are filled from files."""
FEWEST, MOST = 3, 8  # words of a text


def sample_text(graph: Graph, name: str, rng: np.random.Generator) -> bytes:
    """A text for the string input ``name``: some words where the graph splits it, else one; empty where it neither
    looks words up nor hashes them."""
    lookups = ops_with("table_lookup")
    read = list(dependents(graph, [name], lambda node: node.op in lookups or node.op.startswith(HASHES)))
    if not any(node.op in lookups or node.op.startswith(HASHES) for node in read):
        return b""
    tables = {node_name(node.data_inputs[0]) for node in read if node.op in lookups and node.data_inputs}
    words = [word for table in sorted(tables) for word in _words(graph, table)] or ANY_WORDS
    count = int(rng.integers(FEWEST, MOST)) if any(node.op.startswith(SPLITTERS) for node in read) else 1
    return b" ".join(words[at] for at in rng.integers(0, len(words), count))


def _words(graph: Graph, table: str) -> list[bytes]:
    """The words that a table is filled with, where they are constants, without empty ones."""
    for user in graph.consumers.get(table, ()):
        if user.op.startswith(TABLE_FILLERS) and len(user.data_inputs) == 3:
            keys = graph.constant(user.data_inputs[1])
            values = keys.numpy() if keys is not None else np.empty(0)
            if values.dtype.kind == "O":
                return [word for word in values.reshape(-1).tolist() if word.strip()]
    return []
