"""The proof of a training export: what was written beside the graph as it was given, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.exporting.model import EntryPoint, ExportModel, Feeds, Written
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.comparison.compare import plainer
from pocketgraph.runtime.session import Session

STEPS = 3
"""Runs of each entry point that changes variables, so that what it changed counts."""

NOISE = 1e-6
"""Of the largest value of all variables: what is left of gradients that cancel is rounding."""
AFTER_A_STEP = 0.05
"""How far values may be off, of the peak, that come from other steps. Where the input of a Relu6 is just about 0 or 6,
another order of summation moves it to the other side, and its gradient is another one."""


class SideBySide(NamedTuple):
    """Outputs of an entry point on both sides.

    Attributes:
        entry: the entry point.
        pairs: for each output what was wanted and what was given.
        after: the same of later steps, and of variables that steps changed, which AFTER_A_STEP is for.
        runs: how often it ran.
        feeds: what it was given, which the graph takes.
    """

    entry: EntryPoint
    pairs: dict[str, list[tuple[Array, Array]]]
    after: dict[str, list[tuple[Array, Array]]]
    runs: int
    feeds: Feeds


def trained_side_by_side(model: ExportModel, written: Written, made_feeds: Callable[..., Feeds]) -> list[SideBySide]:
    """Runs the entry points of a training graph in both, in one order.

    First those that only read, then those that train, a few steps each, then ``save``, which gives every variable. What
    ``restore`` takes is compared with what it gives back.

    Args:
        model: the model; it has ``original``.
        written: what was written, as it was never run before.
        made_feeds: makes up inputs of an entry point.

    Raises:
        RunError: one of them does not run.
    """
    assert model.original is not None
    assert written.run is not None
    found = []
    with model.original() as session:
        signatures = session.graph.signatures
        later: list[EntryPoint] = []
        for entry in sorted(model.entries, key=lambda entry: bool(entry.writes)):
            inputs, outputs = signatures[entry.name].inputs, signatures[entry.name].outputs
            if not ({p.name for p in entry.inputs} <= set(inputs) and {p.name for p in entry.outputs} <= set(outputs)):
                later.append(entry)
                continue
            feeds = made_feeds(entry)
            steps = []
            for _ in range(STEPS if entry.writes else 1):
                feeds, wanted = _run(session, entry, feeds)
                given = written.run(entry.name, feeds)
                steps.append({port.name: [(np.asarray(wanted[port.name]), given[port.name])] for port in entry.outputs})
            after = {
                f"{name} of later steps": [pair for step in steps[1:] for pair in step[name]] for name in steps[0]
            }  # fmt: skip
            found.append(SideBySide(entry, steps[0], after if entry.writes else {}, len(steps), feeds))
        held = session.variables()
    for entry in sorted(later, key=lambda entry: bool(entry.inputs)):
        feeds = made_feeds(entry)
        given = written.run(entry.name, feeds)
        if entry.inputs:
            found.append(
                SideBySide(entry, {n: [(feeds[n], array)] for n, array in given.items() if n in feeds}, {}, 1, feeds)
            )
            continue
        least = NOISE * max((float(np.max(np.abs(array), initial=0.0)) for array in given.values()), default=0.0)
        pairs = {
            n: [(_above(held.get(n.removesuffix(":0"), array), least), _above(array, least))]
            for n, array in given.items()
        }
        found.append(SideBySide(entry, {}, pairs, 1, feeds))
    return found


def _above(array: Array, least: float) -> Array:
    """The array with 0 for what is less than this."""
    return np.where(np.abs(array) <= least, np.zeros_like(array), array)


def _run(session: Session, entry: EntryPoint, made: Feeds) -> tuple[Feeds, dict[str, Array]]:
    """What the graph gives for made-up inputs, and these: plainer ones where it takes no others.

    Raises:
        RunError: it takes none.
    """
    tried: list[Feeds] = [made, {name: _small_values(value) for name, value in made.items()}, *plainer(made)]
    for feeds in tried[:-1]:
        try:
            return feeds, session.run_signature(dict(feeds), entry.name)
        except RunError:
            continue
    return tried[-1], session.run_signature(dict(tried[-1]), entry.name)


def _small_values(value: Array) -> Array:
    """Ones and twos for integers, which may be places in a small table: of equal ones a model tells little."""
    return 1 + value % 2 if value.dtype.kind in "iu" and value.dtype.itemsize > 1 else value
