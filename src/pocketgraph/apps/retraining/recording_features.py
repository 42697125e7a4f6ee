"""What a model makes of recordings at one of its tensors: as they are, and shifted, louder or softer, with noise."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from pocketgraph.apps.live.speech import SoundModel
from pocketgraph.apps.retraining.photo_features import PLAIN, file_content
from pocketgraph.datasets.recordings import samples_at
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array

SHIFT, GAIN, NOISE = 0.1, 0.7, 0.02
"""Of the clip's length, to either side; a logarithm, at most; of the full scale, standard deviation at most."""


class RecordingFeatures:
    """What a model makes of recordings; its own spectrogram or MFCC is a part of it.

    Args:
        graph: takes a recording.
        tensor: what is wanted.
        rate: samples a second that it hears; by default as the graph says.
        threads: as in Session.
        seed: of the distorted variants.

    Raises:
        UsageError: the graph takes no sound.
    """

    scaling = None
    content = staticmethod(file_content)

    def __init__(
        self, graph: Graph, tensor: str, *, rate: int | None = None, threads: int | None = None, seed: int = 0
    ) -> None:
        self._model, self._threads, self._seed = SoundModel(graph, tensor, rate=rate, threads=threads), threads, seed

    @property
    def entrance(self) -> str:
        return self._model.samples

    @property
    def identity(self) -> str:
        model = self._model
        return f"{model.samples} {model.rate} {model.count} {model.output} {self._seed}"

    def rank(self) -> int:
        return self._run(np.zeros(self._model.count, np.float32)).ndim

    def of(self, path: str, content: bytes, variants: Sequence[int]) -> list[Array]:
        samples = samples_at(path, self._model.rate, self._model.count)
        key = int.from_bytes(hashlib.sha256(content).digest()[:8], "little")
        found = []
        for variant in variants:
            rng = np.random.default_rng([self._seed, key, variant])
            made = self._run(samples if variant == PLAIN else distorted(samples, rng))
            found.append(made[0] if made.ndim > 1 and len(made) == 1 else made)
        return found

    def at(self, graph: Graph, tensor: str) -> RecordingFeatures:
        return RecordingFeatures(graph, tensor, rate=self._model.rate, threads=self._threads, seed=self._seed)

    def prepared(self, path: str) -> Callable[[], object]:
        return partial(self._run, samples_at(path, self._model.rate, self._model.count))

    def _run(self, samples: Array) -> Array:
        found = self._model.session.run([self._model.output], self._model.feeds(samples))[0]
        return np.asarray(found, np.float32)


def distorted(samples: Array, rng: np.random.Generator) -> Array:
    """A recording a little earlier or later, louder or softer, with noise; float32 [count] from -1 to 1."""
    most = int(SHIFT * len(samples))
    shift = int(rng.integers(-most, most + 1))
    moved = np.zeros_like(samples)
    moved[max(0, shift) : len(samples) + min(0, shift)] = samples[max(0, -shift) : len(samples) - max(0, shift)]
    noise = rng.normal(0, rng.uniform(0, NOISE), len(samples))
    found: Array = np.clip(moved * np.exp(rng.uniform(-GAIN, GAIN)) + noise, -1, 1).astype(np.float32)
    return found
