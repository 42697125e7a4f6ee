"""The words that a graph's lookup tables know."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.op_traits import SELECTS, STATE_OR_RANDOM, TABLE_FILLERS
from pocketgraph.graph.order import reachable

SPOKEN = "the quick brown fox jumps over the lazy dog again"
"""Where a graph knows no words."""
MOST_WORDS = 12  # of a made-up text


@dataclass(frozen=True)
class Vocabulary:
    """A lookup table's words, or the numbers in their place.

    Attributes:
        table: the node of the table.
        words: in the order of their numbers.
        numbers: what each is looked up as.
        kind: what is looked up, ``word`` or ``number``.
    """

    table: str
    words: tuple[str, ...]
    numbers: tuple[int, ...]
    kind: str = "word"

    @property
    def first(self) -> int | None:
        """The number of the first word where the others count up from it; else None."""
        start = self.numbers[0]
        return start if self.numbers == tuple(range(start, start + len(self.numbers))) else None


def vocabularies(graph: Graph, nodes: Collection[str] | None = None) -> Iterator[Vocabulary]:
    """The tables from words or whole numbers to numbers whose contents are in the graph.

    Args:
        nodes: only tables that one of these reads; by default all.

    Yields:
        Each table once, though several nodes may fill it.
    """
    seen: set[str] = set()
    for node in graph:
        if not node.op.startswith(TABLE_FILLERS) or len(node.data_inputs) != 3:
            continue
        table, keys, values = node.data_inputs
        if nodes is not None and not any(user.name in nodes for user in graph.consumers.get(node_name(table), ())):
            continue
        if node_name(table) in seen:
            continue
        words, numbers = _value(graph, keys), _value(graph, values)
        if words is None or numbers is None or words.dtype.kind not in "Oiu" or numbers.dtype.kind not in "iu":
            continue
        if len(words) != len(numbers) or not len(words):
            continue
        seen.add(node_name(table))
        order = np.argsort(numbers, kind="stable")
        yield Vocabulary(
            node_name(table),
            tuple(word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word) for word in words[order]),
            tuple(int(number) for number in numbers[order]),
            "word" if words.dtype.kind == "O" else "number",
        )


def numbered_by_hash(graph: Graph, lookup: Node) -> tuple[Node, Node] | None:
    """What numbers the words by hash that a lookup does not find, behind those of the table, and what picks one of both
    numbers; None where nothing does.

    ``SelectV2(NotEqual(found, none), found, Add(bucket, LookupTableSizeV2(table)))``
    """
    table = node_name(lookup.data_inputs[0])
    for user in graph.consumers.get(lookup.name, ()):
        if user.op not in SELECTS or node_name(user.data_inputs[1]) != lookup.name:
            continue
        terms = [graph.producer(ref) for ref in graph.producer(user.data_inputs[2]).data_inputs]
        sizes = [term for term in terms if term.op.startswith("LookupTableSize")]
        hashed = [term for term in terms if term.op.startswith("StringToHashBucket")]
        if len(sizes) == len(hashed) == 1 and node_name(sizes[0].data_inputs[0]) == table:
            return hashed[0], user
    return None


def _value(graph: Graph, ref: str) -> np.ndarray[Any, Any] | None:
    """What a tensor always is, in a row: a constant, or what follows from some; None for others."""
    from pocketgraph.runtime import Session

    constant = graph.constant(ref)
    if constant is not None:
        return np.asarray(constant.numpy()).reshape(-1)
    if any(
        graph[name].op in STATE_OR_RANDOM or graph[name].op.startswith("Placeholder")
        for name in reachable(graph, [ref])
    ):
        return None
    try:
        with Session(graph) as session:
            return np.asarray(session.run([ref])[0]).reshape(-1)
    except PocketgraphError:
        return None


def synthetic_texts(graph: Graph, count: int, seed: int = 0) -> list[str]:
    """Texts of the words that the graph knows, the same for the same seed; each of another length."""
    known = [found for found in vocabularies(graph) if found.kind == "word"]
    words = [word for found in known for word in found.words if word.strip()] or SPOKEN.split()
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(words, MOST_WORDS - at % (MOST_WORDS - 1))) for at in range(count)]
