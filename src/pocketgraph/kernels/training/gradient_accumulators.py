"""Gradient accumulators: gradients of several workers are gathered, and their mean is taken when enough are there."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Shape
from pocketgraph.kernels.arrays import Array, integer, ints, widened
from pocketgraph.kernels.registry import Context, kernel


@dataclass
class _Accumulator:
    """What was gathered since the last take.

    Attributes:
        name: for errors.
        dtype: of the gradients.
        shape: what a gradient must fit.
        mean: whether the mean is given, not the sum.
        step: gradients of an earlier step are thrown away.
        count: how many were gathered.
        total: their sum; a dense array, or by row for sparse gradients.
        times: for each row of sparse gradients, how many added to it.
        sizes: the dense shape of the last sparse gradient.
        lock: is held while a gradient is added or the sum is taken: workers do that in threads of their own.
    """

    name: str
    dtype: DType
    shape: Shape
    mean: bool
    step: int = 0
    count: int = 0
    total: Any = None
    times: dict[int, int] | None = None
    sizes: Array | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def taken(self, required: Array) -> Any:
        """The sum, after which the gathering begins again for the next step.

        Raises:
            RunError: fewer gradients than required are there; they would come from another thread.
        """
        wanted = integer(required)
        if wanted < 1:
            raise RunError(f"Argument num_required must be positive, not {wanted}")
        if self.count < wanted:
            raise RunError(
                f"the accumulator '{self.name}' has {self.count} gradients of {wanted}; it would wait for ever"
            )
        total, self.total = self.total, None
        self.step += 1
        return total


@kernel("ConditionalAccumulator", "ResourceConditionalAccumulator", "SparseConditionalAccumulator")
def conditional_accumulator(
    *, dtype: DType, shape: Shape, container: str = "", shared_name: str = "", reduction_type: str = "MEAN",
    context: Context,
) -> _Accumulator:  # fmt: skip
    """The accumulator of this name, which lives as long as the session."""
    if reduction_type not in ("MEAN", "SUM"):
        raise RunError(f"reduction_type is MEAN or SUM, not {reduction_type}")
    held = context.shared(
        f"accumulator {container}", shared_name, lambda name: _Accumulator(name, dtype, shape, reduction_type == "MEAN")
    )
    if held.dtype != dtype:
        raise RunError(f"the accumulator '{held.name}' has another type", where=f"node '{context.node.name}'")
    return held


@kernel("AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient")
def apply_gradient(handle: _Accumulator, local_step: Array, gradient: Array) -> tuple[()]:
    """Adds a gradient, unless it is of an earlier step."""
    with handle.lock:
        if not handle.shape.fits(gradient.shape) or (
            handle.total is not None and handle.count and handle.total.shape != gradient.shape
        ):
            raise RunError(f"Shape mismatch: expected {handle.shape}, got {list(gradient.shape)}")
        if integer(local_step) < handle.step:
            return ()
        if not handle.count or handle.total is None:
            handle.total, handle.count = gradient.copy(), 1
        else:
            handle.total, handle.count = np.asarray(handle.total + gradient, gradient.dtype), handle.count + 1
    return ()


@kernel("AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient")
def take_gradient(handle: _Accumulator, num_required: Array) -> Array:
    """The mean (or sum) of what was gathered."""
    with handle.lock:
        total, count = handle.taken(num_required), handle.count
        handle.count = 0
    if not handle.mean:
        return np.asarray(total)
    return np.asarray(widened(total) / widened(total).dtype.type(count)).astype(total.dtype)


@kernel("AccumulatorNumAccumulated", "ResourceAccumulatorNumAccumulated")
def num_accumulated(handle: _Accumulator) -> Array:
    return np.array(handle.count, np.int32)


@kernel("AccumulatorSetGlobalStep", "ResourceAccumulatorSetGlobalStep")
def set_global_step(handle: _Accumulator, new_global_step: Array) -> tuple[()]:
    handle.step = integer(new_global_step)
    return ()


@kernel("SparseAccumulatorApplyGradient")
def apply_sparse_gradient(
    handle: _Accumulator, local_step: Array, gradient_indices: Array, gradient_values: Array, gradient_shape: Array
) -> tuple[()]:
    """Adds the rows of a sparse gradient."""
    sizes = ints(gradient_shape)
    if gradient_indices.ndim != 1 or gradient_values.shape[:1] != gradient_indices.shape:
        raise RunError(f"{list(gradient_indices.shape)} indices for values of shape {list(gradient_values.shape)}")
    if sizes and (not handle.shape.fits(sizes) or tuple(sizes[1:]) != gradient_values.shape[1:]):
        raise RunError(f"Shape mismatch: expected {handle.shape}, got {list(sizes)}")
    with handle.lock:
        if integer(local_step) < handle.step:
            return ()
        if not handle.count or handle.total is None:
            handle.total, handle.times, handle.count = {}, {}, 0
        assert handle.times is not None
        for row, value in zip(ints(gradient_indices), gradient_values, strict=True):
            before = handle.total.get(row)
            handle.total[row] = value.copy() if before is None else np.asarray(before + value, value.dtype)
            handle.times[row] = handle.times.get(row, 0) + 1
        handle.count += 1
        handle.sizes = gradient_shape.astype(np.int64)
    return ()


@kernel("SparseAccumulatorTakeGradient")
def take_sparse_gradient(handle: _Accumulator, num_required: Array, *, dtype: DType) -> tuple[Array, Array, Array]:
    """(rows in order, their means over the gradients that had them, the dense shape)."""
    with handle.lock:
        total = handle.taken(num_required)
        times, sizes = handle.times or {}, handle.sizes
        handle.count, handle.times = 0, None
    rows = sorted(total)
    values = [np.asarray(total[row] / times[row] if handle.mean else total[row]).astype(dtype.numpy) for row in rows]
    inner = ints(sizes)[1:] if sizes is not None else ()
    stacked = np.stack(values) if values else np.zeros((0, *inner), dtype.numpy)
    declared = handle.shape.dims  # what gradients say of their own first size is not looked at
    first = declared[0] if declared else None
    return np.array(rows, np.int64), stacked, np.array([-1 if first is None else first, *stacked.shape[1:]], np.int64)
