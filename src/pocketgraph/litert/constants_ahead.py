"""Constants in turn, each made by another thread while whoever asked for the one before works with that."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from pocketgraph.litert.constant import Array

WORTH_A_THREAD = 4 << 20  # bytes


class ConstantSource(Protocol):
    """What is made when its turn comes: a constant."""

    @property
    def nbytes(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def permutation(self) -> tuple[int, ...] | None:
        """None where the values lie somewhere already; else they are made, in memory that may be given."""
        ...

    def numpy(self, into: Array | None = None) -> Array:
        """The values, contiguous, perhaps in this memory for as many elements."""


def computed(constants: Sequence[ConstantSource], *, passing: bool = False) -> Iterator[Array]:
    """The values of each constant, contiguous.

    Args:
        constants: which.
        passing: whether whoever asks for the next one is done with the one before, whose memory is used again.
    """
    if sum(constant.nbytes for constant in constants) < WORTH_A_THREAD:
        yield from (constant.numpy() for constant in constants)
        return
    ahead = _Ahead(constants, passing)
    try:
        yield from ahead
    finally:
        ahead.stop()


class _Ahead:
    def __init__(self, constants: Sequence[ConstantSource], passing: bool) -> None:
        self._constants = constants
        most = max((constant.nbytes for constant in constants if constant.permutation is not None), default=0)
        self._memory = [np.empty(most, np.uint8) for _ in range(2)] if passing else None
        self._wanted, self._made = threading.Semaphore(1), threading.Semaphore(0)
        self._next: Array | BaseException | None = None
        self._is_stopped = False
        self._thread = threading.Thread(target=self._work, name="pocketgraph constants", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[Array]:
        for _ in self._constants:
            self._made.acquire()
            found, self._next = self._next, None
            if isinstance(found, BaseException):
                raise found
            self._wanted.release()
            assert found is not None
            yield found

    def stop(self) -> None:
        self._is_stopped = True
        self._wanted.release()
        self._thread.join()

    def _work(self) -> None:
        try:
            for place, constant in enumerate(self._constants):
                self._wanted.acquire()
                if self._is_stopped:
                    return
                into = None
                if self._memory is not None:
                    into = self._memory[place % 2][
                        : constant.nbytes // constant.dtype.itemsize * constant.dtype.itemsize
                    ]
                self._next = constant.numpy(None if into is None else into.view(constant.dtype))
                self._made.release()
        except BaseException as error:  # whoever asks has it
            self._next = error
            self._made.release()
