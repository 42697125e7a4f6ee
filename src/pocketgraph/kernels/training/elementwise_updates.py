"""Updates of variables element by element, over blocks that stay in the processor's cache, where the values lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.state.variables import Variable

BLOCK = 1 << 15
"""Elements that are updated at a time: with two slots and the gradient half a megabyte, and what is made of them."""


def update(variables: Sequence[Variable], grad: Array, step: Callable[..., None]) -> None:
    """Changes the values of variables by a gradient, with nobody changing them in between.

    Args:
        variables: the variables, of one shape.
        grad: the gradient, of that shape.
        step: takes the same part of each value and of the gradient, and writes the new values into those of the values.

    Raises:
        RunError: a variable has no value, or one of another shape.
    """
    with ExitStack() as stack:
        for variable in sorted(variables, key=id):
            stack.enter_context(variable.lock)
        for variable in variables:
            if variable.read().shape != grad.shape:
                raise RunError(
                    f"an update of shape {list(grad.shape)} does not fit the value's shape "
                    f"{list(variable.read().shape)}", where=f"variable '{variable.name}'",
                )  # fmt: skip
        rooms = [variable.taken() for variable in variables]
        try:
            parts = [array.reshape(-1) for array in (*rooms, grad)]
            for start in range(0, grad.size, BLOCK):
                step(*(part[start : start + BLOCK] for part in parts))
        finally:
            for variable, room in zip(variables, rooms, strict=True):
                variable.keep(room)
