"""``pocketgraph.plan``: which parts of a model run on which engine, why not elsewhere, and whether they are right."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.apps.file_feeds import Given, feeds_of, pairs_of
from pocketgraph.datasets.sample_reading import Notify, SampleReading, unheard
from pocketgraph.errors import RunError
from pocketgraph.freezing.ready_models import for_session
from pocketgraph.graph import Graph, node_name
from pocketgraph.runtime import Session
from pocketgraph.runtime.comparison.compare import plain_values
from pocketgraph.runtime.description import Description
from pocketgraph.runtime.feeding.default_tensors import default_fetches
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds, synthetic_shapes


def plan(
    model: Graph | str | os.PathLike[str],
    inputs: Given | None = None,
    outputs: Sequence[str] | None = None,
    *,
    engine: str | None = None,
    strict: bool = False,
    check: bool = False,
    signature: str | None = None,
    threads: int | None = None,
    notify: Notify | None = None,
) -> Description:
    """Says which parts of a model run on LiteRT, which on the reference engine, and why.

    >>> from pocketgraph.graph.text_format import parse
    >>> print(plan(parse("x = Placeholder(dtype=float, shape=[8])\\ny = Exp(x, T=float)")))
    y:0 from x:0 float[8]
    litert: 1 node, x:0 -> y:0

    Args:
        model: a graph, a model file, or the directory of a SavedModel or a training.
        inputs: by name the shapes that will be fed, tuples of sizes, or arrays or files that have them; or one file of
            arrays. By default the declared shapes, with 1 where a size is open.
        outputs: tensors to compute; by default the likely outputs.
        engine: as for Session; with ``"auto"`` the installed engines are measured on each large part.
        strict: for a session that has TensorFlow's values for NaN and infinities too.
        check: run once on made-up feeds of these shapes and compare each compiled part with the reference engine.
        signature: of a SavedModel, the one that says what goes in and comes out; by default the main one.
        threads: as for Session.
        notify: told what is easily overlooked.

    Returns:
        The parts, the engine of each, and reasons; it prints as text.

    Raises:
        UsageError: the model has no such inputs or outputs, or shapes are not known.
    """
    if not isinstance(model, Graph):
        model = for_session(model, outputs, signature=signature, notify=notify)
    with Session(model, threads, engine=engine, strict=strict, check="always" if check else "first") as session:
        graph = session.graph
        wanted = list(outputs) if outputs else list(default_fetches(graph))
        pairs = pairs_of(inputs)
        sizes = {name: tuple(value) for name, value in pairs if _is_shape(value)}
        files = [(name, value) for name, value in pairs if name not in sizes]
        fed = feeds_of(graph, files, SampleReading(notify=notify or unheard), wanted) if files else {}
        given = {**sizes, **{node_name(name): np.shape(value) for name, value in fed.items()}}
        shapes = {**synthetic_shapes(graph, wanted, given), **given}
        description = session.plan(wanted, shapes, measure=engine == "auto")
        return description._replace(checked=_checked(session, wanted, given)) if check else description


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(size, int) for size in value)


def _checked(
    session: Session, wanted: Sequence[str], shapes: Mapping[str, tuple[int, ...]]
) -> tuple[tuple[str, str], ...]:
    """Runs once, on random numbers or, where the model does not take these, on ones; see Session.checked_parts."""
    feeds = synthetic_feeds(session.graph, wanted, 0, dict(shapes))
    try:
        session.run(wanted, feeds)
    except RunError:
        session.run(wanted, {name: plain_values(value) for name, value in feeds.items()})
    return tuple(dict.fromkeys(part for part in session.checked_parts() if part[1] != "not run"))
