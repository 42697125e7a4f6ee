"""A progress bar with the time left on a terminal; elsewhere a line every few seconds."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from pocketgraph.cli._output import echo

SECONDS_A_LINE = 5.0


@contextlib.contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Gives a function that is told the stage, the steps done and their number."""
    if not sys.stderr.isatty():
        yield _lines()
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

    columns = (
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(),
        TextColumn("left, since"), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task: Any = bar.add_task("", total=None)
        stages: list[str] = []

        def tell(stage: str, done: int, total: int) -> None:
            if stage not in stages[-1:]:
                stages.append(stage)
                bar.reset(task, description=stage, total=total)
            bar.update(task, completed=done)

        yield tell


def _lines() -> Callable[[str, int, int], None]:
    """Tells how far it is, a line every few seconds; short work tells nothing."""
    start = last = time.monotonic()

    def tell(stage: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= SECONDS_A_LINE:
            last = now
            echo(f"{stage}: {done} of {total}, after {now - start:.0f} s", err=True)

    return tell
