"""Which items hang together: union-find, also known as disjoint sets."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)


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
        found: dict[Item, list[Item]] = {}
        for item in self:
            found.setdefault(self.find(item), []).append(item)
        return list(found.values())
