"""strip_unused: the part of a graph between chosen inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pocketgraph.errors import FreezeError, UsageError
from pocketgraph.freezing.subgraph import extract_sub_graph
from pocketgraph.graph import AttrValue, DType, Graph, Node, node_name
from pocketgraph.graph.entry_points import unknown_node_hint
from pocketgraph.graph.model_file_graph import refuse_finished

KEPT = ("_output_shapes", "shape")
FLOAT = 1  # DT_FLOAT


def strip_unused(
    graph: Graph,
    input_node_names: Sequence[str],
    output_node_names: Sequence[str],
    placeholder_type_enum: int | Sequence[int] = FLOAT,
) -> Graph:
    """The nodes that the outputs need when the inputs are fed; the inputs become placeholders.

    ::

        image = DecodeJpeg(file)   ->   image = Placeholder(dtype=float)
        y = Relu(image)                 y = Relu(image)

    Node for node what TensorFlow's strip_unused makes. An input's ``_output_shapes`` and ``shape`` stay, and an input
    that the outputs do not need vanishes.

    Args:
        input_node_names, output_node_names: names of nodes, or of their first results, as ``x:0``, which the original
            refuses.
        placeholder_type_enum: the DataType number of every input, or one for each; 1 is float.

    Raises:
        UsageError: an input is named as a later result of a node; the types are not one for each input or no types; the
            graph is that of a LiteRT or ONNX file.
        FreezeError: an input or output is not in the graph.
    """
    refuse_finished(graph, "strip_unused")
    types = _types(input_node_names, placeholder_type_enum)
    missing = [name for name in types if name not in graph]
    if missing:
        raise FreezeError(
            f"The following input nodes were not found: {', '.join(missing)}",
            hint=unknown_node_hint(graph, missing[0], is_fed=True),
        )
    placeholders = {name: _placeholder(graph[name], dtype) for name, dtype in types.items()}
    replaced = graph.map_nodes(lambda node: placeholders.get(node.name, node))
    stripped = extract_sub_graph(replaced, output_node_names)
    inputs = [name for name in types if name in stripped]
    return stripped.replace(inputs=inputs, outputs=output_node_names, signatures={})


def _types(names: Sequence[str], enum: int | Sequence[int]) -> Mapping[str, DType]:
    names = [name.removesuffix(":0") for name in names]
    for name in names:
        if ":" in name:
            hint = f"an input that is a node has all its results: {node_name(name)}"
            raise UsageError(f"Name '{name}' appears to refer to a Tensor, not an Operation.", hint=hint)
    numbers = [enum] * len(names) if isinstance(enum, int) else list(enum)
    if len(numbers) != len(names):
        raise UsageError(
            f"{len(numbers)} placeholder types were given for {len(names)} inputs",
            hint="give one type, or one for each input",
        )
    return {name: DType.of(number) for name, number in zip(names, numbers, strict=True)}


def _placeholder(node: Node, dtype: DType) -> Node:
    kept: dict[str, AttrValue] = {key: node.attrs[key] for key in KEPT if key in node.attrs}
    return Node(node.name, "Placeholder", (), {"dtype": dtype, **kept})
