"""A graph that takes records of the type tf.Example, cut behind what takes them apart: devices have the numbers.

records ─ParseExample─┊─ age, height ─ MatMul …
"""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.apps.shipping.model_entry import ModelEntry
from pocketgraph.errors import UsageError
from pocketgraph.graph import DType, Graph, Node, canonical, node_name, parse_ref
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.entry_points import check_names
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.quantization.input_cut import behind, tensor_name


def numbers_entry(graph: Graph, outputs: Sequence[str]) -> ModelEntry | None:
    """The features in the records, where all that are used are as many numbers in each record.

    None where the graph takes no records, and where features are texts or sparse, behind whose lookups export cuts.
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
    is_dense = used and all(_is_numbers(inferred, ref) and _is_dense(parsers[0], ref) for ref in used)
    return _cut(graph, used, inferred, outputs) if is_dense else None


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


def _is_dense(parser: Node, ref: str) -> bool:
    """Whether a parser's result has the values of a feature, and is no index, value or shape of a sparse one."""
    counts = (parser.attrs.get(name) for name in ("Nsparse", "num_sparse", "Ncontext_sparse"))
    return parse_ref(ref).port >= 3 * max((count for count in counts if isinstance(count, int)), default=0)


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
