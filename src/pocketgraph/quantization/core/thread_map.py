"""A function of many items, computed by several threads: NumPy and LiteRT let others work while they compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Other = TypeVar("Other")


def mapped(function: Callable[[Item], Result], items: Sequence[Item], threads: int) -> list[Result]:
    """The results in the order of the items.

    Args:
        function: of one item; several calls of it run at once.
        items: what it is called with.
        threads: how many calls at once at most; with one, they run in this thread.
    """
    if threads < 2 or len(items) < 2:
        return [function(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(threads, len(items)), "pocketgraph") as pool:
        return list(pool.map(function, items))


def both(first: Callable[[], Result], second: Callable[[], Other], threads: int) -> tuple[Result, Other]:
    """What two functions give, which run at the same time where there are two threads."""
    if threads < 2:
        return first(), second()
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, "pocketgraph") as pool:
        found = pool.submit(first)
        return_of_second = second()
        return found.result(), return_of_second
