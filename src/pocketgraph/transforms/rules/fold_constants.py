"""Replaces what always comes out the same by its value."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from pocketgraph.errors import TransformError, did_you_mean
from pocketgraph.graph import Graph, Node, Shape, Versions, const, node_name, opdefs
from pocketgraph.graph.dtype import INVALID
from pocketgraph.graph.edit import remove_attributes
from pocketgraph.graph.groups import closure
from pocketgraph.graph.node import canonical
from pocketgraph.graph.op_traits import FUNCTION_CALLS
from pocketgraph.graph.shape import UNKNOWN
from pocketgraph.kernels.shapes import infer
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.original.import_checks import check_attributes, check_name
from pocketgraph.transforms.original.import_shapes import wrong_shapes
from pocketgraph.transforms.original.import_values import ImportWalk
from pocketgraph.transforms.original.node_hash import hash_order
from pocketgraph.transforms.original.numbering import check_duplicate_names, numbers
from pocketgraph.transforms.parts.constant_folding.constant_evaluation import as_stored, evaluate
from pocketgraph.transforms.parts.constant_folding.constants import (
    CONSTANTS,
    SHAPE_OPS,
    FoldableConstants,
    find_constants,
)
from pocketgraph.transforms.parts.constant_folding.flow import Flow, FlowStep, flow_of
from pocketgraph.transforms.tool import transform

log = logging.getLogger("pocketgraph.transforms")

UNCHECKED = frozenset({
    "BlockLSTM", "BlockLSTMV2", "Conv2DBackpropInput", "CropAndResizeGradBoxes", "ResizeBicubicGrad",
    "ResizeBilinearGrad", "SoftmaxCrossEntropyWithLogits", "SparseAdd", "SparseDenseCwiseAdd", "SparseDenseCwiseDiv",
    "SparseDenseCwiseMul", "SparseReduceMaxSparse", "SparseReduceSumSparse", "SparseSlice", "Transpose",
})  # fmt: skip
"""Not a trait: ops whose inputs the original accepts at first even when they make no sense, such as the permutation
[0, 0], as far as ``import_shapes`` does not say otherwise."""
UNLIMITED = 1 << 63  # bytes
SHAPELESS = frozenset({"TensorArrayGatherV3", "TensorArrayConcatV3", "TensorArrayGatherV2", "TensorArrayConcatV2"})
"""Not a trait: ops whose shape the original does not infer; a question for it is left to run time, as there."""


@transform
def fold_constants(
    graph: Graph,
    *,
    clear_output_shapes: bool = True,
    exclude_op: tuple[str, ...] = (),
    exclude_node: tuple[str, ...] = (),
    max_constant_size_in_bytes: int = 10 * 1024 * 1024,
    compat: Compat = Compat.FIXED,
) -> Graph:
    """Computes every part of the graph that depends only on constants, and stores the results as constants.

    Given:   x = Placeholder(dtype=float, shape=[?,2])
             variance = Const(float [3, 15])
             epsilon = Const(float [1, 1])
             sum = AddV2(variance, epsilon, T=float)
             scale = Rsqrt(sum, T=float)
             y = Mul(x, scale, T=float)
             ; inputs=x outputs=y
    Result:  y = Mul(x:0, scale/_0__cf__0, T=float)
             scale/_0__cf__0 = Const(float [0.5, 0.25])
             x = Placeholder(dtype=float, shape=[?,2])

    ``Shape``, ``ShapeN``, ``Rank`` and ``Size`` of a tensor whose shape is known beforehand count as constants, too.
    A new constant is called ``NODE/_I__cf__J``, where I and J count the new constants (J counts the known shapes among
    them, too). Nodes that the outputs do not need are dropped, the others come in the order in which TensorFlow imports
    them, with their ops' default attributes, and then the inputs. An output keeps its name, so an output that is itself
    constant stays as it is.

    Args:
        clear_output_shapes: pay no heed to the attribute ``_output_shapes``, which is often out of date in older files.
            It is dropped in either case, but for that of the inputs.
        exclude_op: ops that are not computed; may be repeated.
        exclude_node: nodes that are not computed; may be repeated.
        max_constant_size_in_bytes: a result larger than this is not stored.

    Differs from the original: an op that has no kernel here is left alone (the log names it); an unknown op, or an op
    or attribute newer than TensorFlow 1.15, is no error (with ``Compat.ORIGINAL``, unknown ops and the attribute are);
    attributes that are missing or wrong, and shapes that do not fit, are an error only when a node that has them is
    computed (with ``Compat.ORIGINAL``, always, but for sizes that 1.15 compares by values, as those of ScatterNd); a
    function called with constants stays (there, and with ``Compat.ORIGINAL``, an error); a negative
    max_constant_size_in_bytes is an error (there, it is no limit); J begins at 0 in every run of a list of transforms
    (there, in every process); a name that is taken is passed over; a FakeQuant of constants has the last bits of
    later versions (there, and with ``Compat.ORIGINAL``, those of 1.15); what makes a list of constants stays (there,
    and with ``Compat.ORIGINAL``, it becomes a Const of type variant). In either mode, what is fed and fetched
    is an error however it is spelled, a Dequantize of codes in a range of no width gives zeros (there, NaN), a
    QuantizeV2 of constants in an infinite range is an error.

    Raises:
        TransformError: an input or output is not in the graph; an input is no placeholder; an op gets inputs of wrong
            types; a node is to be placed with one that is not there; a kernel fails; a placeholder that
            is needed is not among the inputs.
        GraphError: a reference leads nowhere, or nodes are in a cycle.
    """
    if max_constant_size_in_bytes < 0 and not compat.original:
        raise TransformError("max_constant_size_in_bytes must not be negative")
    cleaned = remove_attributes(graph, {"_output_shapes"}) if clear_output_shapes else graph
    if clear_output_shapes or not compat.original:
        cleaned = cleaned.replace(versions=Versions())  # the original loses them where it clears
    if compat.original:
        _check_as_imported(cleaned)
    flow = flow_of(cleaned, graph.inputs, graph.outputs)
    shapes = static_shapes(cleaned, flow, compat)
    excluded = {"exclude_op": exclude_op, "exclude_node": exclude_node}
    found = find_constants(flow, shapes, **excluded, lists=compat.original)
    for op, name in found.missing.items():
        if compat.original and op in FUNCTION_CALLS:
            hint = f"run fold_constants(exclude_op={op}), or compat=fixed goes on"
            raise TransformError("No function library is provided", where=f"node '{name}'", hint=hint)
        log.warning("fold_constants: no kernel computes the op '%s' (node '%s'), so it stays", op, name)
    largest = max_constant_size_in_bytes if max_constant_size_in_bytes >= 0 else UNLIMITED
    added = replace_constants(flow, found, largest, compat)
    exported = remove_attributes(graph.replace(flow.export(added)), {"_output_shapes"})
    return graph.replace(used(exported, graph))


def _check_as_imported(graph: Graph) -> None:
    """Raises TransformError for what TensorFlow 1.15 would refuse to import: a node whose name is none, with a wrong or
    missing attribute, of an unknown op, or with inputs of shapes that do not fit; two nodes of one name; or a function
    that is called as an op."""
    check_duplicate_names(graph)
    for name in graph.functions:
        found = opdefs.find(name)
        if found is not None and found.only != opdefs.NEW:
            raise TransformError(f"Cannot add function '{name}' because an op with the same name already exists")
    for node in graph:
        check_name(node)
        if node.op not in graph.functions and opdefs.find(node.op) is None:
            raise TransformError(
                f"Op type not registered '{node.op}'",
                where=f"node '{node.name}'",
                hint=did_you_mean(node.op, opdefs.names())
                or "write fold_constants(ignore_errors=true) to pass over this rule",
            )
        check_attributes(node)
    inferred = infer(graph, kind=ImportWalk)
    for node in graph:
        problem = wrong_shapes(node, [inferred.shape(ref) for ref in node.data_inputs])
        if not problem and node.op not in UNCHECKED:
            problem = inferred.problems.get(node.name, "")
        if problem:
            hint = "give strip_unused_nodes the right shape, or write fold_constants(ignore_errors=true)"
            raise TransformError(problem, where=f"node '{node.name}'", hint=hint)


def static_shapes(graph: Graph, flow: Flow, compat: Compat) -> Callable[[str, int], Shape]:
    """The shapes of what questions for a shape ask about, as far as the graph alone tells.

    Without versions a scalar placeholder's shape counts as unknown: graphs that went through other rules say [] where
    they mean that. What only the values of constants tell, such as how many of them are unique, is unknown in the
    original, too.
    """
    asked = [ref for node in graph if node.op in SHAPE_OPS for ref in node.data_inputs]
    declared = {}
    for node in graph if asked else ():
        if node.op in SHAPELESS:
            declared[node.name] = (INVALID, UNKNOWN)
        shapes = node.attrs.get("_output_shapes")
        if isinstance(shapes, tuple) and not node.data_inputs and node.op not in CONSTANTS:
            for port, shape in enumerate(shapes):
                if isinstance(shape, Shape):
                    declared[f"{node.name}:{port}"] = (INVALID, shape)
    kind = ImportWalk if compat.original else None
    inferred = infer(graph, declared, outputs=asked, complete=False, by_values=False, kind=kind)

    def shape_of(name: str, port: int) -> Shape:
        feed = flow.fed.get(name)
        return inferred.shape(f"{name}:{port}" if feed is None else f"{feed.name}:{feed.port}")

    return shape_of


def replace_constants(flow: Flow, found: FoldableConstants, largest: int, compat: Compat) -> list[FlowStep]:
    """Makes constants of the tensors that non-constant steps (or the caller) take from constant ones.

    Every step that took such a tensor, constant or not, is pointed to the new constant.

    Returns:
        The new constants, in the order of the names of what they replace.
    """
    names = _Names(flow)
    aliases = {}  # the places in which steps that ask for a shape are sorted and counted
    for name in found.order:
        if name in found.shapes:
            aliases[name] = [names.new_alias(name) for _ in found.shapes[name]]
    asked = {(ref.name, ref.port) for ref in flow.fetched} - {(ref.name, ref.port) for ref in flow.fed.values()}
    readers: dict[tuple[str, int], list[tuple[FlowStep, int]]] = {}
    for name, step in flow.steps.items():
        for index, edge in enumerate(step.data):
            if edge[0] in found.computed:
                readers.setdefault(edge, []).append((step, index))
                if name not in found.outside:
                    asked.add(edge)

    def place(edge: tuple[str, int]) -> tuple[str, int]:
        name, port = edge
        if name not in aliases:
            return edge
        return (aliases[name][port], 0) if len(aliases[name]) > 1 else (aliases[name][0], port)

    wanted = sorted((edge for edge in asked if edge[0] in found.computed), key=place)
    values = evaluate(flow, found, wanted, compat)
    stored = {edge: as_stored(values[edge]) for edge in wanted if values[edge].nbytes <= largest}
    fitting = [edge for edge, value in stored.items() if value is not None]
    after = {name: found.after(flow, name) for name in dict.fromkeys(name for name, _ in fitting)}
    added: list[FlowStep] = []
    for edge in fitting:
        step = FlowStep(const(names.new_constant(edge[0]), stored[edge]), [], after[edge[0]])
        added.append(step)
        for reader, index in readers.get(edge, ()):
            reader.data[index] = (step.node.name, 0)
    return added


class _Names:
    """Makes the names of new constants by three counters, as the original does."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._aliases = 0
        self._constants = 0
        self._all = numbers()

    def new_alias(self, node: str) -> str:
        name = f"{node}/_{self._aliases}__cf__{next(self._all)}"
        self._aliases += 1
        return name

    def new_constant(self, node: str) -> str:
        while True:
            name = f"{node}/_{self._constants}__cf__{next(self._all)}"
            self._constants += 1
            if name not in self._flow.steps:
                return name


