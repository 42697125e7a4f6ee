"""Tensors whose elements are dealt out anew in turn, so that some axes grow (sub-pixel convolution)."""

from __future__ import annotations

import math

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import Shape
from pocketgraph.kernels.arrays import Array, reserve
from pocketgraph.kernels.registry import kernel


@kernel("PeriodicResample")
def periodic_resample(values: Array, *, shape: Shape) -> Array:
    """``values`` with axes as long as ``shape`` says, which the one axis that it leaves open pays for: the slices of
    that axis are dealt out in turn along the axes that grow (sub-pixel convolution, for any rank).

    Where the elements do not go up, the original shows what memory holds; here stand zeros.

    Raises:
        RunError: another rank, not one open axis, or an axis that would shrink.
    """
    dims = shape.dims
    if dims is None or len(dims) != values.ndim or sum(size is None for size in dims) != 1:
        raise RunError(f"periodic_resample needs one open axis for {list(values.shape)}, not the shape {shape}")
    open_axis = dims.index(None)
    sizes = [1 if size is None else size for size in dims]
    if any(size < old for axis, (size, old) in enumerate(zip(sizes, values.shape, strict=True)) if axis != open_axis):
        raise RunError(
            f"periodic_resample expects the size of non-adjustable dimensions to be at least as large: {shape}"
        )
    sizes[open_axis] = values.size // math.prod(sizes)
    result = np.zeros(reserve(sizes, values.dtype), values.dtype)
    if not result.size:
        return result
    places = np.indices(sizes)
    source, along, times = [], places[open_axis].copy(), sizes[open_axis]
    for axis, (size, old) in enumerate(zip(sizes, values.shape, strict=True)):
        factor = 1 if axis == open_axis else -(-size // old)
        source.append(places[axis] // factor)
        if axis != open_axis:
            along += places[axis] % factor * times
            times *= factor
    source[open_axis] = along
    flat = sum(place * math.prod(values.shape[axis + 1 :]) for axis, place in enumerate(source))
    is_there = flat < values.size
    result[is_there] = values.ravel()[flat[is_there]]
    return result
