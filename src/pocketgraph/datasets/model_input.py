"""What a model takes, as far as samples for it are concerned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True)
class ModelInput:
    """What a model takes in one place.

    Attributes:
        name: of the tensor.
        shape: its shape; 1 where it is open.
        dtype: the NumPy type of what is fed; float32 also where the file takes quantized values.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class RecordingReader(Protocol):
    """What makes a model's inputs out of a recording, for a model that reads such by itself.

    Attributes:
        rate: samples a second of what the model hears; None where it does not say.
    """

    rate: int | None

    def __call__(self, path: str, rate: int) -> list[np.ndarray[Any, Any]]:
        """The inputs for the recording in a file, resampled to ``rate`` samples a second."""
