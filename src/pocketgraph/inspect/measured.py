"""Times a model's nodes on made-up inputs, for pictures that are coloured by time."""

from __future__ import annotations

from pocketgraph.graph import Graph
from pocketgraph.runtime import Session, StepTrace
from pocketgraph.runtime.samples import sample_feeds, sample_fetches


def measured(model: str) -> tuple[Graph, StepTrace]:
    """The graph of a model file, and the times of the nodes in its second run on random inputs.

    Open sizes are 1, those of pictures 224; the outputs are the likely ones.

    Raises:
        FormatError: the file is no model.
        UsageError: inputs do not say their types or shapes, or there is no output.
        RunError: it does not run.
    """
    with Session(model) as session:
        graph = session.graph
        fetches = list(sample_fetches(graph))
        feeds = sample_feeds(graph, fetches)
        session.profile(fetches, feeds)  # the first run plans and compiles
        return graph, session.profile(fetches, feeds)
