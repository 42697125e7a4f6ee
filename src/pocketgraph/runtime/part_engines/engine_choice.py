"""Which engine runs a large part: each that is installed is measured beside LiteRT once on this machine.

LiteRT begins, so that no first result waits. Where the cache knows of a faster engine, that one is opened in another
thread once the runs to come are likely to win back what opening takes; where it does not, the engines are measured when
the process is idle, in one process at a time. What was measured is kept beside the part: for this kind of processor,
this number of threads and this version of the engine. What was measured while the machine was busy holds for this
process alone, and is measured again.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pocketgraph.budgets import started
from pocketgraph.errors import PocketgraphError, RunError
from pocketgraph.formats.files import is_overwritten
from pocketgraph.litert import cache
from pocketgraph.litert.cached_executable import open_entry
from pocketgraph.litert.cost_model import CLOSE_TIMES, LARGE_PART, MEASURING
from pocketgraph.litert.executable import Executable
from pocketgraph.litert.host import cpu
from pocketgraph.litert.running.runner import Runner
from pocketgraph.litert.sixteen_bits import numpy_type
from pocketgraph.runtime.folder_turns import turn
from pocketgraph.runtime.memory_trim import trim_memory
from pocketgraph.runtime.part_engines.engine_times import MEMBER, RUNS, EngineTimes, fastest, measurements, usable
from pocketgraph.runtime.part_engines.paired_timing import own_time, times_in_turns
from pocketgraph.runtime.part_engines.part_engine import OfferedPart, PartEngine

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array
    from pocketgraph.runtime.certificates.part_reference import PartReference

AGAIN = 8  # times as many runs, after which is measured again what was measured while the machine was busy
TRIES = 4  # of a process
WAITS = 20.0  # seconds, that somebody who asks for measurements waits for other processes that measure

_busy = threading.Lock()
"""Is held while another engine computes or is opened in a thread that the process does not wait for."""


class _EngineChoice:
    """Chooses the engine of one compiled part.

    Args:
        executable: the part, as LiteRT runs it.
        nodes: makes what computes its nodes on the reference engine; None where the graph was not read.
        certify: sees to it that the part is compared with the reference engine, after another engine has taken over.
    """

    def __init__(
        self, executable: Executable, nodes: Callable[[], PartReference] | None, certify: Callable[[], object]
    ) -> None:
        self.executable = executable
        self.nodes = nodes
        self.certify = certify
        self._runs, self._tries = RUNS, TRIES
        self._is_readable = True

    def prepare(self) -> None:
        """Sees to it that the part will run on the fastest engine, and takes no time for it now."""
        found = fastest(self.executable)
        if found:
            after = measurements(self.executable)[found].after
            self.executable.after(after, lambda: started(self.decide, "engines"))
            return
        self._measure_after(RUNS)

    def _measure_after(self, runs: int) -> None:
        """Has the engines measured when the process is idle, once the part has run so often."""

        def add() -> None:
            from pocketgraph.runtime.certificates import check_schedule

            check_schedule.add(self.decide, MEASURING)

        self.executable.after(runs, add)

    def _measure_again(self) -> None:
        """As ``_measure_after``, after more and more runs, a few times at most."""
        self._tries -= 1
        if self._tries:
            self._runs *= AGAIN
            self._measure_after(self._runs)

    def decide(self, *, again: bool = False) -> None:
        """Measures what is not measured yet, and lets the fastest engine run the part.

        Args:
            again: only measure, and anew what was measured; wait for other processes that do so, and keep what is
                found even where the machine was busy with something else and nothing better is known.
        """
        from pocketgraph.runtime.part_engines.available_engines import candidates

        _wait_at_exit()
        # The part may have been closed meanwhile, its file may be gone, and anything may go wrong in somebody's engine.
        with _busy, contextlib.suppress(Exception):
            installed = candidates()
            assert self.executable.kept_as is not None
            with turn(self.executable.kept_as[0], WAITS if again else 0.0) as is_ours:
                found_by_others = self._read_again()
                if is_ours or again:
                    self._measure(installed, again=again and not found_by_others)
            if not again:
                self._take_fastest(installed, is_ours)
            trim_memory()

    def _take_fastest(self, installed: Mapping[str, PartEngine], is_ours: bool) -> None:
        """Lets the fastest engine run the part; where none is quicker and some are not known yet, measures later.

        Args:
            installed: the engines, by label.
            is_ours: whether this process had the turn to measure.
        """
        label = fastest(self.executable)
        if label in installed:
            _alive(self.executable)
            runner = self._opened(label, installed[label])
            if self.executable.run_by(runner, label):
                self.certify()
            else:
                runner.close()
        elif not all(map(self._is_known, installed)):
            if is_ours:
                self._measure_again()
            else:
                self._measure_after(AGAIN * RUNS)

    def _is_known(self, label: str) -> bool:
        known = measurements(self.executable).get(label)
        return known is not None and known.is_steady

    def _read_again(self) -> bool:
        """Takes over what other processes have measured meanwhile; says whether they have."""
        assert self.executable.kept_as is not None
        entry, about = cache.find(*self.executable.kept_as), self.executable.about
        theirs = {} if entry is None else entry.about.get(MEMBER, {})
        ours = about.get(MEMBER, {})
        about[MEMBER] = {**ours, **theirs}
        return any(ours.get(key) != said for key, said in theirs.items())

    def _measure(self, installed: Mapping[str, PartEngine], *, again: bool) -> None:
        """Measures the engines of which nothing certain is known, or all of them ``again``."""
        asked = [label for label in installed if again or not self._is_known(label)]
        for label in asked:
            found = self._measured(label, installed[label])
            if found.is_steady or not self._is_known(label):
                self._note(label, found, for_others=found.is_steady or again or bool(found.why))
        if asked:
            with contextlib.suppress(Exception):  # whatever somebody's engine raises; what was measured holds
                self._measure_close(installed)

    def _measure_close(self, installed: Mapping[str, PartEngine]) -> None:
        """Measures the two quickest, of which LiteRT may be one, beside each other where they are close.

        Each engine was measured at another moment, and a machine's speed changes from one to the next.
        """
        known = usable(self.executable)
        steady = {label: known[label] for label in installed if label in known and known[label].is_steady}
        ratios = {"": 1.0, **{label: found.ratio for label, found in steady.items()}}
        quickest, *others = sorted(ratios, key=lambda label: ratios[label])
        if not others or ratios[others[0]] > CLOSE_TIMES * ratios[quickest]:
            return
        first, second = sorted((quickest, others[0]), key=lambda label: (label != "", ratios[label]))
        with contextlib.ExitStack() as stack:
            one, other = (self._computing(label, installed, stack) for label in (first, second))
            _, ratio, is_steady = times_in_turns(one, other, self.executable.threads)
        if is_steady:
            found = steady[second]._replace(ratio=round(ratios[first] * ratio, 3))
            self._note(second, found, for_others=True)

    def _computing(
        self, label: str, installed: Mapping[str, PartEngine], stack: contextlib.ExitStack
    ) -> Callable[[], object]:
        """Runs the part on made-up inputs: by the engine or, for "", by LiteRT opened anew; until the stack ends."""
        feeds = synthetic_arrays(self.executable)
        if label:
            runner = self._opened(label, installed[label])
            stack.callback(runner.close)
            computes = self.executable.beside(runner, label)
        else:
            computes = self._opened_again()
            stack.callback(computes.close)
        return lambda: _alive(computes).computed(feeds)

    def _opened_again(self) -> Executable:
        """LiteRT once more: callers do not wait for what is measured, nor that for them.

        Raises:
            RunError: the part is no longer in the cache.
        """
        assert self.executable.kept_as is not None
        found = open_entry(*self.executable.kept_as, self.executable.threads)
        if not isinstance(found, Executable):
            raise RunError("the part is no longer in the cache")
        return found

    def _opened(self, label: str, engine: PartEngine) -> Runner:
        """The engine's runner, after one run.

        Raises:
            RunError: it does not take the part, or the part's file is gone.
        """
        from pocketgraph.runtime.part_engines.available_engines import loaded

        kept_as = self.executable.kept_as
        entry = cache.find(*kept_as) if kept_as is not None else None
        if entry is None:
            raise RunError("the part is no longer in the cache")
        runner = loaded(
            engine,
            label.partition(" ")[0],
            OfferedPart(entry, None if self.nodes is None else self._read_nodes),
            self.executable.threads,
        )
        self.executable.beside(runner, label).computed(synthetic_arrays(self.executable))
        return runner

    def _read_nodes(self) -> PartReference:
        """What computes the part's nodes, where the model's file still is what was read.

        Raises:
            RunError: it was written over.
        """
        assert self.nodes is not None
        self._is_readable = False
        found = self.nodes()
        if is_overwritten(found.graph):
            raise RunError("the model's file was written over")
        self._is_readable = True
        return found

    def _measured(self, label: str, engine: PartEngine) -> EngineTimes:
        """The engine beside LiteRT, by turns, on made-up inputs.

        An engine that could not be opened is tried once more, later: it may have been for want of memory.

        Raises:
            RunError: the part or the model's file is closed or gone, or the process ends.
        """
        from pocketgraph.runtime.certificates.agreement import Agreement, judged

        _alive(self.executable)
        began = own_time()
        if not self.executable.is_open:
            raise RunError("the part is closed")
        try:
            runner = self._opened(label, engine)
            opening = own_time() - began
        except Exception as error:  # whatever somebody's engine raises
            _alive(self.executable)
            if not self._is_readable:  # which is not the engine's fault
                raise
            said = error.what if isinstance(error, PocketgraphError) else f"{type(error).__name__}: {error}"
            before = measurements(self.executable).get(label)
            return EngineTimes(0.0, 0.0, 0.0, said, is_steady=before is not None and before.why == said)
        ours = None
        try:
            other = self.executable.beside(runner, label)
            feeds = synthetic_arrays(self.executable)
            litert = ours = self._opened_again()
            right, given = litert.computed(feeds), other.computed(feeds)
            if judged(given, right, feeds, lambda seed, size: None) is not Agreement.RIGHT:
                return EngineTimes(0.0, 0.0, opening, "it gives other numbers than LiteRT")
            seconds, ratio, is_steady = times_in_turns(
                lambda: _alive(litert).computed(feeds), lambda: _alive(other).computed(feeds), litert.threads
            )
        finally:
            runner.close()
            if ours is not None:
                ours.close()
        return EngineTimes(round(ratio, 3), round(seconds, 6), round(opening, 3), "", is_steady)

    def _note(self, label: str, found: EngineTimes, *, for_others: bool) -> None:
        about = self.executable.about
        about[MEMBER] = {**about.get(MEMBER, {}), f"{cpu()} {self._what(label)}": list(found)}
        if for_others and self.executable.kept_as is not None:
            cache.note(*self.executable.kept_as, MEMBER, self._what(label), list(found))

    def _what(self, label: str) -> str:
        return f"{self.executable.threads} {label}"


def is_measured(executable: Executable) -> bool:
    """Whether other engines are tried for a part at all: it is large, of plain numbers, and its file is kept."""
    about = executable.about
    return executable.kept_as is not None and about["work"] >= LARGE_PART and not about["eight_bit"]


def chosen_engine(executable: Executable) -> tuple[str, tuple[str, ...]]:
    """The name of the engine that a part runs on, at once or in time, and a line for each engine that was looked at."""
    if not is_measured(executable):
        return "litert", ()
    found = fastest(executable)
    lines = [f"{label}: {known}" for label, known in measurements(executable).items()]
    if found and not executable.engine:
        lines.append(f"LiteRT answers the first {measurements(executable)[found].after} runs of a process")
    return found.partition(" ")[0] or "litert", tuple(lines or ["other engines are not measured yet"])


def consider(
    executable: Executable,
    nodes: Callable[[], PartReference] | None,
    certify: Callable[[], object],
    *,
    measure: bool = False,
    at_once: bool = False,
) -> None:
    """Lets a part run on the fastest engine in time.

    Args:
        executable, nodes, certify: as for _EngineChoice.
        measure: do it now, and measure all engines anew.
        at_once: do it now, with what is known.
    """
    if not is_measured(executable):
        return
    choice = _EngineChoice(executable, nodes, certify)
    if measure:
        choice.decide(again=True)
    elif at_once and fastest(executable):
        choice.decide()
    elif not at_once:
        choice.prepare()


def synthetic_arrays(executable: Executable) -> list[Array]:
    """Inputs of a part: numbers from 0 to 1 that are unlike their neighbours, and zeros where whole ones are wanted."""
    found: list[Array] = []
    for _, name, shape in executable.about["inputs"]:
        empty = np.zeros(shape, numpy_type(name))
        if empty.dtype.kind not in "biu":
            empty[...] = (np.arange(empty.size) * 0.6180339887498949 % 1).reshape(shape).astype(empty.dtype)
        found.append(empty)
    return found


def _alive(executable: Executable) -> Executable:
    """The executable, as long as the process goes on; its end does not wait for what is measured.

    A server's main thread may have come to its end while others, which the process waits for, answer on.

    Raises:
        RunError: it ends, so that whatever fails now says nothing of an engine.
    """
    others = (each for each in threading.enumerate() if each.is_alive() and not each.daemon)
    if not threading.main_thread().is_alive() and next(others, None) is None:
        raise RunError("the process ends")
    return executable


@lru_cache(maxsize=1)
def _wait_at_exit() -> None:
    """A process does not end while another engine is at work: its native code would run into what is gone."""
    atexit.register(lambda: _busy.acquire(timeout=60))


def _after_fork() -> None:
    global _busy
    _busy = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
