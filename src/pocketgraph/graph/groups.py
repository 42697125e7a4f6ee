"""Items in groups: by a key that each has, by what leads to what, or joined two by two (union-find, disjoint sets)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def by_key(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """For each key that is first in a pair what is second in those pairs, both in the order in which they came."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def closure(
    starts: Iterable[Item], following: Callable[[Item], Iterable[Item]], belongs: Callable[[Item], bool] | None = None
) -> Iterator[Item]:
    """The items that these lead to, themselves included: each once, depth first, found when it is asked for.

    Args:
        starts: where to begin.
        following: what an item leads to; asked when the item after it is wanted.
        belongs: says of an item whether it is one of them; others are not followed. By default all are.
    """
    seen: set[Item] = set()
    waiting = list(starts)
    while waiting:
        item = waiting.pop()
        if item not in seen and (belongs is None or belongs(item)):
            seen.add(item)
            yield item
            waiting += following(item)


def finishing(
    starts: Iterable[Item], needs: Callable[[Item], Iterable[Item]], belongs: Callable[[Item], bool] | None = None
) -> Iterator[Item]:
    """The items that these need, themselves included: each once, after its own, as a walk in depth is done with them.

    Args:
        starts: what is wanted, the first one's items first; may grow on the way.
        needs: what an item needs; the items of the last one come first.
        belongs: as for ``closure``.
    """
    is_done: dict[Item, bool] = {}  # of those whose needs were asked for
    for start in starts:
        waiting = [start]
        while waiting:
            item = waiting[-1]
            state = is_done.get(item)
            if state is None and (belongs is None or belongs(item)):
                is_done[item] = False
                waiting += [other for other in needs(item) if other not in is_done]
                continue
            waiting.pop()
            if state is False:
                is_done[item] = True
                yield item


class DisjointSets(dict[Item, Item]):
    """Sets of items that are joined two by two. One item stands for its set; each leads to it, by others or at once.

    >>> sets = DisjointSets("abcd")
    >>> sets.join("c", "a")
    >>> sets.find("c"), sets.find("a"), sets.find("d")
    ('a', 'a', 'd')
    >>> sets.groups()
    [['a', 'c'], ['b'], ['d']]

    Args:
        items: each in a set of its own.
    """

    def __init__(self, items: Iterable[Item] = ()) -> None:
        super().__init__((item, item) for item in items)

    def add(self, item: Item) -> None:
        """Adds an item, in a set of its own."""
        self[item] = item

    def find(self, item: Item) -> Item:
        """The item that stands for the set of this one."""
        while (above := self[item]) != item:
            self[item] = item = self[above]
        return item

    def join(self, item: Item, other: Item) -> None:
        """Makes one set of two; what stood for that of ``other`` stands for it."""
        self[self.find(item)] = self.find(other)

    def groups(self) -> list[list[Item]]:
        """The sets, in the order of their first items, and their items, as they came."""
        return list(by_key((self.find(item), item) for item in self).values())
