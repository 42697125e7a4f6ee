"""The inferred sizes of a graph's tensors, asked for by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, canonical

SizesOf: TypeAlias = "Callable[[str], tuple[int | None, ...] | None]"
"""A tensor's sizes by its name; None where even their number is open."""


def sizes_in(graph: Graph) -> SizesOf:
    """What gives the sizes of a graph's tensors: one inference, when the first is asked for, serves all."""
    from pocketgraph.kernels.shapes import Inferred, infer

    known: list[Inferred | None] = []

    def sizes(tensor: str) -> tuple[int | None, ...] | None:
        if not known:
            try:
                known.append(infer(graph))
            except PocketgraphError:
                known.append(None)
        inferred = known[0]
        return None if inferred is None else inferred.shape(canonical(tensor)).dims

    return sizes
