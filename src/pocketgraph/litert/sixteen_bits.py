"""Arrays of 16-bit floats on their way into and out of a program that computes with float32 (see narrow_floats.py)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.tensor import Array


def computed_in(name: str) -> str:
    """The NumPy type, by name, that a program computes with for arrays of this one."""
    return "float32" if name in ("float16", "bfloat16") else name


def numpy_type(name: str) -> np.dtype[Any]:
    """The NumPy type of this name; NumPy itself knows all but bfloat16."""
    return DType.named(name).numpy if name == "bfloat16" else np.dtype(name)


@lru_cache(maxsize=64)
def _name_of(kind: np.dtype[Any]) -> str:
    """Its name, which NumPy puts together anew each time; arrays come here in every round of a loop."""
    name: str = kind.name
    return name


def as_type(array: Array, name: str) -> Array:
    """An array in the NumPy type of this name; itself where it is of that type. What is too large is infinite."""
    if _name_of(array.dtype) == name:
        return array
    with np.errstate(over="ignore"):
        return array.astype(numpy_type(name))
