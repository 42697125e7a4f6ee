"""What a model takes, as far as samples for it are concerned."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pocketgraph.formats.example_writer import RecordFeature
from pocketgraph.graph import Graph, canonical

SERVING = "serving_default_"
"""What TensorFlow 2 puts before the keys of the main signature to name its placeholders."""


@dataclass(frozen=True)
class ModelInput:
    """What a model takes in one place.

    Attributes:
        name: of the tensor.
        shape: its shape; 1 where it is open.
        dtype: the NumPy type of what is fed; float32 also where the file takes quantized values. Of objects it takes
            texts.
        features: of an input of serialized Examples, what is read out of them.
        takes_words: whether it takes the words of a text, an element each; as many as its last size, 1 for any number.
        rate: samples a second of a recording that goes in, as ``model_sample_rate`` finds it; None where nothing tells.
        file_form: of an input that takes a picture as the bytes of its file, what the model decodes: ``JPEG``, ``PNG``,
            ``BMP`` or ``GIF``, with `` in base64`` behind it where it takes them so; empty for others.
        has_open_size: whether it takes pictures of any height or width.
        keys: what else its array may be called: as signatures call it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    features: tuple[RecordFeature, ...] = ()
    takes_words: bool = False
    rate: int | None = None
    file_form: str = ""
    has_open_size: bool = False
    keys: tuple[str, ...] = ()

    @property
    def takes_text(self) -> bool:
        """Whether it takes texts, or records of them."""
        return self.dtype.kind == "O" and not self.file_form

    @property
    def column(self) -> str:
        """The input's name as a column of a table would be called."""
        return self.name.removesuffix(":0").removeprefix(SERVING).rsplit("/", 1)[-1]


def signature_keys(graph: Graph, tensor: str) -> tuple[str, ...]:
    """What the signatures of a graph call a tensor that they take."""
    signatures = graph.public_signatures.values()
    named = ((key, taken) for signature in signatures for key, taken in signature.inputs.items())
    return tuple(dict.fromkeys(key for key, taken in named if canonical(taken) == canonical(tensor)))


def places_by_name(taken: Sequence[ModelInput], given: Sequence[ModelInput]) -> list[int]:
    """For each input of one model the place of the one of the same name in another; places stay as they are where not
    all have such a name.

    Names are compared without what formats write differently: ``serving_default_a/b:0`` is ``a_b``.
    """
    wanted, names = (
        [re.sub(r"\W+", "_", item.name.removesuffix(":0")).removeprefix(SERVING) for item in items]
        for items in (taken, given)
    )
    if len(set(names)) == len(names) and sorted(wanted) == sorted(names):
        return [names.index(name) for name in wanted]
    return list(range(len(taken)))


def signature_prefix(inputs: Sequence[str], keys: Collection[str]) -> str:
    """What TensorFlow 2 puts before the keys of a signature to name its placeholders, as in ``encode_left:0``.

    The shortest beginning that the inputs have in common, behind which each is one of ``keys``; "" where none is.
    """
    tensors = [name.removesuffix(":0") for name in inputs]
    starts = [tensors[0][: at + 1] for at, letter in enumerate(tensors[0]) if letter == "_"]
    wanted = ({start + key for key in keys} for start in starts)
    return next((start for start, names in zip(starts, wanted, strict=True) if names.issuperset(tensors)), "")


class RecordingReader(Protocol):
    """What makes a model's inputs out of a recording, for a model that reads such by itself.

    Attributes:
        rate: samples a second of what the model hears; None where it does not say.
    """

    rate: int | None

    def __call__(self, path: str, rate: int) -> list[np.ndarray[Any, Any]]:
        """The inputs for the recording in a file, resampled to ``rate`` samples a second."""
