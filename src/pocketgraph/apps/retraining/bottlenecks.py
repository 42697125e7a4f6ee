"""What a base model makes of each example, kept on disk by the content of the example and of the model."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pocketgraph.apps.picture_model import PictureModel
from pocketgraph.apps.retraining.example_lists import Example
from pocketgraph.datasets import image_loading
from pocketgraph.errors import FormatError
from pocketgraph.formats.files import write_atomically

Array = np.ndarray[Any, Any]


class Bottlenecks:
    """Features of examples.

    Args:
        model: gives the tensor at the cut, alone.
        identity: of the model and of how pictures go in; another one has other files.
        folder: where they are kept, a folder a class; "" to keep none.
    """

    def __init__(self, model: PictureModel, identity: str, folder: str = "") -> None:
        self._model, self._folder = model, folder
        how = f"{identity} {model.input} {model.mean} {model.std} {model.outputs}"
        self._identity = hashlib.sha256(how.encode()).hexdigest()[:16]

    def of(self, path: str, label: str, *, mirrored: bool = False) -> Array:
        """The features of one picture, float32 [size].

        Raises:
            FormatError: it is no picture.
        """
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError as error:
            raise FormatError(f"the picture cannot be read: {error.strerror or error}", where=path) from None
        key = hashlib.sha256(self._identity.encode() + bytes([mirrored]) + content).hexdigest()[:24]
        kept = os.path.join(self._folder, label, f"{os.path.basename(path)}_{key}.npy") if self._folder else ""
        if kept:
            found = _read(kept)
            if found is not None:
                return found
        pixels = image_loading.read(path)
        (made,) = self._model.of_pixels(np.ascontiguousarray(pixels[:, ::-1]) if mirrored else pixels)
        features = np.asarray(made, np.float32)
        features = features[0] if self._model.input.batch > 1 and len(features) == self._model.input.batch else features
        features = features.reshape(-1)
        if kept:
            os.makedirs(os.path.dirname(kept), exist_ok=True)
            write_atomically(kept, features.tobytes())
        return features

    def all(
        self,
        examples: Sequence[Example],
        *,
        mirrored: bool = False,
        progress: Callable[[int, int], None] | None = None,
        broken: Callable[[FormatError], None] | None = None,
    ) -> tuple[list[Example], Array]:
        """The examples that open, and their features, float32 [n, size].

        Raises:
            FormatError: one does not open, and nobody is told of it.
        """
        kept, rows = [], []
        for number, example in enumerate(examples):
            try:
                rows.append(self.of(example.path, example.label, mirrored=mirrored))
                kept.append(example)
            except FormatError as error:
                if broken is None:
                    raise
                broken(error)
            if progress is not None:
                progress(number + 1, len(examples))
        return kept, np.stack(rows) if rows else np.zeros((0, 0), np.float32)


def _read(path: str) -> Array | None:
    """Kept features; None where there are none, or something else is there."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return None
    if not data or len(data) % 4:
        return None
    found = np.frombuffer(data, np.float32)
    return found if np.isfinite(found).all() else None
