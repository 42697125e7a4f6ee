"""The order of equal scores in CombinedNonMaxSuppression, which is that of C++'s priority queue and sort.

Sources: DoNMSPerClass and SelectResultPerBatch in tensorflow/core/kernels/image/non_max_suppression_op.cc; push_heap,
pop_heap and sort of libstdc++ (Musser: Introspective sorting and selection algorithms, 1997).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from pocketgraph.budgets import timed
from pocketgraph.kernels.arrays import Array

FEW = 16
"""So many numbers are left to the insertion sort, which keeps the order of equal ones."""


class _Scored(float):
    """A score that knows whose it is; compared as the number that it is."""

    __slots__ = ("index",)
    index: int


def _scored(score: float, index: int) -> _Scored:
    result = _Scored(score)
    result.index = index
    return result


def best_first(scores: Array, least: float) -> Iterator[int]:
    """The indices of the scores above ``least``, as a priority queue that was given one after the other hands them out.

    ``heapq`` moves its elements as libstdc++ does: down to a leaf and up again, and to the right of two equal children.
    """
    heap: list[_Scored] = []
    above = (scores > least).nonzero()[0]
    for index, score in timed(list(zip(above.tolist(), scores[above].tolist(), strict=True))):
        heappush(heap, _scored(-score, index))
    while heap:
        yield heappop(heap).index


def introsorted(scores: Sequence[float], depth: int | None = None) -> list[int]:
    """The indices of the scores, highest first, as C++'s sort leaves them.

    Args:
        scores: no NaN among them.
        depth: how often a part may be taken apart before a heap sorts it; twice the logarithm of how many there are.
    """
    order = list(range(len(scores)))
    waiting = [(0, len(order), 2 * (len(order).bit_length() - 1) if depth is None else depth)]
    while waiting:
        first, last, left = waiting.pop()
        if last - first <= FEW:
            continue
        if not left:
            order[first:last] = _heap_sorted(scores, order[first:last])
            continue
        cut = _partitioned(scores, order, first, last)
        waiting += [(first, cut, left - 1), (cut, last, left - 1)]
    return sorted(order, key=lambda index: -scores[index])


def _partitioned(scores: Sequence[float], order: list[int], first: int, last: int) -> int:
    """Moves the median of three to the front and scores above it before the others; where these begin."""
    a, b, c = first + 1, first + (last - first) // 2, last - 1
    one, two, three = (scores[order[at]] for at in (a, b, c))
    if one > two:
        median = b if two > three else c if one > three else a
    else:
        median = a if one > three else c if two > three else b
    order[first], order[median] = order[median], order[first]
    pivot, left, right = scores[order[first]], first + 1, last - 1
    while True:
        while scores[order[left]] > pivot:
            left += 1
        while pivot > scores[order[right]]:
            right -= 1
        if left >= right:
            return left
        order[left], order[right] = order[right], order[left]
        left, right = left + 1, right - 1


def _heap_sorted(scores: Sequence[float], order: Sequence[int]) -> list[int]:
    heap = [_scored(scores[index], index) for index in order]
    heapify(heap)
    return [heappop(heap).index for _ in order][::-1]
