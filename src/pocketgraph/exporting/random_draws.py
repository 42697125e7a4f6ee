"""Models whose run time draws random numbers itself: compared with the same numbers fed to both sides."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pocketgraph.errors import RunError
from pocketgraph.exporting.export_verification import Checked, check
from pocketgraph.exporting.model import ExportModel, Feeds, Port, Written
from pocketgraph.exporting.samples import made_feeds
from pocketgraph.graph import Shape
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.kernels.shapes import infer
from pocketgraph.passes.dropout_removal import is_noise_of_dropout
from pocketgraph.passes.inlining import inlined
from pocketgraph.runtime.session import Session
from pocketgraph.runtime.unsupported_help import without_dropout_help


def check_with_draws_fed(
    model: ExportModel,
    written: Written,
    write: Callable[..., Written],
    arguments: Mapping[str, Any],
    tolerance: float | None = None,
) -> list[Checked]:
    """Compares a second copy of the model, in which what is drawn comes in from outside; ``written`` is only run.

    Args:
        written: what was written of it; notes are added, and why it was not compared where it cannot be.
        write: the exporter.
        arguments: its keyword arguments.
        tolerance: see ``check``.

    Raises:
        DifferenceError, RunError: as ``check``.
    """
    written.notes.append("random numbers are drawn by the run time's own generator")
    if any(name in model.graph and is_noise_of_dropout(model.graph, name) for name in written.draws):
        what = "a dropout or noise was left on, so that results are others in each run"
        written.notes.append(f"warning: {what}; {without_dropout_help()}")
    if written.run is None:
        return []
    fed = with_draws_fed(model, written.draws)
    if fed is None:
        written.run(model.main.name, made_feeds(model.main, plain=True))
        written.unchecked = "it draws random numbers in a loop, so that no two runs give the same"
        return []
    assert fed.samples is not None
    written.run(model.main.name, next(iter(fed.samples())))
    with tempfile.TemporaryDirectory(prefix="pocketgraph-draws-") as folder:
        found = check(fed, write(fed, os.path.join(folder, "model"), **arguments), tolerance)
    return [replace(item, is_made=model.samples is None) for item in found]


def with_draws_fed(model: ExportModel, draws: Sequence[str]) -> ExportModel | None:
    """The model with only its main entry point, and the numbers that some nodes draw among its inputs and samples.

    Returns:
        None where they cannot be fed, as in a loop, which draws anew in each round.
    """
    graph, main = model.graph, model.main
    if not all(name in graph for name in draws):  # those of functions are named as they are inlined
        graph = inlined(graph, [port.tensor for port in (*main.inputs, *main.outputs)], "lower")
    if not all(name in graph for name in draws):
        return None
    tensors = [f"{name}:0" for name in draws]
    for made in (made_feeds(main), made_feeds(main, plain=True)):
        with contextlib.suppress(RunError), Session(graph, engine="reference") as session:
            drawn = session.run(tensors, main.by_tensor(made))
            break
    else:
        return None
    feeds = {port.tensor: (port.dtype, Shape(port.shape)) for port in main.inputs}
    known = infer(graph, feeds, outputs=tensors)
    ports = tuple(
        Port(tensor.removesuffix(":0"), tensor, known.dtype(tensor) or FLOAT, known.shape(tensor).dims, numbers.shape)
        for tensor, numbers in zip(tensors, drawn, strict=True)
    )

    def samples() -> Iterator[Feeds]:
        with Session(graph, model.threads, engine="reference") as session:
            for feeds in model.samples() if model.samples is not None else [made]:
                numbers = session.run(tensors, main.by_tensor(feeds))
                yield {**feeds, **{port.name: array for port, array in zip(ports, numbers, strict=True)}}

    entry = replace(main, inputs=(*main.inputs, *ports))
    return replace(model, graph=graph, entries=(entry,), samples=samples, sample_count=max(1, model.sample_count))
