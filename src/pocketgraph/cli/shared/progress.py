"""A bar of all the work with the time left on a terminal; elsewhere a line every few seconds."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pocketgraph.cli.shared.output import echo

SECONDS_A_LINE = 5.0
UNABLE = ("dumb", "unknown")  # terminals that cannot move back to write a bar again
WIDE, NARROW = 76, 56
"""Columns of a terminal from which on all is shown beside the stage, and the time left; else the share alone."""
SHARES = {
    "calibrating": 25, "weighing each tensor": 15, "fitting weights": 35, "keeping the budget": 10, "judging": 10,
    "comparing layers": 25, "checking": 5,
}  # fmt: skip
"""Stages in the order in which they come, and about how long each takes beside the others."""
QUANTIZING = ("calibrating", "weighing each tensor", "fitting weights", "comparing layers")
SHIPPING_UNSEEN = ("fitting weights", "checking")  # what comes without samples
SHIPPING = ("calibrating", "weighing each tensor", "fitting weights", "judging", "checking")


class Total:
    """How much of all the work is done.

    Args:
        stages: those that are likely to come, of SHARES; one that does not come counts as done when a later one begins.
        first: how much of the work a first round of them is, where there may be further ones, as of a model that is
            tried in several forms; 1: there are none, and a stage that begins again is the same work.
    """

    def __init__(self, stages: Sequence[str], first: float = 1.0) -> None:
        self.stages, self.first = tuple(stages), first
        self._at, self._steps, self._before, self._done = 0, 0, 0.0, 0.0

    def done(self, stage: str, steps: int, of: int) -> float:
        """The share of the work that is done, which never falls; stages that were not expected add nothing."""
        if stage in self.stages:
            at = self.stages.index(stage)
            if self.first < 1 and (at, steps) < (self._at, self._steps):
                self._before += (1 - self._before) * self.first  # a round is over
            self._at, self._steps = at, steps
            shares = [SHARES[name] for name in self.stages]
            in_round = (sum(shares[:at]) + shares[at] * steps / max(of, 1)) / sum(shares)
            self._done = max(self._done, self._before + (1 - self._before) * self.first * in_round)
        return min(self._done, 1.0)


@contextlib.contextmanager
def progress_bar(stages: Sequence[str] = (), first: float = 1.0) -> Iterator[Callable[[str, int, int], None]]:
    """Gives a function that is told the stage, the steps done and their number.

    Args:
        stages, first: as for Total; without stages the bar is of the one stage that is told.
    """
    total = Total(stages, first) if stages else None
    if not sys.stderr.isatty() or os.environ.get("TERM", "") in UNABLE:
        yield _lines(total)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    left = (TimeRemainingColumn(), TextColumn("left"))
    whole = (
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), *left, TextColumn("since"),
        TimeElapsedColumn(),
    )  # fmt: skip
    columns = whole if console.width >= WIDE else (whole[0], whole[2], *(left if console.width >= NARROW else ()))
    with Progress(*columns, console=console, transient=True) as bar:
        task: Any = bar.add_task("beginning", total=None if total is None else 1.0)

        def tell(stage: str, done: int, of: int) -> None:
            if total is None:
                bar.update(task, description=stage, completed=done, total=of)
            else:
                bar.update(task, description=f"{stage}, {done} of {of}", completed=total.done(stage, done, of))

        yield tell


def _lines(total: Total | None) -> Callable[[str, int, int], None]:
    """Tells how far it is, a line every few seconds; short work tells nothing."""
    start = last = time.monotonic()

    def tell(stage: str, done: int, of: int) -> None:
        nonlocal last
        now = time.monotonic()
        share = "" if total is None else f", {total.done(stage, done, of):.0%} of all"
        if now - last >= SECONDS_A_LINE:
            last = now
            echo(f"{stage}: {done} of {of}{share}, after {now - start:.0f} s", err=True)

    return tell
