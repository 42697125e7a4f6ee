"""Constants in turn, each made by another thread while whoever asked for the one before works with that."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from pocketgraph.budgets import started
from pocketgraph.litert.constant import Array

AHEAD = "constants_ahead"
"""The pass by which another thread makes large constants that are written."""
WORTH_A_THREAD = 4 << 20  # bytes
TOGETHER = 1 << 20  # bytes handed over at a time: whenever a thread waits and is woken, 0.1 MB could be packed
ALIGNMENT = 64  # bytes


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


def computed(constants: Sequence[ConstantSource], *, passing: bool = False, ahead: bool = True) -> Iterator[Array]:
    """The values of each constant, contiguous.

    Args:
        constants: which.
        passing: whether whoever asks for the next one is done with the one before, whose memory is used again.
        ahead: whether another thread makes them, where they are large.
    """
    if not ahead or sum(constant.nbytes for constant in constants) < WORTH_A_THREAD:
        yield from (constant.numpy() for constant in constants)
        return
    maker = _Ahead(constants, passing)
    if not maker.is_started:
        yield from (constant.numpy() for constant in constants)
        return
    try:
        yield from maker
    finally:
        maker.stop()


class _Ahead:
    def __init__(self, constants: Sequence[ConstantSource], passing: bool) -> None:
        self._groups = _groups(constants)
        most = max(sum(map(_room, group)) for group in self._groups)
        self._memory = [np.empty(most, np.uint8) for _ in range(2)] if passing else None
        self._wanted, self._made = threading.Semaphore(1), threading.Semaphore(0)
        self._next: list[Array] | BaseException = []
        self._is_stopped = False
        self._thread = started(self._work, "constants")

    @property
    def is_started(self) -> bool:
        """Whether there was a thread to be had."""
        return self._thread is not None

    def __iter__(self) -> Iterator[Array]:
        for _ in self._groups:
            self._made.acquire()
            found, self._next = self._next, []
            if isinstance(found, BaseException):
                raise found
            self._wanted.release()
            yield from found

    def stop(self) -> None:
        self._is_stopped = True
        self._wanted.release()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        try:
            for place, group in enumerate(self._groups):
                self._wanted.acquire()
                if self._is_stopped:
                    return
                self._next = self._together(group, place)
                self._made.release()
        except BaseException as error:  # whoever asks has it
            self._next = error
            self._made.release()

    def _together(self, group: Sequence[ConstantSource], place: int) -> list[Array]:
        if self._memory is None:
            return [constant.numpy() for constant in group]
        made, memory = [], self._memory[place % 2]
        for constant in group:
            room, memory = memory[: constant.nbytes], memory[_room(constant) :]
            made.append(constant.numpy(room.view(constant.dtype) if len(room) == constant.nbytes else None))
        return made


def _room(constant: ConstantSource) -> int:
    """Bytes of memory that a constant is made in, so that the next one is aligned."""
    return -(-constant.nbytes // ALIGNMENT) * ALIGNMENT if constant.permutation is not None else 0


def _groups(constants: Sequence[ConstantSource]) -> list[list[ConstantSource]]:
    """Constants that are handed over together."""
    groups: list[list[ConstantSource]] = [[]]
    size = 0
    for constant in constants:
        size += constant.nbytes
        if size > TOGETHER and groups[-1]:
            groups.append([])
            size = constant.nbytes
        groups[-1].append(constant)
    return groups
