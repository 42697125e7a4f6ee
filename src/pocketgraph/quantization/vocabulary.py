"""The words that a graph's lookup tables know."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from pocketgraph.graph import Graph, node_name
from pocketgraph.graph.dtype import STRING

FILLERS = ("InitializeTable", "LookupTableImport")
SPOKEN = "the quick brown fox jumps over the lazy dog again"
"""Where a graph knows no words."""
MOST_WORDS = 12  # of a made-up text


@dataclass(frozen=True)
class Vocabulary:
    """A lookup table's words.

    Attributes:
        table: the node of the table.
        words: in the order of their numbers.
        numbers: what each is looked up as.
    """

    table: str
    words: tuple[str, ...]
    numbers: tuple[int, ...]

    @property
    def first(self) -> int | None:
        """The number of the first word where the others count up from it; else None."""
        start = self.numbers[0]
        return start if self.numbers == tuple(range(start, start + len(self.numbers))) else None


def vocabularies(graph: Graph, nodes: Collection[str] | None = None) -> Iterator[Vocabulary]:
    """The tables from words to numbers whose contents are in the graph.

    Args:
        graph: the graph.
        nodes: only tables that one of these reads; by default all.
    """
    for node in graph:
        if not node.op.startswith(FILLERS) or len(node.data_inputs) != 3:
            continue
        table, keys, values = node.data_inputs
        if nodes is not None and not any(user.name in nodes for user in graph.consumers.get(node_name(table), ())):
            continue
        words, numbers = graph.constant(keys), graph.constant(values)
        if words is None or numbers is None or words.dtype is not STRING or numbers.dtype is STRING:
            continue
        listed = [word.decode("utf-8", "replace") for word in words.numpy().reshape(-1)]
        order = np.argsort(numbers.numpy().reshape(-1), kind="stable")
        if len(listed):
            yield Vocabulary(
                node_name(table),
                tuple(listed[at] for at in order),
                tuple(int(number) for number in numbers.numpy().reshape(-1)[order]),
            )


def made_up_texts(graph: Graph, count: int, seed: int = 0) -> list[str]:
    """Texts of the words that the graph knows, the same for the same seed; each of another length."""
    words = [word for found in vocabularies(graph) for word in found.words if word.strip()] or SPOKEN.split()
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(words, MOST_WORDS - at % (MOST_WORDS - 1))) for at in range(count)]
