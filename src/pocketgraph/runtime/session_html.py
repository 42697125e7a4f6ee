"""What a session shows of itself, in a line and in a notebook: what to feed, and what to fetch."""

from __future__ import annotations

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Shape
from pocketgraph.pages.document import fragment
from pocketgraph.pages.parts import Cell, Column, Row, cards, paragraph, table, words
from pocketgraph.pages.quantities import counted, listed
from pocketgraph.runtime.feeding.default_tensors import default_fetches
from pocketgraph.runtime.tensor_specs import GraphSpecs, TensorSpec

MOST = 40  # inputs, and outputs
COLUMNS = (Column("tensor"), Column("to", is_words=True), Column("type", is_words=True), Column("shape", is_words=True))


def as_text(graph: Graph, engine: str | None, threads: int) -> str:
    """One line, as in ``<Session of 9 nodes: x float[?,8] -> y; LiteRT where it can, 2 threads>``; see ``as_html``."""
    where = f"{engine or 'LiteRT where it can'}, {threads} thread{'s' * (threads != 1)}"
    try:
        fetches = default_fetches(graph)
        specs = GraphSpecs(graph, inferring=False).inputs.values()
    except PocketgraphError:
        return f"<Session of {counted(len(graph), 'node')}, which have no likely outputs; {where}>"
    feeds = [str(spec) if spec.dtype is not None else spec.name for spec in specs]
    ways = f"{listed(feeds, 4) or 'nothing'} -> {listed(fetches, 4)}"
    return f"<Session of {counted(len(graph), 'node')}: {ways}; {where}>"


def as_html(graph: Graph, engine: str | None, threads: int) -> str:
    """A table of what goes in and out, however large the graph.

    Args:
        graph: the model.
        engine: the only engine that may run it; None for the best for each part.
        threads: how many it computes with.
    """
    try:
        specs = GraphSpecs(graph)
        feeds, fetches = specs.inputs, specs.outputs
    except PocketgraphError as error:
        return fragment(paragraph(f"Session of {counted(len(graph), 'node')}: {error}"))

    def row(spec: TensorSpec, to: str) -> Row:
        dtype, shape = spec.dtype.name if spec.dtype is not None else "?", str(Shape(spec.shape))
        return Row([words(spec.name[:200]), words(to), Cell(dtype), Cell(shape)])

    rows = [row(spec, "feed") for spec in [*feeds.values()][:MOST]]
    rows += [row(spec, "fetch") for spec in [*fetches.values()][:MOST]]
    figures = [
        (f"{len(graph):,}", "nodes"),
        (engine or "LiteRT where it can", "engine"),
        (str(threads), "thread" if threads == 1 else "threads"),
    ]
    return fragment(cards(figures), table(COLUMNS, rows) if rows else "")
