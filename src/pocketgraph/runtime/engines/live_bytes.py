"""Which arrays of a run live, and how many bytes they are together."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph.tensor import Array


class LiveBytes:
    """Which arrays of a run live, and how many bytes they are together.

    Arrays leave by themselves when nothing holds them any more; views count with what they look at; constants that lie
    in the model's file do not count.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.live = 0
        self._arrays: dict[int, weakref.ref[Array]] = {}
        self._lock = threading.RLock()

    def hold(self, value: Any) -> None:
        """Counts an array from now on."""
        if not isinstance(value, np.ndarray):
            return
        while isinstance(value.base, np.ndarray):
            value = value.base
        if not value.flags.owndata:
            return
        key, size = id(value), value.nbytes
        if value.dtype == object:  # texts are many times what points at them
            size += sum(len(item) for item in value.ravel().tolist() if isinstance(item, bytes))

        def let_go(_: object) -> None:
            with self._lock:
                if self._arrays.pop(key, None) is not None:
                    self.live -= size

        with self._lock:
            if key not in self._arrays:
                self._arrays[key] = weakref.ref(value, let_go)
                self.live += size

    def check(self, more: int, where: str, what: str) -> None:
        """Refuses ``more`` bytes that do not fit.

        Raises:
            RunError: they do not; says who wants them, how many, and how many there are.
        """
        if self.live + more > self.limit:
            raise RunError(
                f"out of memory: {what} takes {more} bytes, {self.live} of {self.limit} are in use",
                where=where,
                hint="feed less at once, or pass a larger memory_limit to Session",
            )

    def settle(self, where: str) -> None:
        """Refuses what was made although it could not be foreseen.

        Raises:
            RunError: the limit is passed already.
        """
        if self.live > self.limit:
            raise RunError(
                f"out of memory: {self.live} bytes are in use, {self.limit} are allowed",
                where=where,
                hint="feed less at once, or pass a larger memory_limit to Session",
            )
