"""What a call of a session is told by: calls with equal keys run the same way, in this process and in later ones."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pocketgraph.graph import DType, Shape
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.feeding.feeds import is_bytes, is_switch

Sized: TypeAlias = "tuple[DType | None, tuple[int | None, ...]]"
"""Type and shape of a fed tensor; a size that is left open (open_sizes.py) is None."""
SMALLEST_OPEN = 2
"""Of a size that is open. At size 1 tensors are repeated, and axes left out; of nothing LiteRT computes nothing."""


class CallKey(NamedTuple):
    """A call, its names looked up.

    Attributes:
        feeds: the fed tensors with type and shape, in the caller's order.
        fetches: the wanted tensors.
        targets: nodes to run besides.
        switches: the fed values that the plan may rest on, by tensor name (see feeds.is_switch).
        is_traced: each part's operations are wanted as well.
        is_described: what runs where is wanted as well.
    """

    feeds: tuple[tuple[Endpoint, Sized], ...]
    fetches: tuple[Endpoint, ...]
    targets: tuple[str, ...] = ()
    switches: tuple[tuple[str, bool], ...] = ()
    is_traced: bool = False
    is_described: bool = False

    @staticmethod
    def of(
        feeds: Mapping[Endpoint, Sized],
        fetches: Sequence[Endpoint],
        targets: Sequence[str],
        values: Mapping[str, Array],
        traced: bool = False,
    ) -> CallKey:
        """The key of a call; ``values`` are its switches by tensor name."""
        switches = tuple([(name, bool(value)) for name, value in values.items()])
        return CallKey(tuple(feeds.items()), tuple(fetches), tuple(targets), switches, traced)

    def of_model(self, digest: str) -> str:
        """What is kept on disk of a model for all calls with these switches is found by this text."""
        return " ".join([digest, *(f"{name}={value}" for name, value in sorted(self.switches))])

    def of_call(self, digest: str) -> str:
        """Likewise for calls with these feeds' types and shapes too, in whatever order they are fed."""
        given = sorted((str(e), dtype.name if dtype else "?", tuple(shape)) for e, (dtype, shape) in self.feeds)
        return f"{self.of_model(digest)} {given}"

    def differing(self, other: CallKey) -> set[tuple[int, int]]:
        """The sizes, each a feed's place and an axis, that are not those of a key of equal ranks."""
        return {
            (feed, axis)
            for feed, ((_, (_, own)), (_, (_, sizes))) in enumerate(zip(self.feeds, other.feeds, strict=True))
            for axis, pair in enumerate(zip(own, sizes, strict=True))
            if pair[0] != pair[1]
        }

    def with_open(self, axes: Container[tuple[int, int]]) -> CallKey:
        """The key with these sizes left open."""
        return self._replace(
            feeds=tuple([
                (end, (dtype, tuple([None if (feed, axis) in axes else n for axis, n in enumerate(sizes)])))
                for feed, (end, (dtype, sizes)) in enumerate(self.feeds)
            ])
        )  # fmt: skip

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of what is fed, where no size is left open."""
        return tuple([Shape(sizes).known for _, (_, sizes) in self.feeds])

    def with_shapes(self, shapes: Sequence[tuple[int, ...]]) -> CallKey:
        """The key of a call with the same feeds in other shapes."""
        pairs = zip(self.feeds, shapes, strict=True)
        return self._replace(feeds=tuple([(end, (dtype, shape)) for (end, (dtype, _)), shape in pairs]))

    @property
    def of_ranks(self) -> CallKey:
        """The key of calls that differ from this one in sizes alone."""
        return self._replace(feeds=tuple([(end, (dtype, (len(sizes),))) for end, (dtype, sizes) in self.feeds]))

    @property
    def has_open_sizes(self) -> bool:
        """Whether some size is left open."""
        return any(None in shape for _, (_, shape) in self.feeds)

    @property
    def wanted(self) -> str:
        """The fetches and targets as text."""
        return f"{[*map(str, self.fetches)]} {[*self.targets]}"


class ResolvedCall(NamedTuple):
    """A call, its names looked up in the graph.

    Attributes:
        key: what it is told by.
        switches: the fed values that decide what runs, by tensor name (see feeds.is_switch).
        values: the arrays fed, in the caller's order; none when only shapes were given.
    """

    key: CallKey
    switches: dict[str, Array]
    values: list[Array]


def spelled_key(fetches: Any, feeds: Mapping[Any, Any], targets: Any, values: Sequence[Any]) -> tuple[Any, ...]:
    """The key of a call before names are looked up: names as spelled, arrays' types and shapes, the values of switches.

    What is no array counts as None, and what holds other objects than strings.
    """
    key = [fetches, targets, *feeds]
    for value in values:
        if type(value) is np.ndarray and (value.dtype.kind != "O" or is_bytes(value)):
            key += (value.dtype, value.shape)
            if may_switch(value) and is_switch(value):
                key.append(bool(value))
        else:
            key.append(None)
    return tuple(key)


def may_switch(value: Array) -> bool:
    """Whether an array of this type and shape can be a switch (see feeds.is_switch)."""
    return value.size == 1 and value.dtype.kind in "bf"


def switch_of(value: Array) -> bool | None:
    """What a switch says; None for a value that is none."""
    return bool(value) if is_switch(value) else None
