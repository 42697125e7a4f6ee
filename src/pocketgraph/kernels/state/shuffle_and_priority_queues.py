"""Queues that do not give back what came first: by chance (RandomShuffleQueue) and by number (PriorityQueue)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Shape
from pocketgraph.graph.dtype import INT64
from pocketgraph.graph.shape import SCALAR
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.philox import Philox
from pocketgraph.kernels.registry import Context, Value, kernel
from pocketgraph.kernels.state.binary_heap import Heap
from pocketgraph.kernels.state.queues import Queue, shared_queue

DRAWN_AT_ONCE = 64  # random words that are drawn at once


class _ShuffledQueue(Queue):
    """A queue that gives one of its elements by chance; with a seed, the one that TensorFlow's gives.

    Attributes:
        least: how many must stay in it as long as it is open, so that there is something to choose from.
    """

    least = 0

    def sow(self, generator: Philox) -> None:
        self.generator = generator
        self.drawn: list[int] = []

    def _chosen(self) -> int:
        if not self.drawn:
            self.drawn = self.generator.words(DRAWN_AT_ONCE).tolist()[::-1]
            self.generator = self.generator.skip(DRAWN_AT_ONCE // 4)
        return self.drawn.pop() % len(self.elements)

    def enough(self, count: int) -> bool:
        return len(self.elements) >= count + (0 if self.closed else self.least)

    def dequeue(self) -> tuple[Array, ...]:
        place = self._chosen()
        self.elements[place], self.elements[-1] = self.elements[-1], self.elements[place]
        return self.elements.pop()


class PriorityQueue(Queue):
    """A queue whose elements begin with a number; the smallest is first, among equals the one that TensorFlow gives."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.heap: Heap[tuple[Array, ...]] = Heap()

    def enqueue(self, elements: Sequence[tuple[Array, ...]]) -> None:
        super().enqueue(elements)
        for element in elements:
            self.heap.push(int(element[0]), element)

    def dequeue(self) -> tuple[Array, ...]:
        self.elements.pop()  # the heap has the order; here they are only counted
        return self.heap.pop()[1]


@kernel("RandomShuffleQueue", "RandomShuffleQueueV2")
def random_shuffle_queue(
    *,
    context: Context,
    component_types: Sequence[DType],
    shapes: Sequence[Shape] = (),
    capacity: int = -1,
    min_after_dequeue: int = 0,
    seed: int = 0,
    seed2: int = 0,
    shared_name: str = "",
) -> Value:
    """The queue of this name, which lives as long as the session."""
    queue = shared_queue(context, component_types, shapes, capacity, shared_name, _ShuffledQueue)
    if not hasattr(queue, "generator"):
        if capacity >= 0 and min_after_dequeue >= capacity:
            raise RunError(f"min_after_dequeue {min_after_dequeue} must be < capacity {capacity}")
        queue.least = max(0, min_after_dequeue)
        queue.sow(Philox.of_op(seed, seed2, context.rng))
    return queue


@kernel("PriorityQueue", "PriorityQueueV2")
def priority_queue(
    *,
    context: Context,
    component_types: Sequence[DType] = (),
    shapes: Sequence[Shape],
    capacity: int = -1,
    shared_name: str = "",
) -> Value:
    """The queue of this name; an element has an int64 number before its components."""
    whole = (SCALAR, *shapes) if shapes or not component_types else ()
    return shared_queue(context, (INT64, *component_types), whole, capacity, shared_name, PriorityQueue)
