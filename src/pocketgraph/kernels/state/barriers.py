"""Barriers: values that arrive part by part under string keys, taken when all parts of a key are there."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Shape
from pocketgraph.kernels.arrays import Array, integer, kept, strings
from pocketgraph.kernels.registry import Context, Value, kernel
from pocketgraph.kernels.state.binary_heap import Heap

FIRST = -(2**63)
"""The number of the keys that the first insertion brings; each further insertion has the next one."""


class Barrier:
    """Keys in the order they came, each with the parts that are there.

    Attributes:
        name: for errors.
        dtypes: the types of the parts.
        shapes: their shapes; empty where any will do.
        waiting: by key: its number and its parts by place; those that are not complete.
        ready: by number: the keys and parts of those that are.
        closed: whether no new key may come.
    """

    def __init__(self, name: str, dtypes: Sequence[DType], shapes: Sequence[Shape]) -> None:
        self.name = name
        self.dtypes = tuple(dtypes)
        self.shapes = tuple(shapes)
        self.waiting: dict[bytes, tuple[int, dict[int, Array]]] = {}
        self.ready: Heap[tuple[bytes, list[Array]]] = Heap()
        self.next = FIRST
        self.closed = self.cancelled = False
        self.lock = threading.Lock()

    def insert(self, key: bytes, place: int, value: Array) -> None:
        if key not in self.waiting:
            if self.closed:
                raise RunError(f"Barrier '{self.name}' is closed; the key {key!r} is new to it")
            self.waiting[key] = (self.next, {})
        number, parts = self.waiting[key]
        if place in parts:
            raise RunError(f"Key {key!r} already has a value for component {place} in barrier '{self.name}'")
        if self.shapes and not self.shapes[place].fits(value.shape):
            raise RunError(
                f"a value of shape {list(value.shape)} where barrier '{self.name}' takes {self.shapes[place]}"
            )
        parts[place] = value
        if len(parts) == len(self.dtypes):
            del self.waiting[key]
            self.ready.push(number, (key, [parts[p] for p in range(len(self.dtypes))]))

    def take(self, count: int, fewer: bool) -> list[tuple[int, bytes, list[Array]]]:
        there = len(self.ready)
        if there < count and not (fewer and self.closed and there):
            state = "is closed and has insufficient elements" if self.closed else "has too few complete elements"
            raise RunError(f"Barrier '{self.name}' {state} (requested {count}, total size {there})")
        taken = [self.ready.pop() for _ in range(min(count, there))]
        return [(number, key, parts) for number, (key, parts) in taken]


@kernel("Barrier")
def barrier(
    *,
    context: Context,
    component_types: Sequence[DType],
    shapes: Sequence[Shape] = (),
    capacity: int = -1,
    shared_name: str = "",
) -> Value:
    """The barrier of this name, which lives as long as the session."""
    if capacity != -1:
        raise RunError(f"Barrier only accepts capacity=-1, not {capacity}")
    return context.shared("barrier", shared_name, lambda name: Barrier(name, component_types, shapes))


@kernel("BarrierInsertMany")
def barrier_insert_many(handle: Barrier, keys: Array, values: Array, *, component_index: int) -> tuple[()]:
    """For each key its value of one part."""
    if not 0 <= component_index < len(handle.dtypes):
        raise RunError(f"The component ID is out of range {component_index} > num_components ({len(handle.dtypes)})")
    if keys.ndim != 1 or values.ndim < 1 or values.shape[0] != keys.shape[0]:
        raise RunError(f"{list(keys.shape)} keys for values of shape {list(values.shape)}")
    if handle.cancelled:
        raise RunError(f"Barrier '{handle.name}' is closed.")
    with handle.lock:
        for key, value in zip(keys.tolist(), kept(values), strict=True):
            handle.insert(key, component_index, np.asarray(value, dtype=values.dtype))
        handle.next += 1
    return ()


@kernel("BarrierTakeMany")
def barrier_take_many(
    handle: Barrier, num_elements: Array, *, component_types: Sequence[DType], allow_small_batch: bool = False
) -> tuple[Any, ...]:
    """(numbers int64, keys, values of each part), oldest first."""
    if tuple(component_types) != handle.dtypes:
        raise RunError(f"Barrier '{handle.name}' has the types {handle.dtypes}, not {tuple(component_types)}")
    with handle.lock:
        taken = handle.take(integer(num_elements), allow_small_batch)
    keys = strings([key for _, key, _ in taken], (len(taken),))
    columns = []
    for place, dtype in enumerate(handle.dtypes):
        parts = [np.asarray(values[place], dtype=dtype.numpy) for _, _, values in taken]
        shape = handle.shapes[place].known if handle.shapes and not parts else parts[0].shape if parts else ()
        columns.append(np.stack(parts) if parts else np.empty((0, *shape), dtype.numpy))
    return (np.array([number for number, _, _ in taken], np.int64), keys, *columns)


@kernel("BarrierClose")
def barrier_close(handle: Barrier, *, cancel_pending_enqueues: bool = False) -> tuple[()]:
    """No new key comes in; with ``cancel_pending_enqueues`` not even parts of known ones."""
    handle.closed = True
    handle.cancelled = handle.cancelled or cancel_pending_enqueues
    return ()


kernel("BarrierReadySize")(lambda handle: np.array(len(handle.ready), np.int32))
kernel("BarrierIncompleteSize")(lambda handle: np.array(len(handle.waiting), np.int32))
