"""Refuses to write a graph where the program has tensors in another layout than the nodes that they are named after.

Transposes of the program meet and cancel out, also those that layers with channels first bring, and what was between
them is computed in the other layout under its old name. Where nodes of the graph still read such a tensor, or write it,
the graph that is written gives other numbers: it is run once, beside the one that it comes from.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.errors import PocketgraphError, UsageError
from pocketgraph.graph import Graph, Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.operands import attr_text
from pocketgraph.litert.program import Program, Value
from pocketgraph.quantization.conversion.to_graphdef import to_graphdef
from pocketgraph.runtime.session import Session

TOLERANCE = 1e-2  # of the largest number: folded batch norms round elsewhere, wrong layouts are off by all of it


def check_layouts(written: Graph, graph: Graph, inputs: Sequence[Value], outputs: Sequence[str]) -> None:
    """Compares both graphs on made-up inputs where layouts change in them.

    Args:
        written: what ``to_graphdef`` made of the float program.
        graph: what the program was lowered from.
        inputs: of the program.
        outputs: names of tensors.

    Raises:
        UsageError: they give different numbers.
    """
    changing = _changing(graph)
    if changing and not _gives_the_same(written, graph, inputs, outputs):
        raise UsageError(
            f"a quantized graph has no place for the layout that the program computes in, because of {len(changing)}"
            f" nodes such as '{changing[0].name}' ({changing[0].op})",
            hint="write a .tflite file",
        )


def has_place(changed: Program, graph: Graph, outputs: Sequence[str]) -> bool:
    """Whether a program that a step changed can be written as a graph that computes the same.

    Args:
        changed: a float program that computes what the graph does.
        graph: what the program was lowered from.
        outputs: names of tensors.
    """
    try:
        written = to_graphdef(changed, graph, outputs)
    except UsageError:
        return False
    return not _changing(graph) or _gives_the_same(written, graph, changed.inputs, outputs)


def _changing(graph: Graph) -> list[Node]:
    return [node for node in graph if node.op == "Transpose" or attr_text(node, "data_format", "").startswith("NC")]


def _gives_the_same(written: Graph, graph: Graph, inputs: Sequence[Value], outputs: Sequence[str]) -> bool:
    rng = np.random.default_rng(0)
    feeds = {
        value.name: rng.uniform(-1, 1, value.shape).astype(np.float32)
        if value.dtype is FLOAT
        else np.zeros(value.shape, value.dtype.numpy)
        for value in inputs
    }
    try:
        wanted = _results(graph, feeds, outputs)
    except PocketgraphError:  # made-up inputs are not for this graph
        return True
    try:
        found = _results(written, feeds, outputs)
    except PocketgraphError:
        return False
    return len(found) == len(wanted) and all(map(_is_same, found, wanted))


def _results(graph: Graph, feeds: dict[str, Array], outputs: Sequence[str]) -> list[Array]:
    with Session(graph, threads=1, cache_dir="", check="never") as session:
        return session.run(outputs, feeds)


def _is_same(found: Array, wanted: Array) -> bool:
    if found.shape != wanted.shape:
        return False
    if wanted.dtype.kind != "f":
        return bool(np.mean(found == wanted) > 1 - TOLERANCE) if wanted.size else True
    finite = np.isfinite(wanted)
    peak = float(np.abs(wanted[finite]).max(initial=0))
    return bool(np.allclose(found[finite], wanted[finite], rtol=0, atol=TOLERANCE * peak + 1e-6))
