"""Queues: FIFOQueue and PaddingFIFOQueue, filled and emptied by the runs of one session.

Nothing waits here: a run computes alone, so an element that is not there would never come. Taking from a queue that
holds too little is an error where TensorFlow would wait.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Shape
from pocketgraph.kernels.arrays import Array, integer, kept
from pocketgraph.kernels.registry import Context, Value, kernel

LARGEST = 1 << 20  # elements in a queue that states no capacity


class Queue:
    """A queue of tuples of tensors.

    Attributes:
        name: what it is called in messages.
        dtypes: the types of an element's components.
        shapes: their shapes; empty where any will do. Of a padding queue a dimension may be unknown.
        capacity: how many elements it holds at most.
        pads: whether the elements that are taken together are padded to one shape.
        closed: whether nothing more may come in.
    """

    def __init__(
        self, name: str, dtypes: Sequence[DType], shapes: Sequence[Shape], capacity: int, pads: bool = False
    ) -> None:
        self.name = name
        self.dtypes = tuple(dtypes)
        self.shapes = tuple(shapes)
        self.capacity = capacity if capacity >= 0 else LARGEST
        self.pads = pads
        self.closed = False
        self.elements: deque[tuple[Array, ...]] = deque()
        self.lock = threading.Lock()

    def put(self, elements: Sequence[tuple[Array, ...]]) -> None:
        """Appends elements, all or none.

        Raises:
            RunError: the queue is closed or full, or a component has another type or shape.
        """
        for element in elements:
            self._check(element)
        with self.lock:
            if self.closed:
                raise RunError(f"Queue '{self.name}' is closed.")
            if len(self.elements) + len(elements) > self.capacity:
                raise RunError(
                    f"Queue '{self.name}' has no room for {len(elements)} more: it holds {len(self.elements)} of "
                    f"{self.capacity}, and nothing empties it during this run"
                )
            self.enqueue(elements)

    def enqueue(self, elements: Sequence[tuple[Array, ...]]) -> None:
        """Puts elements in their places; the lock is held."""
        self.elements.extend(elements)

    def take(self, count: int, fewer: bool = False) -> list[tuple[Array, ...]]:
        """The first ``count`` elements, taken out; ``fewer`` when a closed queue has no more than that.

        Raises:
            RunError: there are not so many.
        """
        if count < 0:
            raise RunError(f"Requested {count} < 0 elements of the queue '{self.name}'")
        with self.lock:
            there = len(self.elements)
            if fewer and self.closed and there:
                count = min(count, there)
            if not self.enough(count):
                state = "is closed and has insufficient elements" if self.closed else "has too few elements"
                raise RunError(f"Queue '{self.name}' {state} (requested {count}, current size {there})")
            return [self.dequeue() for _ in range(count)]

    def enough(self, count: int) -> bool:
        """Whether so many can be taken."""
        return len(self.elements) >= count

    def dequeue(self) -> tuple[Array, ...]:
        """The next element, taken out."""
        return self.elements.popleft()

    def stacked(self, elements: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
        """Elements as one, each component with a first axis more; a padding queue's are filled up with zeros."""
        if not self.shapes:
            raise RunError(f"Queue '{self.name}' has no shapes, so its elements are taken one by one")
        return tuple(self._column(i, [e[i] for e in elements]) for i in range(len(self.dtypes)))

    def _column(self, component: int, values: Sequence[Array]) -> Array:
        kind = self.dtypes[component].numpy
        known = [size or 0 for size in self.shapes[component].dims or ()]
        sizes = [max([known[a], *(v.shape[a] for v in values)]) for a in range(len(known))]
        result = np.full((len(values), *sizes), b"" if kind.kind == "O" else 0, dtype=kind)
        for place, value in enumerate(values):
            where: Any = (place, *(slice(0, size) for size in value.shape), ...)
            result[where] = value
        return result

    def _check(self, element: tuple[Array, ...]) -> None:
        if len(element) != len(self.dtypes):
            raise RunError(f"Queue '{self.name}' takes {len(self.dtypes)} components, not {len(element)}")
        for place, (value, kind) in enumerate(zip(element, self.dtypes, strict=True)):
            if value.dtype != kind.numpy:
                raise RunError(f"Queue '{self.name}' takes {kind} at {place}, not {value.dtype}")
            if self.shapes and not self.shapes[place].fits(value.shape):
                raise RunError(
                    f"Shape mismatch in tuple component {place} of queue '{self.name}'. Expected {self.shapes[place]}, "
                    f"got {list(value.shape)}"
                )


Q = TypeVar("Q", bound=Queue)


