"""Two things at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def both(one: Callable[[], T], other: Callable[[], T]) -> tuple[T, T]:
    """What two functions give, called at once in two threads; raises what one of them raises."""
    found: list[T] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.append(other())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, name="pocketgraph piece", daemon=True)
    thread.start()
    try:
        mine = one()
    finally:
        thread.join()
    if failed:
        raise failed[0]
    return mine, found[0]
