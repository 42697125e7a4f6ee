"""Finds what an earlier process compiled for a model file, without reading or planning anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from pocketgraph.errors import GraphError
from pocketgraph.graph import DType
from pocketgraph.runtime.feeds import is_switch

Array = np.ndarray[Any, Any]


class Executable(Protocol):
    """A compiled part, as the LiteRT engine gives it."""

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs, owned by the caller, for inputs in the order of compilation; safe for several threads."""

    def close(self) -> None:
        """Gives the memory back."""

    def describe(self) -> str:
        """One line for people."""


def directly(executable: Executable, order: Sequence[int]) -> Callable[[list[Array]], list[Array]]:
    """Runs an executable on arrays of just its inputs' types and shapes, of which ``order`` says where each is."""
    quick: Any = getattr(executable, "direct", None)
    if quick is not None:
        run: Callable[[list[Array]], list[Array]] = quick(order)
        return run
    return lambda values: executable.run([values[index] for index in order])


def with_switches(key: str, values: Mapping[str, Array]) -> str:
    """The model's digest with what else a plan rests on: these values."""
    return " ".join([key, *(f"{name}={bool(values[name])}" for name in sorted(values))])


def from_cache(
    key: str,
    feeds: Mapping[str, Array],
    fetches: Sequence[str],
    threads: int,
    cache_dir: Any,
    *,
    by_values: bool = True,
) -> tuple[Executable, tuple[int, ...]] | None:
    """What an earlier process compiled for these feeds and fetches of this model, and which feed each input takes.

    Args:
        key: the model's digest.
        feeds: the arrays by tensor name (``x:0``), each of just the type and shape that will be run.
        fetches: the tensor names, each once.
        threads, cache_dir: as for ``Request``.
        by_values: whether the plan may rest on values (see feeds.is_switch).
    """
    from pocketgraph.litert.executable import lookup

    names = sorted(feeds)
    key = with_switches(key, {name: feeds[name] for name in names if by_values and is_switch(feeds[name])})
    try:
        specs = {name: (DType.of_numpy(feeds[name].dtype), feeds[name].shape) for name in names}
    except GraphError:
        return None  # no tensor has such a type; whoever looks at the graph will say so
    found = lookup(key, names, list(fetches), specs, threads=threads, cache_dir=cache_dir)
    order = {name: index for index, name in enumerate(feeds)}
    return None if found is None else (found, tuple(order[name] for name in names))
