"""Inputs for an export: those that the caller has, and made-up ones where there are none."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from pocketgraph.errors import UsageError, did_you_mean
from pocketgraph.exporting.model import Array, EntryPoint, Feeds, Samples
from pocketgraph.runtime.compare import plain_values
from pocketgraph.runtime.samples import random_values

Given: TypeAlias = (
    "Mapping[str, Any] | Iterable[Mapping[str, Any]] | Callable[[], Iterable[Feeds]] | str | os.PathLike[str] | None"
)


def samples_of(given: Given, entry: EntryPoint) -> tuple[Samples | None, int]:
    """What a caller gives as samples, in one form, and how many they are.

    Args:
        given: one set of inputs by public name, several of them, a function that gives them anew each time, or the path
            of an .npz file of one set.
        entry: what they go into.

    Raises:
        UsageError: a set lacks an input, has an unknown one, or one that does not fit.
    """
    if given is None:
        return None, 0
    if isinstance(given, str | os.PathLike):
        with open(given, "rb") as file, np.load(file, allow_pickle=False) as loaded:
            given = {name: loaded[name] for name in loaded.files}
    if callable(given):
        function = given
        return lambda: (fitting(feeds, entry) for feeds in function()), sum(1 for _ in function())
    sets = [given] if isinstance(given, Mapping) else list(given)
    if not sets:
        raise UsageError("there are no samples")
    held = [fitting(feeds, entry) for feeds in sets]
    return lambda: iter(held), len(held)


def fitting(feeds: Mapping[str, Any], entry: EntryPoint) -> dict[str, Array]:
    """One set of inputs as arrays of the entry point's types.

    Raises:
        UsageError: see ``samples_of``.
    """
    unknown = set(feeds) - {port.name for port in entry.inputs}
    if unknown:
        name = sorted(unknown)[0]
        raise UsageError(f"there is no input '{name}'", hint=did_you_mean(name, (port.name for port in entry.inputs)))
    found = {}
    for port in entry.inputs:
        if port.name not in feeds:
            raise UsageError(f"the samples have no input '{port.name}'")
        array = np.asarray(feeds[port.name])
        array = array if array.dtype.kind in "OSU" else array.astype(port.dtype.numpy, copy=False)
        dims = port.shape if port.shape is not None else port.sizes
        if dims is not None and (
            len(dims) != array.ndim or any(d not in (None, n) for d, n in zip(dims, array.shape, strict=True))
        ):
            raise UsageError(f"a sample of '{port.name}' has the shape {list(array.shape)}, not {list(dims)}")
        found[port.name] = array
    return found


def made_feeds(entry: EntryPoint, seed: int = 0, *, plain: bool = False) -> dict[str, Array]:
    """One set of made-up inputs, the same for the same seed; see runtime.samples.sample_feeds.

    Args:
        entry: what they go into.
        seed: which set.
        plain: ones and words instead of random numbers and empty texts.
    """
    rng = np.random.default_rng(seed)
    made = {port.name: random_values(port.dtype, port.sizes or (), rng, port.name) for port in entry.inputs}
    return {name: plain_values(value) for name, value in made.items()} if plain else made
