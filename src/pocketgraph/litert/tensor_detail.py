"""What a .tflite file takes or gives in one place, as its interpreter tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.litert.constant import Array


class TensorDetail(NamedTuple):
    """An input or output.

    Attributes:
        name: of the tensor, or in a signature.
        shape: its sizes; -1 where a signature leaves one open.
        dtype: the NumPy type of its elements, codes where it has a scale.
        scale, zero_point: what codes stand for, ``scale * (code - zero_point)``; a scale of 0 means plain numbers.
        declared: the sizes with -1 for each that is open: inputs may have another there from run to run.
        place: its number in its subgraph; -1 where that is of no use.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    scale: float
    zero_point: int
    declared: tuple[int, ...] = ()
    place: int = -1

    @staticmethod
    def of_interpreter(entry: Mapping[str, Any]) -> TensorDetail:
        """What LiteRT's interpreter tells of an input or output (``get_input_details``)."""
        scale, zero = entry["quantization"]
        shape, declared = (tuple(map(int, entry.get(key, ()))) for key in ("shape", "shape_signature"))
        return TensorDetail(str(entry["name"]), shape, np.dtype(entry["dtype"]), float(scale), int(zero), declared)

    def coded(self, array: Array) -> Array:
        """What the file takes for an array: codes for floats where it takes codes, else the array in its type."""
        if array.dtype.name in ("float16", "bfloat16"):  # too narrow to divide in
            array = array.astype(np.float32)
        if not self.scale or array.dtype.kind != "f":
            return np.asarray(array, None if self.dtype.kind in "SO" else self.dtype, order="C")
        info = np.iinfo(self.dtype)
        codes: Array = np.clip(np.rint(array / self.scale) + self.zero_point, info.min, info.max).astype(self.dtype)
        return codes

    def number(self, array: Array) -> Array:
        """What an array of the file stands for: float32 for codes, else itself."""
        if not self.scale:
            return array
        numbers: Array = (array.astype(np.float32) - np.float32(self.zero_point)) * np.float32(self.scale)
        return numbers
