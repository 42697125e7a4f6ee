"""Constants of a frozen graph become variables again."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from pocketgraph.differentiation.node_builder import GraphBuilder
from pocketgraph.differentiation.unfolded_batch_norms import with_unfolded_batch_norms
from pocketgraph.differentiation.variable_nodes import add_variable, read_variable, with_initialization
from pocketgraph.errors import GraphError, did_you_mean
from pocketgraph.formats import graph_of
from pocketgraph.formats.files import PathLike
from pocketgraph.graph import Graph, Node, Shape, node_name
from pocketgraph.graph.edit import rename_inputs
from pocketgraph.graph.op_traits import FUSED_BATCH_NORMS, SUMS, ops_with

WEIGHTED = ops_with("layer", "bias", "fused_batch_norm") | SUMS
"""Ops that combine values with weights."""


def trainable(
    graph: Graph | PathLike,
    variables: str | Iterable[str] | None = None,
    *,
    kind: str = "reference",
    unfold_batch_norms: bool = False,
) -> Graph:
    """Makes constants variables, with their values as first values.

    A constant ``w`` becomes the variable ``w``, with ``w/initial_value``, ``w/Assign`` and, where it is not read by an
    Identity yet, ``w/read``. The operation ``init`` initializes all of them.

    >>> from pocketgraph.graph.text_format import parse, print_graph
    >>> graph = parse('''
    ...     x = Placeholder(dtype=float, shape=[1,2])
    ...     w = Const(float [[0.5], [-1.0]])
    ...     y = MatMul(x, w, T=float)
    ... ''')
    >>> print(print_graph(trainable(graph)), end="")
    x = Placeholder(dtype=float, shape=[1,2])
    w = VariableV2(dtype=float, shape=[2,1], container="", shared_name="")
    y = MatMul(x, w/read, T=float)
    w/initial_value = Const(float [[0.5], [-1.0]])
    w/Assign = Assign(w, w/initial_value, T=float, validate_shape=true, use_locking=true)
    w/read = Identity(w, T=float)
    init = NoOp(^w/Assign)

    Args:
        graph: a frozen graph.
        variables: names of constants, or patterns such as ``logits/*``; by default the weights: the constants of more
            than one floating number that layers, biases and sums take, and the scales and offsets of batch norms
            (their means and variances stay constants).
        kind: ``reference`` (VariableV2, as TensorFlow 1 makes them) or ``resource`` (VarHandleOp).
        unfold_batch_norms: whether layers that batch norms may have been folded into get a scale a channel again,
            ``LAYER/gamma``, in front of their offset; results stay the same. By default the scales are variables too.

    Returns:
        The graph with variables and the operation ``init``.

    Raises:
        UsageError: this is neither.
        GraphError: a name or pattern fits no constant of floating numbers, the graph has no weights, or ``kind`` is
            unknown.
    """
    graph = graph_of(graph, "trainable")
    if kind not in ("reference", "resource"):
        raise GraphError(f"variables are of the kind 'reference' or 'resource', not '{kind}'")
    scales: list[str] = []
    if unfold_batch_norms:
        graph, scales = with_unfolded_batch_norms(graph)
        if not scales:
            raise GraphError("no batch norm can have been folded: no layer of constant weights has an offset behind it")
    chosen = [*weights(graph), *(graph[name] for name in scales)] if variables is None else _named(graph, variables)
    if not chosen:
        raise GraphError("the graph has no constants that look like weights", hint="name them: variables=['w', …]")
    builder = GraphBuilder(graph)
    made: dict[str, Node] = {}
    assigned, renames = [], {}
    readers = {}
    for node in chosen:
        tensor, name = node.tensor, node.name
        builder.device = node.device
        initial = builder.const(tensor.numpy(), tensor.dtype, name=f"{name}/initial_value")
        resource = kind == "resource"
        assigned.append(add_variable(builder, name, initial, tensor.dtype, Shape(tensor.shape), resource=resource))
        made[name] = builder.added.pop(name)
        builder.added[name] = made[name]  # so that its type is known when it is read
        mine = graph.consumers.get(name, ())
        if not resource and mine and all(reader.op == "Identity" for reader in mine):
            readers.update({reader.name: reader for reader in mine})
        else:
            renames[f"{name}:0"] = read = read_variable(builder, name, tensor.dtype)
            readers[read] = builder.added[read]
        del builder.added[name]
    nodes = [made.get(node.name, node) for node in graph]
    renamed = rename_inputs(graph.replace(nodes), renames, untouched=readers)
    result = renamed.replace([*renamed, *builder.added.values()])
    outputs = [renames.get(f"{node_name(ref)}:0", ref) for ref in graph.outputs]
    return with_initialization(result.replace(outputs=outputs), assigned)


def weights(graph: Graph) -> list[Node]:
    """The constants of more than one floating number that layers, biases, sums and batch norms take as weights."""
    found: dict[str, Node] = {}
    for node in graph:
        if node.op not in WEIGHTED:
            continue
        refs = node.data_inputs[1:3] if node.op in FUSED_BATCH_NORMS else node.data_inputs
        for ref in refs:
            constant = _constant(graph, ref)
            if constant is not None and constant.tensor.dtype.is_floating and constant.tensor.size > 1:
                found[constant.name] = constant
    return list(found.values())


def _constant(graph: Graph, ref: str) -> Node | None:
    """The Const behind a tensor, seen through Identity."""
    if graph.constant(ref) is None:
        return None
    node = graph.producer(ref)
    while node.op != "Const":
        node = graph.producer(node.data_inputs[0])
    return node


def _named(graph: Graph, variables: str | Iterable[str]) -> list[Node]:
    """The constants of floating numbers that these names and patterns fit."""
    constants = {node.name: node for node in graph if node.op == "Const" and node.tensor.dtype.is_floating}
    found: dict[str, Node] = {}
    for name in [variables] if isinstance(variables, str) else variables:
        fitting = [node for node in constants.values() if node.name == name or fnmatchcase(node.name, name)]
        if not fitting:
            raise GraphError(f"no constant of floating numbers is called '{name}'", hint=did_you_mean(name, constants))
        found |= {node.name: node for node in fitting}
    return list(found.values())
