"""How long two engines take, by turns, whatever else the machine has to do.

The clock goes on while a thread waits for a processor. Linux tells how long each thread waited. What an engine's only
thread, the calling one, waited is taken off. Of several threads others go on computing while one waits: a round in
which one did does not count. Elsewhere rounds that differ much say that the machine was busy. Where too few rounds
count, the time that processors computed for the process tells which engine takes less, though not how long it takes.
"""

from __future__ import annotations

import contextlib
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pocketgraph.litert.cost_model import (
    DISTURBED_SHARE,
    FEWEST_LONG_ROUNDS,
    FEWEST_MEASURED_ROUNDS,
    MEASURED_ROUNDS,
    MOST_MEASURED_ROUNDS,
    MOST_MEASURED_SECONDS,
    ROUND_SECONDS,
    UNSTEADY,
)

THREAD = "/proc/thread-self/schedstat"
"""Where Linux tells how long a thread ran and how long it waited, in nanoseconds, and how often it was chosen."""


class PairedTimes(NamedTuple):
    """The times of two programs.

    Attributes:
        seconds: of the first one's quickest run.
        ratio: of the second one's time to it, in the quickest rounds or in the typical one, whichever is more; where
            the machine was busy, of the processors' time in the typical ones.
        is_steady: whether the machine had time for them.
    """

    seconds: float
    ratio: float
    is_steady: bool


class _TimedRound(NamedTuple):
    """A program's runs in one round.

    Attributes:
        seconds: the quickest one took.
        computed: seconds that processors computed for the process in the one for which they did so least.
        is_disturbed: whether threads waited for a processor for part of it, besides what was taken off.
    """

    seconds: float
    computed: float
    is_disturbed: bool


def times_in_turns(first: Callable[[], object], second: Callable[[], object], threads: int) -> PairedTimes:
    """Both by turns, until enough rounds are undisturbed, or it takes too long."""
    undisturbed: list[tuple[_TimedRound, _TimedRound]] = []
    every: list[tuple[_TimedRound, _TimedRound]] = []
    began = time.perf_counter()
    enough, most = MEASURED_ROUNDS, MOST_MEASURED_ROUNDS
    while len(undisturbed) < enough and len(every) < most:
        pair = _round(first, threads), _round(second, threads)
        every.append(pair)
        if threads == 1 or not any(each.is_disturbed for each in pair):
            undisturbed.append(pair)
        taken = time.perf_counter() - began
        if taken > 2 * MOST_MEASURED_SECONDS:
            enough, most = FEWEST_LONG_ROUNDS, FEWEST_MEASURED_ROUNDS
        elif taken > MOST_MEASURED_SECONDS:
            enough, most = FEWEST_MEASURED_ROUNDS, MEASURED_ROUNDS
    has_enough = len(undisturbed) >= min(enough, FEWEST_MEASURED_ROUNDS)
    counted = undisturbed if has_enough else every
    firsts, seconds = ([pair[which].seconds for pair in counted] for which in (0, 1))
    is_even = all(statistics.median(each) <= UNSTEADY * min(each) for each in (firsts, seconds))
    if not (has_enough and is_even):
        return PairedTimes(min(firsts), _ratio_computed(every), is_steady=False)
    typical = statistics.median(b / a for a, b in zip(firsts, seconds, strict=True))
    return PairedTimes(min(firsts), max(min(seconds) / min(firsts), typical), is_steady=True)


def _ratio_computed(rounds: Sequence[tuple[_TimedRound, _TimedRound]]) -> float:
    """Of the processors' time, in the typical round: what disturbs a pair disturbs both."""
    return statistics.median(b.computed / max(a.computed, 1e-9) for a, b in rounds)


def own_time() -> float:
    """Seconds on a clock that stands still while this thread waits for a processor."""
    with _OwnClock() as clock:
        return clock.now()


class _OwnClock:
    """As ``own_time``, for the thread that opened it; looking at it takes two microseconds."""

    def __enter__(self) -> _OwnClock:
        try:
            self._file = os.open(THREAD, os.O_RDONLY)
        except OSError:
            self._file = -1
        return self

    def now(self) -> float:
        return time.perf_counter() - self.waited()

    def waited(self) -> float:
        """Seconds that the thread was ready to run and another one ran; 0 where the system does not tell."""
        return _waited(os.pread(self._file, 64, 0)) if self._file >= 0 else 0.0

    def __exit__(self, *error: object) -> None:
        if self._file >= 0:
            os.close(self._file)


def _round(run: Callable[[], object], threads: int) -> _TimedRound:
    """Runs a program of so many threads for ROUND_SECONDS, once at least."""
    with _OwnClock() as clock:

        def taken_off() -> float:
            return clock.waited() if threads == 1 else 0.0

        before, began, least, least_computed = _all_waited() - taken_off(), clock.now(), math.inf, math.inf
        while clock.now() - began < ROUND_SECONDS:
            start, computed = time.perf_counter() - taken_off(), time.process_time()
            run()
            least_computed = min(least_computed, time.process_time() - computed)
            waited = taken_off()  # before the time is taken: what it does not see counts as time, which is never less
            least = min(least, time.perf_counter() - waited - start)
        waited = _all_waited() - taken_off() - before
        return _TimedRound(least, least_computed, waited > DISTURBED_SHARE * (clock.now() - began))


def _all_waited() -> float:
    """Seconds that all threads of the process waited for a processor."""
    found = 0.0
    with contextlib.suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/schedstat", "rb") as file:
                found += _waited(file.read())
    return found


def _waited(content: bytes) -> float:
    return int(content.split()[1]) / 1e9
