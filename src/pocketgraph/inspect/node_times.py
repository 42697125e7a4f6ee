"""Times a model's nodes on made-up inputs, for pictures that are coloured by time."""

from __future__ import annotations

import os
from typing import NamedTuple

from pocketgraph.errors import PocketgraphError
from pocketgraph.freezing.ready_models import Tell, for_session
from pocketgraph.graph import Graph
from pocketgraph.runtime import Session, StepTrace
from pocketgraph.runtime.description import Description
from pocketgraph.runtime.feeding.default_tensors import default_fetches
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds


class Measured(NamedTuple):
    """A model's graph, the times of its nodes in a run, and what ran where, where that can be told."""

    graph: Graph
    trace: StepTrace
    description: Description | None


def measured(model: Graph | str | os.PathLike[str], notify: Tell | None = None) -> Measured:
    """The graph of a model, and the times of the nodes in its second run on random inputs.

    Open sizes are 1, those of pictures 224; the outputs are the likely ones. ``notify`` is told how a training was
    frozen.

    Raises:
        FormatError: the file is no model.
        UsageError: inputs do not say their types or shapes, or there is no output.
        RunError: it does not run.
    """
    with Session(model if isinstance(model, Graph) else for_session(model, notify=notify)) as session:
        graph = session.graph
        fetches = list(default_fetches(graph))
        feeds = synthetic_feeds(graph, fetches)
        session.profile(fetches, feeds)  # the first run plans and compiles
        trace = session.profile(fetches, feeds)
        try:
            description = session.plan(fetches, feeds)
        except PocketgraphError:
            description = None
        return Measured(graph, trace, description)