def shared_queue(
    context: Context,
    component_types: Sequence[DType],
    shapes: Sequence[Shape],
    capacity: int,
    shared: str,
    kind: type[Q],
    pads: bool = False,
) -> Q:
    """The session's queue of this name, made when it is asked for first.

    Raises:
        RunError: it has other types, or is another kind of queue.
    """
    if shapes and len(shapes) != len(component_types):
        raise RunError(f"{len(component_types)} component types and {len(shapes)} shapes")
    found = context.shared("queue", shared, lambda name: kind(name, component_types, shapes, capacity, pads))
    name, types = found.name, tuple(component_types)
    if type(found) is not kind:
        raise RunError(f"Shared queue '{name}' is a {type(found).__name__}, requested a {kind.__name__}")
    if found.dtypes != types:
        raise RunError(f"Shared queue '{name}' has component types {found.dtypes}, requested {types}")
    return found


def _register(*ops: str, pads: bool) -> None:
    @kernel(*ops)
    def queue(
        *,
        context: Context,
        component_types: Sequence[DType],
        shapes: Sequence[Shape] = (),
        capacity: int = -1,
        shared_name: str = "",
    ) -> Value:
        """The queue of this name, which lives as long as the session."""
        if not pads and any(shape.dims is None or None in shape.dims for shape in shapes):
            raise RunError("a FIFOQueue's shapes must be fully defined; a PaddingFIFOQueue takes others")
        return shared_queue(context, component_types, shapes, capacity, shared_name, Queue, pads)


_register("FIFOQueue", "FIFOQueueV2", pads=False)
_register("PaddingFIFOQueue", "PaddingFIFOQueueV2", pads=True)


@kernel("QueueEnqueue", "QueueEnqueueV2")
def enqueue(handle: Queue, *components: Array) -> tuple[()]:
    handle.put([tuple(map(kept, components))])
    return ()


@kernel("QueueEnqueueMany", "QueueEnqueueManyV2")
def enqueue_many(handle: Queue, *components: Array) -> tuple[()]:
    """Each component's first axis counts elements."""
    if any(c.ndim < 1 or c.shape[0] != components[0].shape[0] for c in components):
        raise RunError(f"components of unlike first sizes: {[list(c.shape) for c in components]}")
    rows = ([np.asarray(row, dtype=c.dtype) for row in kept(c)] for c in components)
    handle.put(list(zip(*rows, strict=True)) if components else [])
    return ()


@kernel("QueueDequeue", "QueueDequeueV2")
def dequeue(handle: Queue) -> tuple[Array, ...]:
    return handle.take(1)[0]


kernel("QueueDequeueMany", "QueueDequeueManyV2")(lambda handle, n: handle.stacked(handle.take(integer(n))))


@kernel("QueueDequeueUpTo", "QueueDequeueUpToV2")
def dequeue_up_to(handle: Queue, n: Array) -> tuple[Array, ...]:
    """As many as were asked for; the rest of a closed queue when it has fewer."""
    return handle.stacked(handle.take(integer(n), fewer=True))


kernel("QueueSize", "QueueSizeV2")(lambda handle: np.asarray(len(handle.elements), np.int32))
kernel("QueueIsClosed", "QueueIsClosedV2")(lambda handle: np.asarray(handle.closed))


@kernel("QueueClose", "QueueCloseV2")
def queue_close(handle: Queue) -> tuple[()]:
    """Nothing more comes in; what is in it can still be taken."""
    handle.closed = True
    return ()


def _named(context: Context, value: Array) -> str:
    number = next(context.state.setdefault("session_handle_count", itertools.count(1)))
    name = f"GetSessionHandle;{context.node.name};{number}"
    context.state[f"session_tensor/{name}"] = kept(value)
    return name


@kernel("GetSessionHandle", "GetSessionHandleV2")
def get_session_handle(value: Array, *, context: Context) -> Any:
    """Keeps a tensor in the session; the string by which GetSessionTensor finds it."""
    return np.array(_named(context, value).encode(), dtype=object)


def _place(handle: Array, context: Context) -> str:
    name = handle.item().decode(errors="replace")
    place = f"session_tensor/{name}"
    if place not in context.state:
        raise RunError(f"The tensor with handle '{name}' is not in the session store.")
    return place


@kernel("GetSessionTensor")
def get_session_tensor(handle: Array, *, dtype: DType, context: Context) -> Array:
    value: Array = context.state[_place(handle, context)]
    if value.dtype != dtype.numpy:
        raise RunError(f"the tensor of this handle is {value.dtype}, not {dtype}")
    return value


@kernel("DeleteSessionTensor")
def delete_session_tensor(handle: Array, *, context: Context) -> tuple[()]:
    del context.state[_place(handle, context)]
    return ()
