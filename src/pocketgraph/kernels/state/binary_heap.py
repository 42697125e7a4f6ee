"""A binary heap that gives what has equal numbers in the order in which TensorFlow's gives it.

That order is a matter of how the C++ library moves elements about, not of when they came: the hole that the first
element leaves goes down to a leaf by the smaller child (the right one of two alike), and the last element rises from
there.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Heap(Generic[T]):
    """Elements with numbers; the smallest number is first."""

    def __init__(self) -> None:
        self._items: list[tuple[int, T]] = []

    def __len__(self) -> int:
        return len(self._items)

    def push(self, number: int, element: T) -> None:
        """Puts an element in, with the number that it is ordered by."""
        self._items.append((number, element))
        self._rise(len(self._items) - 1, (number, element))

    def pop(self) -> tuple[int, T]:
        """The first element with its number, taken out."""
        items = self._items
        first, last = items[0], items.pop()
        if items:
            hole, size = 0, len(items)
            while 2 * hole + 2 < size:
                child = 2 * hole + 2
                if items[child][0] > items[child - 1][0]:
                    child -= 1
                items[hole] = items[child]
                hole = child
            if 2 * hole + 1 < size:  # a child without a brother
                items[hole] = items[2 * hole + 1]
                hole = 2 * hole + 1
            self._rise(hole, last)
        return first

    def _rise(self, hole: int, item: tuple[int, T]) -> None:
        items = self._items
        while hole and items[(hole - 1) // 2][0] > item[0]:
            items[hole] = items[(hole - 1) // 2]
            hole = (hole - 1) // 2
        items[hole] = item
