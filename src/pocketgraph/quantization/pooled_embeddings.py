"""Embeddings of as many words as a text has, pooled, in operators that LiteRT has: for one text, and a fixed length.

    unique, places = Unique(ids)                               steps = ids padded to the length
    rows = GatherV2(embedding, unique)                   ->    rows = GatherV2(embedding, steps)
    y = SparseSegmentMean(rows, places, 0, 0, …)               y = Sum(rows * weights), 1 / n each, or 0 behind the end

TensorFlow's optimizer and TensorFlow.js' converter join the first three to SparseSegmentMean(embedding, ids, 0, 0, …).
What ``embedding_lookup_sparse`` makes of a text, and with it feature columns, Estimators and TensorFlow Hub's modules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from pocketgraph.graph import DType, Graph, Node, Tensor, canonical, node_name
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32, INT64
from pocketgraph.graph.node import parse_ref
from pocketgraph.graph.op_traits import GATHERS, SELECTS

POOLINGS = {"SparseSegmentMean": -1.0, "SparseSegmentSqrtN": -0.5, "SparseSegmentSum": 0.0}
"""The power of the number of words by which the sum is multiplied."""
STEPS, WEIGHTS = "/steps", "/weights"
"""What the names of ids and weights end in, behind that of the pooling."""


@dataclass(frozen=True)
class Pooling:
    """A pooled embedding.

    Attributes:
        name: of the node that pools.
        ids: the tensor of the words' numbers, one behind the other.
        embedding: the tensor of the weights.
        power: see POOLINGS.
        row_bytes: of a word's row of the weights.
    """

    name: str
    ids: str
    embedding: str
    power: float
    row_bytes: int


def poolings(graph: Graph, needed: Collection[str]) -> Iterator[Pooling]:
    """The pooled embeddings among the nodes that are needed."""
    for node in graph:
        if node.name not in needed or node.op not in POOLINGS or len(node.data_inputs) != 3:
            continue
        table, ids, axis = node.data_inputs[0], node.data_inputs[1], None
        rows, (unique, port, _) = _plain(graph, table), parse_ref(canonical(ids))
        is_each_once = rows.op in GATHERS and graph[unique].op in ("Unique", "UniqueV2") and port == 1
        if is_each_once and canonical(rows.data_inputs[1]) == f"{unique}:0":
            table, ids = rows.data_inputs[0], graph[unique].data_inputs[0]
            axis = graph.constant(rows.data_inputs[2]) if rows.op == "GatherV2" else None
        weights, at_rows = graph.constant(table), axis is None or not int(axis.numpy())
        if weights is None or len(weights.shape) != 2 or not at_rows or graph.constant(ids) is not None:
            continue
        row_bytes = weights.shape[1] * weights.dtype.numpy.itemsize
        yield Pooling(node.name, ids, table, POOLINGS[node.op], row_bytes)


def with_fixed_length(graph: Graph, pooling: Pooling, length: int) -> Graph:
    """The graph with a pooled embedding of ``length`` words; of a longer text the first ones count.

    A text without words that ``safe_embedding_lookup_sparse`` gives zeros for has weights of 0 instead, and its choice
    between the two goes.
    """
    name, ids = pooling.name, pooling.ids
    weights = graph.constant(pooling.embedding)
    assert weights is not None
    made: list[Node] = []

    def add(part: str, op: str, inputs: list[str], **attrs: object) -> str:
        made.append(Node(f"{name}/{part}", op, inputs, attrs))  # type: ignore[arg-type]
        return f"{name}/{part}"

    def constant(part: str, value: object, dtype: DType) -> str:
        tensor = Tensor.from_numpy(np.asarray(value, dtype.numpy), dtype)
        return add(part, "Const", [], dtype=dtype, value=tensor)

    kind = _type_of(graph, ids)
    size = add("size", "Size", [ids], T=kind, out_type=INT32)
    one, zero = constant("one", 1, INT32), constant("zero", 0, INT32)
    at_least = add("at_least", "Maximum", [size, one], T=INT32)
    padding = constant("padding", [0], kind)
    padded = add("padded", "ConcatV2", [ids, padding, zero], T=kind, Tidx=INT32, N=2)
    counted = constant("counted", np.arange(length), INT32)
    places = add("places", "Minimum", [counted, size], T=INT32)
    taken = add("taken", "GatherV2", [padded, places, zero], Tparams=kind, Tindices=INT32, Taxis=INT32)
    row = constant("row", [1, length], INT32)
    steps = add(STEPS[1:], "Reshape", [taken, row], T=kind, Tshape=INT32)
    used = add("used", "Minimum", [at_least, constant("length", length, INT32)], T=INT32)
    count = add("count", "Cast", [used], SrcT=INT32, DstT=FLOAT)
    share = add("share", "Pow", [count, constant("power", pooling.power, FLOAT)], T=FLOAT)
    within = add("within", "Less", [counted, size], T=INT32)
    mask = add("mask", "Cast", [within], SrcT=BOOL, DstT=FLOAT)
    factors = add("factors", "Mul", [mask, share], T=FLOAT)
    empty = _empty_rows(graph, pooling)
    if empty is not None:
        has_words = add("has_words", "LogicalNot", [empty[1]])
        factor = add("has_words_as_number", "Cast", [has_words], SrcT=BOOL, DstT=FLOAT)
        factors = add("nonempty", "Mul", [factors, factor], T=FLOAT)
    column = constant("column", [1, length, 1], INT32)
    factors = add(WEIGHTS[1:], "Reshape", [factors, column], T=FLOAT, Tshape=INT32)
    rows = add("rows", "GatherV2", [pooling.embedding, steps, zero], Tparams=weights.dtype, Tindices=kind, Taxis=INT32)
    weighted = add("weighted", "Mul", [rows, factors], T=FLOAT)
    axis = constant("axis", 1, INT32)
    made.append(Node(name, "Sum", [weighted, axis], {"T": FLOAT, "Tidx": INT32, "keep_dims": False}))
    nodes: list[Node] = []
    for node in graph:
        if node.name == name:
            nodes.extend(made)
        elif empty is not None and node.name == empty[0]:
            nodes.append(Node(node.name, "Identity", [name], {"T": FLOAT}))
        else:
            nodes.append(node)
    return graph.replace(nodes)


def _plain(graph: Graph, ref: str) -> Node:
    """The producer of a tensor, seen through Identity."""
    node = graph.producer(ref)
    while node.op == "Identity":
        node = graph.producer(node.data_inputs[0])
    return node


def _type_of(graph: Graph, ref: str) -> DType:
    from pocketgraph.kernels.shapes import infer

    return infer(graph, outputs=[ref]).dtype(canonical(ref)) or INT64


def _empty_rows(graph: Graph, pooling: Pooling) -> tuple[str, str] | None:
    """The choice of zeros for texts without words, and the tensor that says which these are; None without.

    ``Select(Tile(Reshape(SparseFillEmptyRows:2)), ZerosLike(y), y)``
    """
    for user in graph.consumers.get(pooling.name, ()):
        if user.op not in SELECTS or len(user.data_inputs) != 3:
            continue
        flag, zeros, rows = user.data_inputs
        if node_name(rows) != pooling.name or _plain(graph, zeros).op != "ZerosLike":
            continue
        source = graph.producer(flag)
        ref = flag
        while source.op in ("Tile", "Reshape", "Identity", "ExpandDims", "BroadcastTo"):
            ref = source.data_inputs[0]
            source = graph.producer(ref)
        fills = source.op == "SparseFillEmptyRows" and canonical(ref) == f"{source.name}:2"
        if fills and canonical(pooling.ids) == f"{source.name}:1":
            return user.name, canonical(ref)
    return None
