"""Runs two functions at once, the second in another thread where the process may have one more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pocketgraph.budgets import started

T = TypeVar("T")
S = TypeVar("S")


def both(one: Callable[[], T], other: Callable[[], S], threads: int = 2) -> tuple[T, S]:
    """What two functions give, called at once where there are two ``threads``; raises what one of them raises."""
    found: list[S] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.append(other())
        except BaseException as error:
            failed.append(error)

    thread = started(work, "helper") if threads > 1 else None
    try:
        mine = one()
    finally:
        if thread is not None:
            thread.join()
    if thread is None:
        work()
    if failed:
        raise failed[0]
    return mine, found[0]
