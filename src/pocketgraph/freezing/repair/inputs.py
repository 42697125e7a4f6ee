"""Queues, readers and iterators in front of the true input become placeholders."""

from __future__ import annotations

from collections.abc import Iterator

from pocketgraph.graph import DType, Graph, Node, Shape, node_name, opdefs, parse_ref
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.edit import rename_inputs
from pocketgraph.graph.order import descendants, reachable

_SOURCES = ("QueueDequeue", "IteratorGetNext", "ReaderRead", "Unstage", "StageGet", "BoundaryDequeue")
"""Not a trait: how the names of ops begin that feed training."""
_TYPES = ("component_types", "output_types", "dtypes")


def repaired(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """Cuts the input pipeline off where its batches come out.

    Given:   queue = FIFOQueueV2(component_types=[float, int64], shapes=[[8,8,1],[]])
             n = Const(int32 16)
             batch = QueueDequeueManyV2(queue, n, component_types=[float, int64])
             y = Relu(batch, T=float)
    Result:  batch = Placeholder(dtype=float, shape=[?,8,8,1])
             y = Relu(batch, T=float)

    Given:   it = IteratorV2(output_types=[float], output_shapes=[[?,8,8,1]])
             batch = IteratorGetNext(it, output_types=[float], output_shapes=[[?,8,8,1]])
             image = PlaceholderWithDefault(batch, dtype=float, shape=[?,8,8,1])
             y = Relu(image, T=float)
    Result:  image = Placeholder(dtype=float, shape=[?,8,8,1])
             y = Relu(image, T=float)
    """
    lines: dict[str, str] = {}
    sources = [node for node in graph if node.op.startswith(_SOURCES)]
    if not sources:
        return graph, lines
    begins = {node.name for node in sources}
    fed = begins | descendants(graph, begins)
    defaults: dict[str, Node] = {}
    for node in graph:
        if node.op == "PlaceholderWithDefault" and node.data_inputs and node_name(node.data_inputs[0]) in fed:
            dtype, shape = node.dtype("dtype"), node.shape() or Shape(None)
            defaults[node.name] = Node(node.name, "Placeholder", (), {"dtype": dtype, "shape": shape})
            lines[node.name] = (
                f"'{node.name}' had the input pipeline as its default; it is a placeholder {dtype.name}{shape}"
            )
    graph = graph.map_nodes(lambda node: defaults.get(node.name, node))
    # one source after the other, from the outputs on: what is in front of a source that was cut goes with it
    while True:
        needed = reachable(graph, graph.outputs) if graph.outputs else set(graph.nodes)
        left = [node for node in graph if node.name in needed and node.op.startswith(_SOURCES)]
        if not left:
            return graph, lines
        needed = {name for other in left if other.inputs for name in reachable(graph, other.inputs)}
        last = next((node for node in left if node.name not in needed), left[0])
        graph, cut = _cut(graph, last)
        lines |= cut


def _cut(graph: Graph, node: Node) -> tuple[Graph, dict[str, str]]:
    users = {parse_ref(ref).port for other in graph for ref in other.data_inputs if node_name(ref) == node.name}
    users |= {parse_ref(name).port for name in graph.outputs if node_name(name) == node.name}
    renames: dict[str, str] = {}
    placeholders: list[Node] = []
    lines = {}
    described = list(components(graph, node))
    for port in sorted(users):
        if port >= len(described):
            continue
        name, number = node.name, port
        while port and (name in graph or any(item.name == name for item in placeholders)):
            name, number = f"{node.name}_{number}", number + 1
        dtype, shape = described[port]
        placeholders.append(Node(name, "Placeholder", (), {"dtype": dtype, "shape": shape}))
        if port:
            renames[f"{node.name}:{port}"] = name
        lines[name] = f"'{name}' is a placeholder {dtype.name}{shape} in place of what {node.op} '{node.name}' gave"
    nodes: list[Node] = []
    for other in graph:
        if other.name == node.name:
            nodes += placeholders
        elif f"^{node.name}" in other.inputs:
            nodes.append(other.replace(inputs=[ref for ref in other.inputs if ref != f"^{node.name}"]))
        else:
            nodes.append(other)
    return rename_inputs(graph.replace(nodes), renames), lines


def components(graph: Graph, node: Node) -> Iterator[tuple[DType, Shape]]:
    """Type and shape of each output of a source."""
    if node.op.startswith("ReaderRead"):
        batch = Shape([]) if "UpTo" not in node.op else Shape([None])
        yield from [(STRING, batch), (STRING, batch)]
        return
    listed = next((node.attrs[name] for name in _TYPES if name in node.attrs), ())
    types = [dtype for dtype in listed if isinstance(dtype, DType)] if isinstance(listed, tuple) else []
    written = node.attrs.get("_output_shapes") or node.attrs.get("output_shapes")
    shapes: list[object] = list(written) if isinstance(written, tuple) else []
    if not shapes and node.data_inputs:
        queue = graph.find_producer(node.data_inputs[0])
        kept = queue.attrs.get("shapes") if queue is not None else None
        shapes = list(kept) if isinstance(kept, tuple) else []
        if "Many" in node.op or "UpTo" in node.op:
            shapes = [_batched(shape) for shape in shapes]
    definition = opdefs.find(node.op)
    if not types and definition is not None:
        types = [dtype.base for dtype in opdefs.output_dtypes(node)]
    for index, dtype in enumerate(types):
        shape = shapes[index] if index < len(shapes) else None
        yield dtype, shape if isinstance(shape, Shape) else Shape(None)


def _batched(shape: object) -> Shape:
    return Shape([None, *shape.dims]) if isinstance(shape, Shape) and shape.dims is not None else Shape(None)
