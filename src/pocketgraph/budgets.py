"""How much time and memory and how many processors may be taken: bounds that planning and every kernel ask for.

Whoever starts a run states them for its thread (``limits``); whoever is about to work long or to make something large
asks (``check_time``, ``check_memory``) and knows nothing of runs. Without a stated bound, one result may take a quarter
of the machine's memory, and 4 GiB at most: what a kernel needs on the way is a multiple of it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from pocketgraph.errors import DeadlineError, RunError

T = TypeVar("T")

BETWEEN_LOOKS = 64  # items of a long loop that go by before the clock is looked at again
SHARE = 0.25
"""Of the machine's memory, that one result may take where no limit is stated."""
LARGEST_RESULT = 1 << 32
"""Bytes that it may take on a machine of any size."""
UNKNOWN_MEMORY = 1 << 33
"""Bytes that a machine is taken to have which does not say."""
CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class Deadline:
    """The moment by which a run must be done.

    Args:
        milliseconds: how long the run may take from now.
    """

    def __init__(self, milliseconds: int) -> None:
        self.milliseconds = milliseconds
        self._end = time.perf_counter() + milliseconds / 1000

    def left(self) -> float:
        """Seconds that are left; 0 when none are."""
        return max(0.0, self._end - time.perf_counter())

    def expire(self) -> None:
        """Lets the time be over now."""
        self._end = time.perf_counter()

    def check(self, where: str) -> None:
        """Ends a run whose time is over.

        Args:
            where: what is being done or was just done, for the error.

        Raises:
            DeadlineError: the time is over.
        """
        if time.perf_counter() > self._end:
            raise DeadlineError(
                f"Timed out waiting for notification: the {self.milliseconds} ms of the run are over",
                where=where,
                hint="allow more with RunOptions(timeout_in_ms=...)",
            )


class _ThreadLimits(threading.local):
    deadline: Deadline | None = None
    memory: int | None = None


_limits = _ThreadLimits()


@contextmanager
def limits(deadline: Deadline | None = None, memory: int | None = None) -> Iterator[None]:
    """States what this thread's work may take until the block ends; None leaves a bound as it is.

    Args:
        deadline: when it must be done.
        memory: bytes that one more result may take.
    """
    before = _limits.deadline, _limits.memory
    if deadline is not None:
        _limits.deadline = deadline
    if memory is not None:
        _limits.memory = memory
    try:
        yield
    finally:
        _limits.deadline, _limits.memory = before


def check_time(where: str = "") -> None:
    """Ends work whose time is over, as ``Deadline.check``."""
    deadline = _limits.deadline
    if deadline is not None:
        deadline.check(where)


def timed(items: Iterable[T]) -> Iterable[T]:
    """The items of a long loop in Python, with ``check_time`` now and then; without a deadline just the items."""
    return items if _limits.deadline is None else _timed(items)


def _timed(items: Iterable[T]) -> Iterator[T]:
    for place, item in enumerate(items):
        if not place % BETWEEN_LOOKS:
            check_time()
        yield item


def stated_memory() -> int | None:
    """Bytes that may still be taken where a limit is stated; None where none is."""
    return _limits.memory


def allowance() -> int:
    """Bytes that one result may take now."""
    memory = _limits.memory
    return share_of_memory() if memory is None else memory


def check_memory(wanted: int, what: str = "a result") -> None:
    """Refuses a result that is too large, before memory is taken.

    Args:
        wanted: its bytes.
        what: what it is, for the error.

    Raises:
        RunError: more than ``allowance``.
    """
    if wanted > allowance():
        raise too_large(wanted, what)


def too_large(wanted: int, what: str) -> RunError:
    """The error for a result of more bytes than may be taken."""
    memory = _limits.memory
    if memory is not None:
        return RunError(
            f"out of memory: {what} would take {wanted:,} bytes; {max(0, memory):,} are left",
            hint="feed less at once, or pass a larger memory_limit to Session",
        )
    return RunError(
        f"{what} would take {wanted:,} bytes; a quarter of the machine's memory, and at most 4 GiB, is "
        f"{share_of_memory():,}",
        hint="feed less at once; Session(memory_limit=...) states another bound",
    )


@cache
def share_of_memory() -> int:
    """``SHARE`` of the bytes that this process can have: what the machine has, or its group may take."""
    return min(LARGEST_RESULT, int(min(_physical_memory(), *map(_group_limit, CGROUPS)) * SHARE))


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return _windows_memory() or UNKNOWN_MEMORY


def _windows_memory() -> int:
    import ctypes

    class _MemoryStatus(ctypes.Structure):  # MEMORYSTATUSEX of the Windows API
        _fields_ = [("length", ctypes.c_ulong), ("load", ctypes.c_ulong)] + [
            (name, ctypes.c_ulonglong) for name in ("physical", "a", "b", "c", "d", "e", "f")
        ]

    status = _MemoryStatus()
    status.length = ctypes.sizeof(status)
    try:
        found = ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return 0
    return int(status.physical) if found else 0


def _group_limit(path: str) -> int:
    try:
        with open(path, "rb") as file:
            text = file.read().strip()
    except OSError:
        return 1 << 62
    return int(text) if text.isdigit() else 1 << 62


def usable_processors() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def started(work: Callable[[], object], name: str) -> threading.Thread | None:
    """A thread that does the work, and that the end of the process does not wait for; None where the process has as
    many threads as it may, or is ending."""
    thread = threading.Thread(target=work, name=f"pocketgraph {name}", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread
