"""Parts of variables assigned in place: ScatterNd on variables, and StridedSlice as what is assigned to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.array.gather_scatter import are_ignored, good_ones, scattered
from pocketgraph.kernels.array.slicing import registers_put
from pocketgraph.kernels.arrays import Array, kept_nan
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.state.variables import Variable, change


def changed_at(variable: Variable, indices: Array, updates: Array, how: Any, policy: str) -> None:
    """Combines ``updates`` with the parts of the variable that ``indices`` name.

    Args:
        variable: of shape S.
        indices: integers (…, depth); each row names the part ``variable[row]``. A vector names a part a number.
        updates: (…) + S[depth:], of the variable's type.
        how: the ufunc that combines old and new; None replaces.
        policy: "IGNORE" skips rows that point outside; all others refuse them.

    Raises:
        RunError: a row points outside, the shapes do not fit, or the policy is unknown.
    """
    are_ignored(policy)
    with variable.lock:
        now = variable.read()
        indices = indices[:, None] if indices.ndim == 1 else indices
        if not indices.ndim or indices.shape[-1] > now.ndim:
            raise RunError(
                f"indices of shape {list(indices.shape)} do not index a variable of shape {list(now.shape)}",
                where=f"variable '{variable.name}'",
            )
        indices, updates = good_ones(now.shape, indices, updates, policy)
        if how in (np.fmin, np.fmax):
            change(variable, lambda value: kept_nan(value, scattered(value.copy(), indices, updates, how)))
        else:
            change(variable, lambda value: scattered(value.copy(), indices, updates, how))


HOW = {"Update": None, "Add": np.add, "Sub": np.subtract, "Min": np.fmin, "Max": np.fmax}
"""By the end of the op's name: how ScatterNd… combines old and new."""


def _register(name: str, how: Any) -> None:
    @kernel(f"ScatterNd{name}")
    def scatter_nd(ref: Variable, indices: Array, updates: Array, *, bad_indices_policy: str = "") -> Variable:
        changed_at(ref, indices, updates, how, bad_indices_policy)
        return ref

    @kernel(f"ResourceScatterNd{name}")
    def resource_scatter_nd(
        ref: Variable, indices: Array, updates: Array, *, bad_indices_policy: str = ""
    ) -> tuple[()]:
        changed_at(ref, indices, updates, how, bad_indices_policy)
        return ()


for _name, _how in HOW.items():
    _register(_name, _how)


def _assigned(ref: Variable, index: tuple[Any, ...], value: Array) -> Variable:
    def assign(now: Array) -> Array:
        part = now[index]
        if not part.size:
            return now
        more = max(value.ndim - part.ndim, 0)
        fits = all(a in (1, b) for a, b in zip(value.shape[more:][::-1], part.shape[::-1], strict=False))
        if not fits or math.prod(value.shape[:more]) != 1:
            raise RunError(
                f"a value of shape {list(value.shape)} does not fit the slice of shape {list(part.shape)}",
                where=f"variable '{ref.name}'",
            )
        after: Array = now.copy()
        after[index] = value.reshape(value.shape[more:])[()]
        return after

    return change(ref, assign)


def _resource_assigned(resource: Variable, index: tuple[Any, ...], value: Array) -> tuple[()]:
    _assigned(resource, index, value)
    return ()


registers_put("StridedSliceAssign", _assigned)
registers_put("ResourceStridedSliceAssign", _resource_assigned)
