"""Where each tensor lies in one piece of memory, so that those that are needed at the same time do not overlap.

Source of the greedy orders: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

ALIGNMENT = 64  # bytes: a line of the cache, and the widest vectors
MOST_SHUFFLED = 200  # buffers; beyond, other orders than the greedy ones take too long to try
TRIES = 400


@dataclass(eq=False)
class Buffer:
    """A place in the arena.

    Attributes:
        size: in bytes; an empty one is given a byte.
        first: the step that writes it first; -1 for what is there before.
        last: the last one that reads it.
        is_input: whether it holds an input, which must be left as it is.
    """

    size: int
    first: int
    last: int
    is_input: bool = False

    @property
    def room(self) -> int:
        """The bytes that it takes, with what it is filled up with."""
        return aligned(max(self.size, 1))


class Layout(NamedTuple):
    """Where each buffer begins, and how many bytes all take together."""

    offsets: tuple[int, ...]
    size: int


def loads(buffers: Sequence[Buffer], *, filled_up: bool = False) -> dict[int, int]:
    """By step how many bytes are needed at it; ``filled_up``: with what they are filled up with."""
    found: dict[int, int] = {}
    for buffer in buffers:
        size = buffer.room if filled_up else buffer.size
        for step in range(buffer.first, buffer.last + 1):
            found[step] = found.get(step, 0) + size
    return found


def least(buffers: Sequence[Buffer]) -> int:
    """A number of bytes below which no layout can be: the most that is needed at one step."""
    return max(loads(buffers, filled_up=True).values(), default=0)


def planned(buffers: Sequence[Buffer]) -> Layout:
    """The smallest layout of several orders in which buffers are put into the first gap that fits.

    >>> planned([Buffer(100, 0, 1), Buffer(50, 1, 2), Buffer(100, 2, 3)]).size
    192
    """
    bound, numbers = least(buffers), range(len(buffers))
    needed = loads(buffers)
    widths = [max((needed[step] for step in range(b.first, b.last + 1)), default=0) for b in buffers]
    orders = [
        sorted(numbers, key=lambda n: (-buffers[n].size, buffers[n].first)),
        sorted(numbers, key=lambda n: (buffers[n].first - buffers[n].last, -buffers[n].size)),
        sorted(numbers, key=lambda n: (-widths[n], -buffers[n].size)),
        sorted(numbers, key=lambda n: -buffers[n].size * (buffers[n].last - buffers[n].first + 1)),
        sorted(numbers, key=lambda n: (buffers[n].first, -buffers[n].size)),
    ]
    best = placed(buffers, orders[0])
    for order in orders[1:]:
        if best.size == bound:
            return best
        found = placed(buffers, order)
        best = min(best, found, key=lambda layout: layout.size)
    if len(buffers) > MOST_SHUFFLED:
        return best
    chance = random.Random(7)
    kept = min(orders, key=lambda order: placed(buffers, order).size)
    for _ in range(TRIES):
        if best.size == bound:
            break
        order = list(kept)
        a, b = chance.randrange(len(order)), chance.randrange(len(order))
        order.insert(a, order.pop(b))
        found = placed(buffers, order)
        if found.size <= best.size:
            best, kept = found, order
    return best


def placed(buffers: Sequence[Buffer], order: Sequence[int]) -> Layout:
    """Each buffer, in this order, at the lowest place that is free as long as it is needed."""
    done: list[tuple[int, int, Buffer]] = []  # by place
    offsets = [0] * len(buffers)
    for number in order:
        buffer = buffers[number]
        size, at = buffer.room, 0
        for begin, end, other in done:
            if other.first > buffer.last or other.last < buffer.first:
                continue
            if begin - at >= size:
                break
            at = max(at, end)
        offsets[number] = at
        done.append((at, at + size, buffer))
        done.sort(key=lambda item: item[0])
    return Layout(tuple(offsets), max((end for _, end, _ in done), default=0))


def aligned(size: int, alignment: int = ALIGNMENT) -> int:
    """The size with what it is filled up with."""
    return -(-size // alignment) * alignment
