"""Which inputs are parts of a sparse tensor, and what to feed them: made-up numbers are no places, nor sizes."""

from __future__ import annotations

from pocketgraph.graph import Graph, canonical, opdefs
from pocketgraph.graph.node import node_name
from pocketgraph.graph.op_traits import SAME_VALUES

SIZES = ("shape", "a_shape", "dense_shape", "input_shape", "sp_shape")
PLACES = ("indices", "a_indices", "sp_indices", "input_indices")


def sparse_part(graph: Graph, name: str) -> tuple[int, ...] | None:
    """What an input of whole numbers is fed where it is part of a sparse tensor: the sizes of a matrix of one row for
    its shape, (0,) for its places, which are all the first; None for other inputs.

    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse('''
    ...     places = Placeholder(dtype=int64, shape=[?,2])
    ...     values = Placeholder(dtype=float, shape=[?])
    ...     sizes = Placeholder(dtype=int64, shape=[2])
    ...     w = Const(float [[1], [2], [3]])
    ...     y = SparseTensorDenseMatMul(places, values, sizes, w, T=float)
    ... ''')
    >>> sparse_part(graph, "sizes"), sparse_part(graph, "places"), sparse_part(graph, "values")
    ((1, 3), (0,), None)
    """
    reached, is_place = [name], False
    found: list[tuple[int, ...]] = []
    seen = {name}
    while reached:
        source = reached.pop()
        for reader in graph.consumers.get(source, ()):
            if reader.op in SAME_VALUES and reader.name not in seen:
                seen.add(reader.name)
                reached.append(reader.name)
            definition = opdefs.find(reader.op) if "Sparse" in reader.op else None
            if definition is None or len(definition.inputs) != len(reader.data_inputs):
                continue
            for argument, ref in zip(definition.inputs, reader.data_inputs, strict=True):
                if canonical(ref) != f"{node_name(source)}:0":
                    continue
                is_place = is_place or argument.name in PLACES
                if argument.name in SIZES:
                    found.append(_sizes(graph, reader.op, reader.data_inputs[-1], bool(reader.attrs.get("adjoint_b"))))
    return max(found) if found else (0,) if is_place else None


def sparse_dims(graph: Graph, name: str, dims: tuple[int | None, ...] | None) -> tuple[int | None, ...] | None:
    """The shape of an input of whole numbers: where it is part of a sparse tensor of no stated rank, that of a matrix's
    part, else ``dims``, the declared one.

    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse('''
    ...     places = Placeholder(dtype=int64, shape=[?,?])
    ...     sizes = Placeholder(dtype=int64, shape=[?])
    ...     y = SparseReshape(places, sizes, shape)
    ...     shape = Const(int64 [4])
    ... ''')
    >>> sparse_dims(graph, "places", (None, None)), sparse_dims(graph, "sizes", (None,))
    ((None, 2), (2,))
    """
    part = sparse_part(graph, name) if dims is None or dims[-1:] == (None,) else None
    if part == (0,) and (dims is None or len(dims) == 2):
        return (dims[0] if dims else None, 2)
    return (2,) if part and len(part) == 2 and (dims is None or len(dims) == 1) else dims


def _sizes(graph: Graph, op: str, other: str, is_turned: bool) -> tuple[int, ...]:
    matrix = graph.constant(other) if op == "SparseTensorDenseMatMul" else None
    return (1, matrix.shape[1 if is_turned else 0] if matrix is not None and len(matrix.shape) == 2 else 1)
