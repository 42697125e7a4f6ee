"""Runs two functions at once, the second in another thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
S = TypeVar("S")


def both(one: Callable[[], T], other: Callable[[], S]) -> tuple[T, S]:
    """What two functions give, called at once in two threads; raises what one of them raises."""
    import threading

    found: list[S] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.append(other())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        mine = one()
    finally:
        thread.join()
    if failed:
        raise failed[0]
    return mine, found[0]
