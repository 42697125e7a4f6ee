"""What a page feeds and reads as int32 where LiteRT.js lacks the type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pocketgraph.apps.projects.project import Project
from pocketgraph.apps.shipping.shipment import PAGE_TYPES
from pocketgraph.errors import UsageError, option
from pocketgraph.exporting.model import Port
from pocketgraph.graph import Graph, Node, Shape, canonical, node_name
from pocketgraph.graph.dtype import INT8, INT32
from pocketgraph.graph.edit import free_name
from pocketgraph.graph.tensor import Array


def cast_for_page(project: Project) -> None:
    """Casts between int32, which the page has, and what the model takes and gives that the page has not.

    Args:
        project: it gets another model and golden arrays of int32, and a note.

    Raises:
        UsageError: the model is a finished file, whose types stay.
    """
    others = [port for port in (*project.inputs, *project.outputs) if port.dtype not in PAGE_TYPES]
    if not others:
        return
    if project.source:
        is_coded = others[0].dtype is INT8
        raise UsageError(
            f"LiteRT.js feeds and reads no {others[0].dtype.name}, as '{others[0].name}' is",
            where=project.source,
            hint=f"make the file with {option('io')}=float or {option('io')}=uint8" if is_coded
            else "give the graph that the file was made from, which gets int32 here",
        )  # fmt: skip
    graph, entry = project.model.graph, project.model.main
    sides: list[tuple[Port, ...]] = []
    for ports, change in ((entry.inputs, _fed_narrow), (entry.outputs, _read_narrow)):
        changed = []
        for port in ports:
            graph, port = (graph, port) if port.dtype in PAGE_TYPES else change(graph, port)
            changed.append(port)
        sides.append(tuple(changed))
    inputs, outputs = sides
    narrow = replace(entry, inputs=inputs, outputs=outputs)
    project.model = replace(project.model, graph=graph, entries=(narrow,))
    given, wanted = project.golden
    project.golden = _narrow(given, inputs), _narrow(wanted, outputs)
    types = " and ".join(dict.fromkeys(port.dtype.name for port in others))
    project.notes.append(f"{', '.join(port.name for port in others)}: int32 on the page, as LiteRT.js has no {types}")


def _fed_narrow(graph: Graph, port: Port) -> tuple[Graph, Port]:
    """The graph with a placeholder of int32, and a cast of it, in a tensor's place."""
    tensor = canonical(port.tensor)
    name, own = (free_name(f"{node_name(tensor)}/{kind}", graph.nodes) for kind in ("int32", port.dtype.name))
    shape = Shape(None if port.shape is None else list(port.shape))
    fed = Node(name, "Placeholder", (), {"dtype": INT32, "shape": shape})
    cast = Node(own, "Cast", (name,), {"SrcT": INT32, "DstT": port.dtype, "Truncate": False})

    def rewired(node: Node) -> Node:
        refs = [own if not ref.startswith("^") and canonical(ref) == tensor else ref for ref in node.inputs]
        return node if refs == list(node.inputs) else node.replace(inputs=refs)

    return graph.replace([*map(rewired, graph), fed, cast]), replace(port, tensor=f"{name}:0", dtype=INT32)


def _read_narrow(graph: Graph, port: Port) -> tuple[Graph, Port]:
    """The graph with a cast of a result to int32."""
    tensor = canonical(port.tensor)
    cast = Node(free_name(f"{node_name(tensor)}/as_int32", graph.nodes), "Cast", (tensor,),
                {"SrcT": port.dtype, "DstT": INT32, "Truncate": False})  # fmt: skip
    return graph.replace([*graph, cast]), replace(port, tensor=f"{cast.name}:0", dtype=INT32)


def _narrow(arrays: Mapping[str, Array], ports: Sequence[Port]) -> dict[str, Array]:
    return {port.name: arrays[port.name].astype(port.dtype.numpy, copy=False) for port in ports}
