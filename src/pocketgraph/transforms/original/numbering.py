"""What one run of several rules remembers from one to the next: a count, and names that the original has twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph, opdefs

_numbers: ContextVar[Iterator[int] | None] = ContextVar("numbers", default=None)
_duplicates: ContextVar[set[str] | None] = ContextVar("twins", default=None)


@contextmanager
def one_run() -> Iterator[None]:
    """Numbers begin at 0; a run inside of another one goes on with that one's numbers."""
    if _numbers.get() is not None:
        yield
        return
    token, other = _numbers.set(count()), _duplicates.set(set())
    try:
        yield
    finally:
        _numbers.reset(token)
        _duplicates.reset(other)


def numbers() -> Iterator[int]:
    """The numbers of this run; outside of one, new ones."""
    found = _numbers.get()
    return count() if found is None else found


def duplicate_names() -> set[str]:
    """The names of nodes that the original's rules wrote twice in this run; a graph here has one of each."""
    found = _duplicates.get()
    return set() if found is None else found


def check_duplicate_names(graph: Graph) -> None:
    """Raises TransformError where the original fails because it has two nodes of one name."""
    for name in sorted(duplicate_names()):
        node = graph.nodes.get(name)
        if node is not None and not ((found := opdefs.find(node.op)) and found.stateful):
            raise TransformError(
                "the original has two nodes of this name, and cannot tell them apart",
                where=f"node '{name}'",
                hint="compat=fixed goes on",
            )
