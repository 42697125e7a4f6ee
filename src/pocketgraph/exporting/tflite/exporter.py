"""Writes a LiteRT file of a model."""

from __future__ import annotations

import numpy as np

from pocketgraph.exporting.model import Array, EntryPoint, ExportModel, Feeds, Written
from pocketgraph.exporting.programs import float_program
from pocketgraph.litert.runner import PlainRunner
from pocketgraph.quantize.running import model_bytes


def write(model: ExportModel, path: str) -> Written:
    """Writes the file.

    Args:
        model: the model.
        path: where the file goes.
    """
    program = float_program(model.main, model)
    with open(path, "wb") as file:
        file.write(model_bytes(program))
    return Written(run=_runner(path, model.main, model.threads))


def _runner(path: str, entry: EntryPoint, threads: int):  # type: ignore[no-untyped-def]
    runner = PlainRunner(path, threads)

    def run(name: str, feeds: Feeds) -> dict[str, Array]:
        results = runner.run([np.ascontiguousarray(feeds[port.name]) for port in entry.inputs])
        return {port.name: result for port, result in zip(entry.outputs, results, strict=True)}

    return run
