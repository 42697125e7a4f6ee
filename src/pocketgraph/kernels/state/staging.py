"""Staging areas: tensors put aside by one part of a graph and taken by another, in order or by key."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.kernels.arrays import Array, integer, ints, kept
from pocketgraph.kernels.registry import Context, kernel

Element = tuple[Array, ...]


class Area:
    """What was put aside: elements in the order they came, or by key; with keys, also those that have parts missing.

    Attributes:
        name: for errors.
        dtypes: the types of an element's parts.
        elements: what is complete, by key (a running number where there are no keys).
        parts: what is not, by key and place.
    """

    def __init__(self, name: str, dtypes: Sequence[DType]) -> None:
        self.name = name
        self.dtypes = tuple(dtypes)
        self.elements: dict[int, dict[int, Array]] = {}
        self.parts: dict[int, dict[int, Array]] = {}
        self.count = 0
        self.lock = threading.Lock()

    def first(self, ordered: bool) -> int:
        """The key of the element that is next.

        Raises:
            RunError: there is none; TensorFlow would wait for one.
        """
        if not self.elements:
            raise RunError(f"the staging area '{self.name}' is empty, and nothing fills it during this run")
        return min(self.elements) if ordered else next(iter(self.elements))

    def at(self, key: int) -> dict[int, Array]:
        if key not in self.elements:
            raise RunError(f"the staging area '{self.name}' has no complete element with the key {key}")
        return self.elements[key]


def _area(context: Context, dtypes: Sequence[DType], shared_name: str, capacity: int) -> Area:
    found = context.shared("staging", shared_name, lambda name: Area(name, dtypes))
    if capacity and len(found.elements) > capacity:
        raise RunError(f"the staging area '{found.name}' holds {len(found.elements)}; its capacity is {capacity}")
    return found


def _room(area: Area, capacity: int, memory_limit: int, values: Sequence[Array]) -> None:
    held = [part for element in area.elements.values() for part in element.values()]
    if capacity and len(area.elements) >= capacity:
        raise RunError(f"the staging area '{area.name}' is full ({capacity}), and nothing empties it during this run")
    if memory_limit and sum(v.nbytes for v in [*held, *values]) > memory_limit:
        raise RunError(f"the staging area '{area.name}' would hold more than its {memory_limit:,} bytes")


@kernel("Stage")
def stage(
    *values: Array, context: Context, dtypes: Sequence[DType], capacity: int = 0, memory_limit: int = 0,
    shared_name: str = "",
) -> tuple[()]:  # fmt: skip
    """Puts an element behind the others."""
    area = _area(context, dtypes, shared_name, capacity)
    with area.lock:
        _room(area, capacity, memory_limit, values)
        area.elements[area.count] = dict(enumerate(map(kept, values)))
        area.count += 1
    return ()


def _listed(element: dict[int, Array]) -> Element:
    return tuple(element[place] for place in sorted(element))


@kernel("Unstage")
def unstage(*, context: Context, dtypes: Sequence[DType], shared_name: str = "") -> Element:
    """The first element, taken out."""
    area = _area(context, dtypes, shared_name, 0)
    with area.lock:
        return _listed(area.elements.pop(area.first(ordered=False)))


@kernel("StagePeek")
def stage_peek(index: Array, *, context: Context, dtypes: Sequence[DType], shared_name: str = "") -> Element:
    """The element at a place, left where it is."""
    area = _area(context, dtypes, shared_name, 0)
    with area.lock:
        keys = list(area.elements)
        if not 0 <= integer(index) < len(keys):
            raise RunError(f"the staging area '{area.name}' holds {len(keys)} elements; none is at {integer(index)}")
        return _listed(area.elements[keys[integer(index)]])


@kernel("StageSize", "MapSize", "OrderedMapSize")
def stage_size(*, context: Context, dtypes: Sequence[DType], shared_name: str = "") -> Array:
    return np.array(len(_area(context, dtypes, shared_name, 0).elements), np.int32)


@kernel("MapIncompleteSize", "OrderedMapIncompleteSize")
def map_incomplete_size(*, context: Context, dtypes: Sequence[DType], shared_name: str = "") -> Array:
    return np.array(len(_area(context, dtypes, shared_name, 0).parts), np.int32)


@kernel("StageClear", "MapClear", "OrderedMapClear")
def stage_clear(*, context: Context, dtypes: Sequence[DType], shared_name: str = "") -> tuple[()]:
    area = _area(context, dtypes, shared_name, 0)
    with area.lock:
        area.elements.clear()
        area.parts.clear()
    return ()


@kernel("MapStage", "OrderedMapStage")
def map_stage(
    key: Array, indices: Array, *values: Array, context: Context, dtypes: Sequence[DType], capacity: int = 0,
    memory_limit: int = 0, shared_name: str = "",
) -> tuple[()]:  # fmt: skip
    """Puts parts of an element (at ``indices``) under a key; it can be taken when all of its parts are there."""
    area, number = _area(context, dtypes, shared_name, capacity), integer(key)
    places = ints(indices)
    if len(places) != len(values) or any(not 0 <= p < len(area.dtypes) for p in places):
        raise RunError(f"{len(values)} values for the places {list(places)} of {len(area.dtypes)}")
    with area.lock:
        if number in area.elements:
            raise RunError(f"the key {number} is in the staging area '{area.name}' already")
        parts = area.parts.get(number, {})
        if any(place in parts for place in places):
            raise RunError(f"a part of the key {number} is in the staging area '{area.name}' already")
        whole = {**parts, **dict(zip(places, map(kept, values), strict=True))}
        if len(whole) < len(area.dtypes):
            area.parts[number] = whole
            return ()
        _room(area, capacity, memory_limit, values)
        area.parts.pop(number, None)
        area.elements[number] = whole
    return ()


def _parts(area: Area, key: int, indices: Array, taken: bool) -> Element:
    element = area.at(key)
    wanted = ints(indices)
    if any(place not in element for place in wanted):
        raise RunError(f"the key {key} of the staging area '{area.name}' has no part {list(wanted)}")
    found = tuple(element[place] for place in wanted)
    if taken:
        left = {place: part for place, part in element.items() if place not in wanted}
        if left:
            area.elements[key] = left
        else:
            del area.elements[key]
    return found


def _register(*ops: str, taken: bool) -> None:
    @kernel(*ops)
    def map_parts(
        key: Array, indices: Array, *, context: Context, dtypes: Sequence[DType], shared_name: str = ""
    ) -> Element:
        """These parts of the element with this key, taken out or left where they are."""
        area = _area(context, dtypes, shared_name, 0)
        with area.lock:
            return _parts(area, integer(key), indices, taken)


_register("MapUnstage", "OrderedMapUnstage", taken=True)
_register("MapPeek", "OrderedMapPeek", taken=False)


@kernel("MapUnstageNoKey", "OrderedMapUnstageNoKey")
def map_unstage_no_key(
    indices: Array, *, context: Context, dtypes: Sequence[DType], shared_name: str = ""
) -> tuple[Any, ...]:
    """(a key, these parts of its element, taken out): the smallest key of an ordered map, the oldest of another."""
    area = _area(context, dtypes, shared_name, 0)
    with area.lock:
        key = area.first(ordered=context.node.op.startswith("Ordered"))
        return (np.array(key, np.int64), *_parts(area, key, indices, taken=True))
