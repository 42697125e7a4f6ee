"""A graph cut behind what a device cannot run: placeholders where that part ends."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pocketgraph.graph import DType, Graph, Node, Shape, canonical, node_name
from pocketgraph.graph.node import parse_ref


def behind(
    graph: Graph,
    cuts: Mapping[str, tuple[DType, tuple[int | None, ...] | None]],
    front: Collection[str] = (),
    *,
    is_alone: bool = True,
) -> Graph:
    """The graph with placeholders in the place of some tensors.

    Other nodes may wait for what is cut off (a call for the lookups in it, constants that quantize_nodes makes), which
    must not make that part run when what it makes is fed.

    ::

        ids = LookupTableFindV2(table, words, none)       ids = Placeholder(dtype=int64, shape=[1,24])
        y = GatherV2(embedding, ids, axis, ^ids)    ->    y = GatherV2(embedding, ids, axis)

    Args:
        cuts: type and shape of each tensor, by name, None where a size or all of it is open. A node's first result
            keeps the name; others become ``NODE_PORT``, or the next name that is free.
        front: the nodes that are cut off, for which nothing waits any more.
        is_alone: see ``tensor_name``.
    """
    made: dict[str, Node] = {}
    renamed: dict[str, str] = {}
    for tensor, (dtype, shape) in cuts.items():
        name, port, _ = parse_ref(canonical(tensor))
        new = tensor_name(graph, tensor, is_alone)
        renamed[f"{name}:{port}"] = new
        made[new] = Node(new, "Placeholder", (), {"dtype": dtype, "shape": Shape(shape)})
    gone = {*front, *(name for name in made if name in graph)}

    def rewired(node: Node) -> Node:
        inputs = [
            ref if ref.startswith("^") else renamed.get(canonical(ref), ref)
            for ref in node.inputs
            if not (ref.startswith("^") and ref[1:] in gone)
        ]
        return node if inputs == list(node.inputs) else node.replace(inputs=inputs)

    nodes = [made[node.name] if node.name in made else rewired(node) for node in graph]
    return graph.replace([*nodes, *(node for name, node in made.items() if name not in graph)])


def tensor_name(graph: Graph, tensor: str, is_alone: bool = True) -> str:
    """The name of the placeholder in a tensor's place; without ``is_alone`` a first result gets a number, too."""
    name, port, _ = parse_ref(canonical(tensor))
    if is_alone and not port:
        return node_name(name)
    new = f"{name}_{port}"
    while new in graph:
        new += "_cut"
    return new
