"""What a model makes of photos at one of its tensors: as they are, mirrored, and distorted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from pocketgraph.apps.picture_model import PictureModel
from pocketgraph.apps.retraining.distortions import Distortions
from pocketgraph.datasets import image_loading
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array

PLAIN, MIRRORED, DISTORTED = 0, 1, 2
"""Variants of an example: as it is, mirrored, and from here on distorted at random, one a number."""
MOST_SIDE = 512  # pixels of a distorted photo, where the model says no size


class FeatureModel(Protocol):
    """What a model makes of examples of one kind at one of its tensors."""

    @property
    def entrance(self) -> str:
        """The tensor that examples go in by."""

    @property
    def scaling(self) -> tuple[float, float] | None:
        """Mean and std by which pixels are fed; None where there are no pixels."""

    @property
    def identity(self) -> str:
        """Of the tensor and of how examples go in, and of the distortions."""

    def rank(self) -> int:
        """How many axes the tensor has, that of examples included."""

    def content(self, path: str) -> bytes:
        """What tells one example from others.

        Raises:
            OSError: it cannot be read.
        """

    def of(self, path: str, content: bytes, variants: Sequence[int]) -> list[Array]:
        """The tensor for each variant of one example, float32, without the axis of examples.

        Raises:
            FormatError: it is no such example.
        """

    def at(self, graph: Graph, tensor: str) -> FeatureModel:
        """The same of another tensor, of this graph or one with the same input."""

    def prepared(self, path: str) -> Callable[[], object]:
        """What runs the model on an example that is read already, to see how long that takes."""


def file_content(path: str) -> bytes:
    """The bytes of an example that is a file."""
    with open(path, "rb") as file:
        return file.read()


class PhotoFeatures:
    """What a model makes of photos.

    Args:
        model: gives the tensor, alone.
        distortions: what the distorted variants are.
        seed: of the distortions.
    """

    content = staticmethod(file_content)

    def __init__(self, model: PictureModel, distortions: Distortions | None = None, seed: int = 0) -> None:
        self.model, self._distortions, self._seed = model, distortions or Distortions(), seed

    @property
    def identity(self) -> str:
        model = self.model
        how = f" {self._distortions} {self._seed}" if self._distortions else ""
        how += "".join(f" {name} {np.asarray(value).tolist()}" for name, value in sorted(model.feeds.items()))
        return f"{model.input} {model.mean} {model.std} {model.outputs}{how}"

    @property
    def entrance(self) -> str:
        return self.model.input.tensor

    @property
    def scaling(self) -> tuple[float, float]:
        mean, std = self.model.mean, self.model.std
        assert not isinstance(mean, tuple)  # finished files alone have numbers of channels
        assert not isinstance(std, tuple)
        return mean, std

    def rank(self) -> int:
        size = self.model.input
        return self.model.of_pixels(np.zeros((max(1, size.height), max(1, size.width), 3), np.uint8))[0].ndim

    def prepared(self, path: str) -> Callable[[], object]:
        return partial(self.model.of_pixels, image_loading.read(path, self.model.input.channels))

    def of(self, path: str, content: bytes, variants: Sequence[int]) -> list[Array]:
        pixels = image_loading.read(path)
        key = int.from_bytes(hashlib.sha256(content).digest()[:8], "little")
        return [self._computed(self._variant(pixels, key, variant)) for variant in variants]

    def at(self, graph: Graph, tensor: str) -> PhotoFeatures:
        return PhotoFeatures(self.model.at(graph, tensor), self._distortions, self._seed)

    def _variant(self, pixels: Array, key: int, variant: int) -> Array:
        if variant == PLAIN:
            return pixels
        if variant == MIRRORED:
            return np.ascontiguousarray(pixels[:, ::-1])
        size = self.model.input
        height, width = (size.height, size.width) if size.height else (min(MOST_SIDE, n) for n in pixels.shape[:2])
        return self._distortions.of(pixels, height, width, np.random.default_rng([self._seed, key, variant]))

    def _computed(self, pixels: Array) -> Array:
        (made,) = self.model.of_pixels(pixels)
        found = np.asarray(made, np.float32)
        return found[0] if found.ndim > 1 and len(found) == self.model.input.batch else found
