"""Where a device's pixels or numbers go into a model that otherwise takes files or records."""

from __future__ import annotations

from typing import NamedTuple

from pocketgraph.graph import Graph


class ModelEntry(NamedTuple):
    """A model behind what a device does itself.

    Attributes:
        graph: with placeholders there; for pixels float [?, height, width, channels].
        tensors: the names of these.
        mean, std: pixels from 0 to 255 are fed as ``(pixel - mean) / std``; None where that is not known.
    """

    graph: Graph
    tensors: tuple[str, ...]
    mean: float | None = None
    std: float | None = None
