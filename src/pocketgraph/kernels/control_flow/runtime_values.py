"""What the runtime itself tells a graph or puts in place of something: the time, the device, unused results."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from pocketgraph.graph import DType, Shape
from pocketgraph.kernels.arrays import Array, nothing, reserve
from pocketgraph.kernels.registry import kernel


@kernel("FakeParam")
def fake_param(*, dtype: DType, shape: Shape) -> Array:
    """In place of a result that nobody uses, in the branch that does not compute it: zeros, none along open axes."""
    sizes = [] if shape.dims is None else [size or 0 for size in shape.dims]
    return nothing(reserve(sizes, dtype.numpy), dtype.numpy)


@kernel("Timestamp")
def timestamp() -> Array:
    """Seconds since 1970."""
    return np.array(time.time())


@kernel("DeviceIndex")
def device_index(*, device_names: Sequence[str]) -> Array:
    """The place of the CPU among these names; their number when it is not there."""
    names = [str(name).upper() for name in device_names]
    return np.array(names.index("CPU") if "CPU" in names else len(names), np.int32)


@kernel("ToBool")
def to_bool(input: Array) -> Array:
    """As a branch asks: a number is not 0, a text not empty, a tensor has elements."""
    if input.ndim:
        return np.array(input.size > 0)
    return np.array(bool(input.item()) if input.dtype.kind != "O" else len(input.item()) > 0)
