"""A graph that takes records of the type tf.Example, cut behind what takes them apart: devices have the numbers.

records ─ParseExample─┊─ age, height ─ MatMul …
"""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.apps.shipping.model_entry import ModelEntry
from pocketgraph.errors import UsageError
from pocketgraph.graph import DType, Graph, Node, Tensor, canonical, node_name
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.entry_points import check_names
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.order import dependents, reachable
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.quantization.input_cut import behind, tensor_name


def numbers_entry(graph: Graph, outputs: Sequence[str]) -> ModelEntry | None:
    """The features in the records, where all that are used are numbers; else the first tensor that all of them go into.

    None where the graph takes no records, or there is no such tensor with most of the weights behind it.
    """
    wanted = [node_name(name) for name in outputs]
    needed = reachable(graph, wanted)
    parsers = [graph[name] for name in needed if graph[name].op in ops_with("example_parser")]
    if len(parsers) != 1:
        return None
    inferred = infer(graph)
    used = sorted(
        {canonical(ref) for node in graph if node.name in needed for ref in node.data_inputs
         if node_name(ref) == parsers[0].name}
    )  # fmt: skip
    if used and all(_is_numbers(inferred, ref) for ref in used):
        return _cut(graph, used, inferred, outputs)
    sources = {node_name(ref) for ref in parsers[0].data_inputs if inferred.dtype(canonical(ref)) is STRING}
    for node in dependents(graph, [parsers[0].name]):
        if node.name not in needed:
            continue
        apart = reachable(graph, wanted, stop={node.name})
        if _is_numbers(inferred, canonical(node.name)) and apart.isdisjoint({parsers[0].name, *sources} - {node.name}):
            return _with_most_weights(graph, needed, _cut(graph, [canonical(node.name)], inferred, outputs), wanted)
    return None


def behind_tensors(graph: Graph, tensors: Sequence[str], outputs: Sequence[str]) -> Graph:
    """The graph with placeholders in the place of tensors.

    Raises:
        UsageError: there is no such tensor, or its type is not known.
    """
    inferred = infer(graph)
    check_names(graph, tensors, is_fed=True)
    for name in tensors:
        if inferred.dtype(canonical(name)) is None:
            raise UsageError(f"the type of '{name}' is not known, so that it cannot be fed")
    return _cut(graph, [canonical(name) for name in tensors], inferred, outputs).graph


def _with_most_weights(graph: Graph, needed: set[str], entry: ModelEntry, wanted: Sequence[str]) -> ModelEntry | None:
    """The entry with the weights that it leaves out; None where these are most of the model."""
    behind = reachable(entry.graph, wanted)
    sizes = {name: value.size for name in needed if (value := _weights(graph[name])) is not None}
    left_out = tuple(sorted(name for name in sizes if name not in behind))
    if 2 * sum(sizes[name] for name in left_out) > sum(sizes.values()):
        return None
    return entry._replace(left_out=left_out)


def _weights(node: Node) -> Tensor | None:
    """The numbers of a constant that may be weights."""
    value = node.attrs.get("value") if node.op == "Const" else None
    is_matrix = isinstance(value, Tensor) and len(value.shape) >= 2 and value.dtype.is_floating
    return value if is_matrix and isinstance(value, Tensor) else None


def _is_numbers(inferred: Inferred, ref: str) -> bool:
    dtype, shape = inferred.dtype(ref), inferred.shape(ref).dims
    return dtype is not None and dtype is not STRING and shape is not None and None not in shape[1:]


def _cut(graph: Graph, refs: Sequence[str], inferred: Inferred, outputs: Sequence[str]) -> ModelEntry:
    """The graph with placeholders in the place of tensors."""
    is_alone = len(refs) == 1
    cuts: dict[str, tuple[DType, tuple[int | None, ...] | None]] = {}
    for ref in refs:
        dims, dtype = inferred.shape(ref).dims, inferred.dtype(ref)
        assert dtype is not None
        cuts[ref] = dtype, (None, *dims[1:]) if dims else dims
    names = [tensor_name(graph, ref, is_alone) for ref in refs]
    cut = behind(graph, cuts, is_alone=is_alone)
    nodes = [cut[name] for name in names] + [node for node in cut if node.name not in names]
    return ModelEntry(cut.replace(nodes, inputs=(), signatures={}, outputs=list(outputs)), tuple(names))
