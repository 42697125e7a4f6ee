"""Embed: a vector for each frame, and which of the frames that were named before it is nearest to."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.apps.live.answers import Answer, Frame, Settings, timed
from pocketgraph.apps.picture_model import PictureModel
from pocketgraph.graph.tensor import Array

MOST_EXAMPLES = 10000  # that are kept; the oldest go


class EmbeddingApp(Settings):
    """Tells things apart by examples, without training: the cosine to the nearest example of each name.

    Args:
        graph: takes a picture.
        output: the tensor of the vector.
        how: as in PictureModel.
    """

    kind = "embed"

    def __init__(self, graph: Any, output: str, **how: Any) -> None:
        self.model = PictureModel(graph, [output], fallback=224, **how)
        self.begin()

    def begin(self) -> None:
        """Forgets the examples."""
        self.names: list[str] = []
        self.examples: list[Array] = []
        self._last: Array | None = None

    def __call__(self, given: Frame) -> Answer:
        """The names of the nearest examples, and how near they are."""
        (found,), took = timed(self.model.of_pixels, given.pixels)
        flat = found.reshape(-1).astype(np.float64)
        self._last = flat / max(float(np.linalg.norm(flat)), 1e-12)
        near: dict[str, float] = {}
        for name, likeness in zip(self.names, np.array(self.examples) @ self._last, strict=True) if self.names else ():
            near[name] = max(near.get(name, -1.0), float(likeness))
        ranked = tuple(sorted(near.items(), key=lambda item: -item[1])[:5])
        values = {"size": flat.size, "examples": len(self.names)}
        return Answer(classes=ranked, values=values, milliseconds=took)

    def remember(self, name: str) -> None:
        """The last frame is an example of ``name`` from now on; of very many the oldest is forgotten."""
        if self._last is not None and name:
            self.names, self.examples = (
                [*self.names, name][-MOST_EXAMPLES:],
                [*self.examples, self._last][-MOST_EXAMPLES:],
            )
