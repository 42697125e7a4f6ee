"""The values that a session's variables have, and others in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.state.variables import Variable


def values_of(state: Mapping[str, Any]) -> dict[str, Array]:
    """The values of the variables that have one, by their shared names, or else by their nodes'.

    Args:
        state: what lives from run to run.
    """
    values = {name: variable.read() for name, variable in _initialized(state).items()}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}  # lists are no arrays


def assign(state: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Gives variables other values: all of them, or none where one does not fit.

    Args:
        state: what lives from run to run.
        values: by the names that ``values_of`` has, of the variables' shapes and types.

    Raises:
        RunError: a variable is not there or has no value yet, or a value does not fit.
    """
    held = _initialized(state)
    arrays = {name: np.asarray(value) for name, value in values.items()}
    for name, array in arrays.items():
        if name not in held:
            raise RunError(f"there is no variable '{name}' that has a value", hint="run the target init first")
        present = held[name].read()
        if array.shape != present.shape or array.dtype != present.dtype:
            raise RunError(
                f"the variable '{name}' is {present.dtype}{list(present.shape)}, not {array.dtype}{list(array.shape)}"
            )
    for name, array in arrays.items():
        held[name].assign(array.copy())


def _initialized(state: Mapping[str, Any]) -> dict[str, Variable]:
    return {item.name: item for item in state.values() if isinstance(item, Variable) and item.is_initialized}
