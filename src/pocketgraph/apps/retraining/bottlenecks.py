"""What a base model makes of each example, kept on disk by the content of the example and of the model."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pocketgraph import cluster
from pocketgraph.apps.retraining.example_lists import Example
from pocketgraph.apps.retraining.photo_features import PLAIN, FeatureModel
from pocketgraph.errors import FormatError
from pocketgraph.formats.files import unreadable, write_atomically
from pocketgraph.formats.graphdef import chunks
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array

MOST_LETTERS = 40  # of an example's name in that of its features; a name in a folder has 255 bytes, a letter up to four


class Bottlenecks:
    """Features of examples.

    Args:
        model: gives the tensor at the cut.
        graph: a digest of its content; another one has other files.
        folder: where they are kept, a folder a class; "" to keep none.

    Attributes:
        identity: a digest of the model, the cut and how examples go in.
        shape: of the tensor at the cut, for one example; empty until one was read.
    """

    def __init__(self, model: FeatureModel, graph: str, folder: str = "") -> None:
        self._model, self._folder = model, folder
        self.identity = hashlib.sha256(f"{graph} {model.identity}".encode()).hexdigest()[:16]
        self.shape: tuple[int, ...] | None = None

    def of(self, path: str, label: str, variants: Sequence[int] = (PLAIN,)) -> Array:
        """The features of one example, float32 [variants, size].

        Raises:
            FormatError: it cannot be read.
        """
        try:
            content = self._model.content(path)
        except OSError as error:
            raise unreadable("the picture", path, error) from None
        key = hashlib.sha256(f"{self.identity} {list(variants)}".encode() + content).hexdigest()[:24]
        name = f"{os.path.basename(path)[:MOST_LETTERS]}_{key}.npy"
        kept = os.path.join(self._folder, label, name) if self._folder else ""
        found = _read(kept, len(variants)) if kept and self.shape is not None else None
        if found is not None:
            return found
        made = self._model.of(path, content, variants)
        self.shape = made[0].shape
        features = np.stack([row.reshape(-1) for row in made])
        if kept:
            os.makedirs(os.path.dirname(kept), exist_ok=True)
            write_atomically(kept, features.tobytes())
        return features

    def all(
        self,
        examples: Sequence[Example],
        variants: Sequence[int] = (PLAIN,),
        *,
        progress: Callable[[int, int], None] | None = None,
        broken: Callable[[FormatError], None] | None = None,
    ) -> tuple[list[Example], Array]:
        """The examples that open, and their features, float32 [n, variants, size].

        Raises:
            FormatError: one does not open, and nobody is told of it.
        """
        kept, rows = [], []
        key = ""
        if cluster.current() is not None:
            key = cluster.source_key(self.identity, list(variants), paths=[example.path for example in examples])
        read = cluster.map_in_order(_PhotoReading(self, tuple(variants)), examples, key=key)
        for number, (example, row) in enumerate(zip(examples, read, strict=True)):
            if "error" in row:
                what, hint = row["error"].tolist()
                error = FormatError(what, where=example.path, hint=hint)
                if broken is None:
                    raise error
                broken(error)
            else:
                self.shape = tuple(row["shape"].tolist())
                rows.append(row["features"])
                kept.append(example)
            if progress is not None:
                progress(number + 1, len(examples))
        return kept, np.stack(rows) if rows else np.zeros((0, len(variants), 0), np.float32)


@dataclass(frozen=True)
class _PhotoReading:
    """The features of an example, or what is wrong with it; a job for a cluster."""

    bottlenecks: Bottlenecks
    variants: tuple[int, ...]

    def __call__(self) -> Callable[[Example], dict[str, Array]]:
        return self.row

    def row(self, example: Example) -> dict[str, Array]:
        """The features and the shape of each of them; or "error"."""
        try:
            features = self.bottlenecks.of(example.path, example.label, self.variants)
        except FormatError as error:
            return {"error": np.array([error.what, error.hint])}
        return {"features": features, "shape": np.array(self.bottlenecks.shape or (), np.int64)}


def content_digest(graph: Graph) -> str:
    """A digest of a graph's content."""
    digest = hashlib.sha256(graph.extra)
    for chunk in chunks(graph):
        digest.update(chunk)
    return digest.hexdigest()


def _read(path: str, rows: int) -> Array | None:
    """Kept features; None where there are none, or something else is there."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return None
    if not data or len(data) % (4 * rows):
        return None
    found = np.frombuffer(data, np.float32).reshape(rows, -1)
    return found if np.isfinite(found).all() else None