def used(made: Graph, graph: Graph) -> list[Node]:
    """The nodes that the outputs need when the inputs are fed, and behind them the inputs that are not among them.

    Args:
        made: what was made of ``graph``, with its inputs and outputs.
        graph: has the input nodes that were lost.

    Raises:
        TransformError: an input is neither a placeholder nor one with a default.
    """
    lost = {name: graph[name] for name in hash_order(node_name(text) for text in graph.inputs) if name not in made}
    fed = {canonical(text) for text in graph.inputs}
    inputs = {node_name(text) for text in graph.inputs}

    def sources(name: str) -> Iterable[str]:
        refs = (lost.get(name) or made.nodes[name]).inputs
        return (node_name(ref) for ref in refs if node_name(ref) not in inputs or canonical(ref) not in fed)

    keep = set(closure(map(node_name, graph.outputs), sources))
    nodes = (*made, *lost.values())
    return [_as_placeholder(n) if n.name in inputs else n for n in nodes if n.name in keep or n.name in inputs]


def _as_placeholder(node: Node) -> Node:
    if node.op == "PlaceholderWithDefault":
        return node.replace(op="Placeholder", inputs=())
    if node.op != "Placeholder":
        raise TransformError(
            f"Input '{node.name}' was expected to be a Placeholder or PlaceholderWithDefault op, but was {node.op}",
            hint="run strip_unused_nodes first, which makes a placeholder of it",
        )
    return node
