"""Runs that TensorFlow recorded beside a frozen graph (tools/frozen_graphs.py writes both)."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

from graph_files import graph_file
from pocketgraph import Session

Arrays = dict[str, np.ndarray[Any, Any]]


def recorded_runs(folder: pathlib.Path, name: str) -> list[tuple[Arrays, Arrays]]:
    """(feeds, results) of each run in NAME.npz, by tensor name."""
    found: list[tuple[Arrays, Arrays]] = []
    with np.load(folder / f"{name}.npz") as data:
        for key in data.files:
            way, number, tensor = key.split("_", 2)
            while len(found) <= int(number):
                found.append(({}, {}))
            found[int(number)][way == "out"][tensor] = data[key]
    return found


def assert_repeats(folder: pathlib.Path, name: str, **options: Any) -> None:
    """A graph gives what was recorded of it, in one session, twice, so that plans are met again.

    Args:
        folder, name: of the graph, with the runs beside it.
        options: those of the Session.
    """
    runs = recorded_runs(folder, name)
    with Session(graph_file(folder, name), **options) as session:
        for feeds, expected in [*runs, *runs]:
            for result, value in zip(session.run(list(expected), feeds), expected.values(), strict=True):
                assert_near(result, value)


def assert_near(actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    """The same shape and type, and floats of nets with some steps."""
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-6)
