"""The proof of a training export: what was written beside the graph as it was given, step by step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.exporting.model import Array, EntryPoint, ExportModel, Feeds, Written
from pocketgraph.runtime.session import Session

STEPS = 3
"""Runs of each entry point that changes variables, so that what it changed counts."""

NOISE = 1e-6
"""Of the largest value of all variables: what is left of gradients that cancel is rounding."""

Pairs = dict[str, list[tuple[Array, Array]]]
"""For each output what was wanted and what was given."""


def trained_side_by_side(
    model: ExportModel, written: Written, made_feeds: Callable[..., Feeds]
) -> list[tuple[EntryPoint, Pairs, int]]:
    """Runs the entry points of a training graph in both, in one order, and gives their outputs.

    Entry points that train are compared by what they give; then those that only read; then what ``save`` gives, which
    is every variable. What ``restore`` takes is compared by reading it back.

    Args:
        model: the model; it has ``original``.
        written: what was written, as it was never run before.
        made_feeds: makes up inputs of an entry point; with ``plain`` ones that every graph takes.

    Raises:
        RunError: one of them does not run.
    """
    assert model.original is not None
    found = []
    with model.original() as session:
        graph = session.graph
        later: list[EntryPoint] = []
        for entry in sorted(model.entries, key=lambda entry: not entry.writes):
            inputs, outputs = graph.signatures[entry.name].inputs, graph.signatures[entry.name].outputs
            own = {p.name for p in entry.inputs} <= set(inputs) and {p.name for p in entry.outputs} <= set(outputs)
            if not own:
                later.append(entry)
                continue
            pairs: Pairs = {port.name: [] for port in entry.outputs}
            runs = STEPS if entry.writes else 1
            feeds = made_feeds(entry)
            for _ in range(runs):
                wanted = _run(session, entry, feeds)
                if wanted is None:
                    feeds = made_feeds(entry, plain=True)
                    wanted = session.run_signature(dict(feeds), entry.name)
                given = _written(written, entry, feeds)
                for name, pair in pairs.items():
                    pair.append((np.asarray(wanted[name]), given[name]))
            found.append((entry, pairs, runs))
        found += _of_files(session, later, written, made_feeds)
    return found


def _of_files(
    session: Session, entries: list[EntryPoint], written: Written, made_feeds: Callable[..., Feeds]
) -> list[tuple[EntryPoint, Pairs, int]]:
    """What is saved is what the variables are; what is restored is given back."""
    found = []
    for entry in sorted(entries, key=lambda entry: bool(entry.inputs)):
        if not entry.inputs:
            held = session.variables()
            given = _written(written, entry, {})
            least = NOISE * max(float(np.max(np.abs(array), initial=0.0)) for array in given.values())
            pairs = {
                n: [(_above(held.get(n.removesuffix(":0"), array), least), _above(array, least))]
                for n, array in given.items()
            }
        else:
            feeds = made_feeds(entry)
            given = _written(written, entry, feeds)
            pairs = {n: [(feeds[n], array)] for n, array in given.items() if n in feeds}
        found.append((entry, pairs, 1))
    return found


def _above(array: Array, least: float) -> Array:
    """The array with 0 for what is less than this."""
    return np.where(np.abs(array) <= least, np.zeros_like(array), array)


def _run(session: Session, entry: EntryPoint, feeds: Feeds) -> dict[str, Array] | None:
    """What the graph gives; None where it does not take the made-up inputs."""
    try:
        return session.run_signature(dict(feeds), entry.name)
    except RunError:
        return None


def _written(written: Written, entry: EntryPoint, feeds: Feeds) -> dict[str, Array]:
    assert written.run is not None
    return written.run(entry.name, feeds)
