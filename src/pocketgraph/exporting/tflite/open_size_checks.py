"""Whether a file gives for other sizes what the graph gives, so that these can stay open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.exporting.model import EntryPoint, ExportModel, Feeds
from pocketgraph.exporting.samples import made_feeds
from pocketgraph.exporting.tflite.open_size_programs import Opened
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Program, Value
from pocketgraph.quantization.batch_proof import with_proven_batch
from pocketgraph.runtime.comparison.compare import HALF_TOLERANCE, compared
from pocketgraph.runtime.session import Session

DIFFERS = "LiteRT did not give the same with others"
UNPROVEN = "with others the graph gives NaN or infinity for made-up inputs, which proves nothing"
TOLERANCES = {"float32": 1e-4, "float16": HALF_TOLERANCE, "dynamic": 0.05, "static": 0.05}
"""The largest difference, as a share of the peak, of float32 and float16; the mean one of eight bits."""
Run: TypeAlias = Callable[[Feeds], Mapping[str, Array]]
"""Runs a file; its outputs as numbers, in the types that the graph has."""


def why_fixed(run: Run, entry: EntryPoint, opened: Opened, model: ExportModel) -> str:
    """Why open sizes cannot stay open: the file gives other results than the graph for other sizes, or nothing shows
    that it gives the same; "" where they can.

    Args:
        run: runs the file.
        entry: what it computes.
        opened: as what it was written.
        model: has the entry point.
    """
    other = replace(opened.other, inputs=opened.other.inputs[: len(entry.inputs)])
    made = zip(opened.program.inputs, entry.inputs, strict=False)
    is_longer = any(value.shape != port.sizes for value, port in made)
    why = _why_not(run, entry, model, entry, "") if is_longer else ""
    why = why or _why_not(run, entry, model, other, UNPROVEN)
    tried = _with_one_short(other, opened)
    while not why and (short := next(tried, None)) is not None:
        why = _why_not(run, entry, model, short, "", refused="")
    return why


def _with_one_short(other: EntryPoint, opened: Opened) -> Iterator[EntryPoint]:
    """The entry point with lengths of 1 for one of several inputs whose lengths are open: where the graph repeats what
    has the length of another, the file may give the short one's. LiteRT may refuse them: most models take none."""
    shapes = [opened.shapes.get(value, ())[1:] for value in opened.program.inputs[: len(other.inputs)]]
    long = [at for at, shape in enumerate(shapes) if -1 in shape]
    for at in long if len(long) > 1 else ():
        sizes = other.inputs[at].sizes or ()
        short = sizes[:1] + tuple(1 if size == -1 else own for size, own in zip(shapes[at], sizes[1:], strict=True))
        inputs = [replace(port, sizes=short) if place == at else port for place, port in enumerate(other.inputs)]
        yield replace(other, inputs=tuple(inputs))


def _why_not(
    run: Run, entry: EntryPoint, model: ExportModel, other: EntryPoint, unproven: str, refused: str = DIFFERS
) -> str:
    """Why the file does not serve these sizes, ``unproven`` where nothing shows whether it does, ``refused`` where
    LiteRT does not take them; "" where it does."""
    held = {port.tensor: model.variables[port.name] for port in entry.reads}
    why = unproven and DIFFERS
    drawn = made_feeds(other)
    positive = {name: np.abs(value) if value.dtype.kind == "f" else value for name, value in drawn.items()}
    for feeds in (drawn, made_feeds(other, plain=True), positive):
        try:
            with Session(model.graph, model.threads) as session:
                wanted = session.run(other.fetches, {**held, **other.by_tensor(feeds)})
        except PocketgraphError:
            continue
        try:
            given = run(feeds)
        except PocketgraphError:
            return refused
        found = [
            compared(port.name, [(array, given[port.name])], max(TOLERANCES.values()))
            for port, array in zip(other.outputs, wanted, strict=True)
        ]
        if not all(one.passed for one in found):
            return DIFFERS
        if not any(one.unproven for one in found):
            return ""
        why = unproven
    return why


def of_any_batch(
    program: Program, entry: EntryPoint, model: ExportModel, *, fixed: bool
) -> tuple[Program, Mapping[Value, tuple[int, ...]], list[str]]:
    """A program in eight bits whose batch is open where samples show that it serves others; its open shapes, and what
    is to be said of sizes that are fixed.

    Args:
        program: as its file has it.
        entry: what it was made of, with open sizes.
        model: has samples for it.
        fixed: whether all sizes are to be.
    """
    assert model.samples is not None
    samples, names = model.samples, [port.name for port in entry.inputs]
    is_open = [port.shape is not None and port.shape[:1] == (None,) for port in entry.inputs]
    closed = [port.name for port in entry.inputs if port.shape is None or None in port.shape[1:]]
    opened = with_proven_batch(
        program,
        [] if fixed else is_open,
        model.graph,
        ([port.tensor for port in entry.inputs], entry.fetches),
        lambda: ([np.asarray(feeds[name]) for name in names] for feeds in samples()),
        model.threads,
    )
    if isinstance(opened, str):
        return program, {}, [f"open sizes are fixed to those of the samples{': ' * bool(opened)}{opened}"]
    said = f"open sizes but for the batch are fixed to those of the samples: {', '.join(closed)}"
    return *opened, [said] if closed else []
