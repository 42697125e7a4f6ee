"""Integers of 64 bits as ones of 32 in what a page feeds and reads: LiteRT.js has no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pocketgraph.apps.projects.project import Project
from pocketgraph.errors import UsageError
from pocketgraph.exporting.model import Port
from pocketgraph.graph import Graph, Node, Shape, canonical, node_name
from pocketgraph.graph.dtype import INT32, INT64
from pocketgraph.graph.edit import free_name
from pocketgraph.graph.tensor import Array


def narrow_integers(project: Project) -> None:
    """Casts between what the page has, int32, and what the model takes and gives, int64.

    Args:
        project: it gets another model and golden arrays of int32, and a note.

    Raises:
        UsageError: the model is a finished file, whose types stay.
    """
    wide = [port.name for port in (*project.inputs, *project.outputs) if port.dtype is INT64]
    if not wide:
        return
    if project.source:
        raise UsageError(
            f"LiteRT.js feeds and reads no int64, as '{wide[0]}' is",
            where=project.source,
            hint="give the graph that the file was made from, which gets int32 here",
        )
    graph, entry = project.model.graph, project.model.main
    sides: list[tuple[Port, ...]] = []
    for ports, change in ((entry.inputs, _fed_narrow), (entry.outputs, _read_narrow)):
        changed = []
        for port in ports:
            graph, port = change(graph, port) if port.dtype is INT64 else (graph, port)
            changed.append(port)
        sides.append(tuple(changed))
    inputs, outputs = sides
    narrow = replace(entry, inputs=inputs, outputs=outputs)
    project.model = replace(project.model, graph=graph, entries=(narrow,))
    given, wanted = project.golden
    project.golden = _narrow(given, inputs), _narrow(wanted, outputs)
    project.notes.append(f"{', '.join(wide)}: int32 on the page, as LiteRT.js has no int64")


def _fed_narrow(graph: Graph, port: Port) -> tuple[Graph, Port]:
    """The graph with a placeholder of int32, and a cast of it, in a tensor's place."""
    tensor = canonical(port.tensor)
    name, wide = (free_name(f"{node_name(tensor)}/{kind}", graph.nodes) for kind in ("int32", "int64"))
    shape = Shape(None if port.shape is None else list(port.shape))
    fed = Node(name, "Placeholder", (), {"dtype": INT32, "shape": shape})
    cast = Node(wide, "Cast", (name,), {"SrcT": INT32, "DstT": INT64, "Truncate": False})

    def rewired(node: Node) -> Node:
        refs = [wide if not ref.startswith("^") and canonical(ref) == tensor else ref for ref in node.inputs]
        return node if refs == list(node.inputs) else node.replace(inputs=refs)

    return graph.replace([*map(rewired, graph), fed, cast]), replace(port, tensor=f"{name}:0", dtype=INT32)


def _read_narrow(graph: Graph, port: Port) -> tuple[Graph, Port]:
    """The graph with a cast of a result to int32."""
    tensor = canonical(port.tensor)
    cast = Node(free_name(f"{node_name(tensor)}/as_int32", graph.nodes), "Cast", (tensor,),
                {"SrcT": INT64, "DstT": INT32, "Truncate": False})  # fmt: skip
    return graph.replace([*graph, cast]), replace(port, tensor=f"{cast.name}:0", dtype=INT32)


def _narrow(arrays: Mapping[str, Array], ports: Sequence[Port]) -> dict[str, Array]:
    return {port.name: arrays[port.name].astype(port.dtype.numpy, copy=False) for port in ports}
