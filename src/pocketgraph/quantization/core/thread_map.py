"""A function of many items, computed by several threads: NumPy and LiteRT let others work while they compute."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

Item = TypeVar("Item")
Result = TypeVar("Result")


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


def mapped_ahead(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """The results in the order of the items, while whoever asks for them works with those before.

    Args:
        function: of one item; several calls of it run at once.
        items: what it is called with, taken in this thread, one more than there are threads before a result is waited
            for.
        threads: how many threads there are beside this one; with none, the calls run in this one.
    """
    if threads < 1:
        yield from map(function, items)
        return
    from concurrent.futures import ThreadPoolExecutor

    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads, "pocketgraph") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for call in waiting:
                call.cancel()
