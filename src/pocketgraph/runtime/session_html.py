"""What a notebook shows of a session: what to feed, what to fetch, and how to ask for it."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph
from pocketgraph.kernels.shapes import infer
from pocketgraph.pages.document import fragment
from pocketgraph.pages.parts import Cell, Column, Row, cards, paragraph, table, words
from pocketgraph.runtime.samples import sample_fetches, sample_inputs

MOST = 40  # inputs, and outputs
LARGE = 20_000  # nodes; of more, shapes of outputs are not worked out
COLUMNS = (Column("tensor"), Column("to", is_words=True), Column("type", is_words=True), Column("shape", is_words=True))


def as_html(graph: Graph, engine: str | None, threads: int) -> str:
    """A table of what goes in and out, however large the graph.

    Args:
        graph: the model.
        engine: the only engine that may run it; None for the best for each part.
        threads: how many it computes with.
    """
    try:
        fetches: Sequence[str] = sample_fetches(graph)
        feeds = list(sample_inputs(graph, fetches))
    except PocketgraphError as error:
        return fragment(paragraph(f"Session of {len(graph):,} nodes: {error}"))
    inferred = infer(graph) if len(graph) <= LARGE else None

    def row(name: str, to: str) -> Row:
        ref = name if ":" in name else f"{name}:0"
        dtype = inferred.dtype(ref) if inferred is not None else None
        shape = str(inferred.shape(ref)) if inferred is not None else ""
        return Row([words(name[:200]), words(to), Cell(dtype.name if dtype is not None else "?"), Cell(shape)])

    rows = [row(name, "feed") for name in feeds[:MOST]] + [row(name, "fetch") for name in fetches[:MOST]]
    figures = [
        (f"{len(graph):,}", "nodes"),
        (engine or "LiteRT where it can", "engine"),
        (str(threads), "thread" if threads == 1 else "threads"),
    ]
    return fragment(cards(figures), table(COLUMNS, rows) if rows else "")
