"""What a notebook shows of a graph: how large it is, what goes in and out, its ops, its first nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pocketgraph.graph.node import Node, node_name
from pocketgraph.graph.tensor import Tensor
from pocketgraph.graph.text_printer import print_attr
from pocketgraph.pages.document import fragment
from pocketgraph.pages.parts import Cell, Column, Row, cards, folded, number, table, words
from pocketgraph.pages.quantities import counted

MOST = 40  # rows of each table
LONGEST = 120  # letters of a name or an attribute
NODES = (
    Column("node"),
    Column("op", is_words=True),
    Column("inputs", is_words=True),
    Column("attributes", is_words=True),
)
ENDS = (Column("tensor"), Column("op", is_words=True), Column("declared", is_words=True))


def as_html(nodes: Mapping[str, Node], inputs: Sequence[str], outputs: Sequence[str], functions: int) -> str:
    """A few tables, however large the graph.

    Args:
        nodes: by name.
        inputs, outputs: tensors that are fed, and that the graph declares as results.
        functions: how many its library has.
    """
    values = [v for node in nodes.values() if isinstance(v := node.attrs.get("value"), Tensor)]
    size = sum(value.nbytes for value in values)
    ops = Counter(node.op for node in nodes.values())
    figures = [
        (f"{len(nodes):,}", "nodes"),
        (f"{len(ops):,}", "ops"),
        (f"{size / 1e6:,.3g} MB" if size >= 1e6 else f"{size / 1e3:,.3g} kB", f"in {counted(len(values), 'constant')}"),
    ]
    if functions:
        figures.append((f"{functions:,}", "functions"))
    ends = [_end(nodes, ref) for ref in [*inputs[:MOST], *outputs[:MOST]]]
    by_op = [Row([words(_cut(op)), number(count, ",d")]) for op, count in ops.most_common(MOST)]
    first = [_row(node) for _, node in zip(range(MOST), nodes.values(), strict=False)]
    return fragment(
        cards(figures),
        table(ENDS, ends) if ends else "",
        folded("Ops", table((Column("op"), Column("nodes")), by_op) if by_op else ""),
        folded(f"The first {len(first)} of {counted(len(nodes), 'node')}", table(NODES, first) if first else ""),
    )


def _end(nodes: Mapping[str, Node], ref: str) -> Row:
    node = nodes.get(node_name(ref))
    if node is None:
        return Row([words(_cut(ref)), Cell("not in the graph"), Cell("")])
    declared = [print_attr(node.attrs[key], key) for key in ("dtype", "T", "shape") if key in node.attrs]
    return Row([words(_cut(ref)), words(_cut(node.op)), words(_cut(" ".join(declared)))])


def _row(node: Node) -> Row:
    attributes = ", ".join(f"{key}={_cut(print_attr(value, key), 40)}" for key, value in node.attrs.items())
    return Row(
        [words(_cut(node.name)), words(_cut(node.op)), words(_cut(", ".join(node.inputs))), words(_cut(attributes))]
    )


def _cut(text: str, most: int = LONGEST) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
