"""What a model takes, as far as samples for it are concerned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pocketgraph.formats.example_writer import RecordFeature


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
            ``BMP`` or ``GIF``; empty for others.
        has_open_size: whether it takes pictures of any height or width.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    features: tuple[RecordFeature, ...] = ()
    takes_words: bool = False
    rate: int | None = None
    file_form: str = ""
    has_open_size: bool = False

    @property
    def takes_text(self) -> bool:
        """Whether it takes texts, or records of them."""
        return self.dtype.kind == "O" and not self.file_form


class RecordingReader(Protocol):
    """What makes a model's inputs out of a recording, for a model that reads such by itself.

    Attributes:
        rate: samples a second of what the model hears; None where it does not say.
    """

    rate: int | None

    def __call__(self, path: str, rate: int) -> list[np.ndarray[Any, Any]]:
        """The inputs for the recording in a file, resampled to ``rate`` samples a second."""
