"""Updates of variables element by element, over blocks that stay in the processor's cache.

Large values are changed where they lie, which a Ctrl-C does not interrupt; small ones, and all in a session without the
pass ``updates_in_place``, are made anew.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from types import FrameType

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.state.variables import Variable


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Keeps a Ctrl-C back until the block has ended: what handles it, such as by KeyboardInterrupt, is called then.

    Only the main thread is interrupted; in another one this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # the system's, which ends the process, or one that is not Python's
        yield
        return
    try:
        signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if held:
            handler(*held[0])


IN_PLACE = "updates_in_place"
"""The pass that changes large values where they lie."""

BLOCK = 1 << 15
"""Elements that are updated at a time: with two slots and the gradient half a megabyte, and what is made of them."""

LARGE = 1 << 13
"""Elements from which on making values anew takes longer than keeping a Ctrl-C back, some 10 µs."""


def update(variables: Sequence[Variable], grad: Array, step: Callable[..., None]) -> None:
    """Changes the values of variables by a gradient, with nobody changing them in between.

    Args:
        variables: the variables, of one shape.
        grad: the gradient, of that shape.
        step: takes the same part of each value and of the gradient, and writes the new values into those of the values.

    Raises:
        RunError: a variable has no value, or one of another shape.
    """
    is_large = grad.size > LARGE
    with uninterrupted() if is_large else nullcontext(), ExitStack() as stack:
        for variable in sorted(variables, key=id):
            stack.enter_context(variable.lock)
        made = [_fitting(variable, grad.shape, is_copied=not is_large) for variable in variables]
        if not is_large:
            step(*[array.reshape(-1) for array in (*made, grad)])
            for variable, array in zip(variables, made, strict=True):
                variable.keep(array)
            return
        made.clear()  # so that nobody has the values
        rooms: list[Array] = []
        try:
            rooms.extend(variable.taken() for variable in variables)
            parts = [array.reshape(-1) for array in (*rooms, grad)]
            for start in range(0, grad.size, BLOCK):
                step(*[part[start : start + BLOCK] for part in parts])
        finally:
            for variable, room in zip(variables, rooms, strict=False):
                variable.keep(room)


def _fitting(variable: Variable, shape: tuple[int, ...], *, is_copied: bool) -> Array:
    value = variable.read()
    if value.shape == shape:
        return np.array(value, order="C") if is_copied else value
    raise RunError(
        f"an update of shape {list(shape)} does not fit the value's shape {list(value.shape)}",
        where=f"variable '{variable.name}'",
    )
