"""Which inputs choose rows of a table, as Keras' embeddings take them, and of how many; and which are lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pocketgraph.graph import Graph, Node, canonical
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import GATHERS, SELECTS

MOST_ROWS = 10  # as of made-up integers
TABLE_READERS = GATHERS | {"ResourceGather"}


def rows_chosen_by(graph: Graph, name: str) -> int:
    """How many rows the smallest table has from which the input ``name`` chooses, at most ten; 0 where it chooses none.

    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse('''
    ...     x = Placeholder(dtype=float, shape=[2])
    ...     table = Const(float [[1], [2], [3]])
    ...     axis = Const(int32 0)
    ...     rows = Cast(x, SrcT=float, DstT=int32)
    ...     y = GatherV2(table, rows, axis, Tparams=float, Tindices=int32, Taxis=int32)
    ... ''')
    >>> rows_chosen_by(graph, "x"), rows_chosen_by(graph, "table")
    (3, 0)
    """
    readers = [reader for reader, source in _readers(graph, name)
               if reader.op in TABLE_READERS and canonical(reader.data_inputs[1]) == f"{source}:0"]  # fmt: skip
    return min([*(_rows(graph, reader.data_inputs[0]) for reader in readers), MOST_ROWS]) if readers else 0


def sequences_turned_by(graph: Graph, name: str) -> list[tuple[str, int]]:
    """The sequences of which the input ``name`` says how long they are, as bidirectional networks turn them round: the
    tensor that holds them, and the axis that they go along."""
    return [(canonical(reader.data_inputs[0]), int(reader.attr("seq_dim", 0)))
            for reader, source in _readers(graph, name)
            if reader.op == "ReverseSequence" and canonical(reader.data_inputs[1]) == f"{source}:0"]  # fmt: skip


def _readers(graph: Graph, name: str) -> Iterator[tuple[Node, str]]:
    """What takes the numbers of an input, as they are or of another type, each with the node that it takes them of."""

    def gives_on(reader: Node, source: str) -> bool:
        is_else = reader.op in SELECTS and canonical(reader.data_inputs[-1]) == f"{source}:0"
        return reader.op in ("Cast", "Identity") or is_else  # Keras 3 counts negative numbers from the end

    def readers(source: str) -> Sequence[Node]:
        return graph.consumers.get(source, ())

    for source in closure([name], lambda source: (each.name for each in readers(source) if gives_on(each, source))):
        yield from ((reader, source) for reader in readers(source) if not gives_on(reader, source))


def _rows(graph: Graph, table: str) -> int:
    """Those of a constant, or of a variable."""
    value, variable = graph.constant(table), graph.find_producer(table, ("Identity", "ReadVariableOp"))
    declared = variable.shape() if variable is not None else None
    sizes = value.shape if value is not None else declared.dims if declared is not None else None
    first = sizes[0] if sizes else None
    return MOST_ROWS if first is None else first
