"""Writes a model where TensorBoard finds it: the graph with inferred shapes, and what each node took."""

from __future__ import annotations

import os

from pocketgraph.formats import to_bytes
from pocketgraph.formats.event_file import write_event_file
from pocketgraph.formats.run_records import run_metadata
from pocketgraph.graph import Graph, Node
from pocketgraph.graph.model_file_graph import is_model_file
from pocketgraph.inspect.output_shapes import with_shapes
from pocketgraph.inspect.tracing import DEVICE, node_stats, without_weights
from pocketgraph.runtime import StepTrace

PREFIX = "import/"
"""Before every name, as the original tool imports the graph."""


def write_for_tensorboard(graph: Graph, folder: str | os.PathLike[str], trace: StepTrace | None = None) -> None:
    """Writes an event file with the graph, every name under ``import/``, and an ``_output_shapes`` for each node.

    Differs from the original: values of larger constants are left out, which no picture shows.

    Args:
        graph: any graph, that of a LiteRT file too.
        folder: TensorBoard's ``--logdir``; made when it is not there.
        trace: a run of the graph, which TensorBoard lists under "Session runs".

    Raises:
        PocketgraphError: the file cannot be written.
    """
    shown = imported(with_shapes(without_weights(graph)))
    if is_model_file(shown):
        shown = shown.replace(extra=b"")
    runs = {}
    if trace is not None:
        named = StepTrace([node._replace(name=f"{PREFIX}{node.name}") for node in trace.nodes], trace.total_us)
        runs["run"] = run_metadata({DEVICE: node_stats(named, shown)})
    write_event_file(folder, to_bytes(shown), runs)


def imported(graph: Graph) -> Graph:
    """The graph with every node's name, and what refers to it, under ``import/``."""

    def moved(node: Node) -> Node:
        inputs = [f"^{PREFIX}{ref[1:]}" if ref.startswith("^") else f"{PREFIX}{ref}" for ref in node.inputs]
        attrs = dict(node.attrs)
        places = attrs.get("_class")
        if isinstance(places, tuple):
            attrs["_class"] = tuple(
                place.replace(b"loc:@", b"loc:@" + PREFIX.encode(), 1) if isinstance(place, bytes) else place
                for place in places
            )  # fmt: skip
        return node.replace(name=f"{PREFIX}{node.name}", inputs=inputs, attrs=attrs)

    return graph.replace(map(moved, graph))
