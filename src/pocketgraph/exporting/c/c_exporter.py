"""Writes a model as a library in C99."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from pocketgraph.errors import UsageError, option
from pocketgraph.exporting.c.building import XNNPACK_LINKS, CExecutable, compiler, has_xnnpack
from pocketgraph.exporting.c.library import (
    Backend,
    LackingOperatorsError,
    Library,
    Place,
    built,
    check_float_operations,
)
from pocketgraph.exporting.c_identifiers import checked_name
from pocketgraph.exporting.labels import check_labels
from pocketgraph.exporting.model import EntryPoint, ExportModel, Feeds, Normalization, Written, check_sizes
from pocketgraph.exporting.programs import LackingError, float_program, port_notes, quantized_program
from pocketgraph.exporting.samples import taken_feeds
from pocketgraph.formats.files import write_files
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Program
from pocketgraph.quantization.core.program_runner import ProgramRunner, as_fed, real

TOLERANCES = {"float32": 1e-4, "static": 0.05}
"""The largest difference of floats from the reference engine, as a share of the peak; the mean one of eight bits."""


def written_file(
    model: ExportModel,
    path: str,
    *,
    mode: Literal["float32", "static"],
    io: Literal["float", "int8"],
    weights: Place,
    prefix: str,
    backend: Backend,
) -> Written:
    """Writes it; see ``write`` of this package."""
    checked_name(prefix)
    if mode != "static" and io != "float":
        raise UsageError(f"{option('io')} is for {option('mode')}=static")
    check_labels(model)
    notes = check_sizes(model, "a C library")
    if len(model.entries) > 1:
        others = ", ".join(entry.name for entry in model.entries[1:])
        notes.append(
            f"a library has one entry point: '{model.main.name}'; {option('signatures')} picks another ({others})"
        )
    if mode == "static":
        with _lacking(model):
            program, said = quantized_program(
                model.main, model, io=io, target="C", check=partial(check_float_operations, backend=backend)
            )
        notes += said
    else:
        program = float_program(model.main, model, target="C")
    notes += port_notes(model.main, program)
    library = _library(model, program, prefix, weights, backend)
    write_files(path, library.files)
    notes.append(f"the arena has {library.arena:,} bytes, the weights {library.weights:,}")
    written = Written(notes=notes, tolerance=TOLERANCES[mode], is_coded=mode == "static", has_main_alone=True)
    if compiler() is None:
        written.unchecked = "there is no C compiler here; `make check` in the folder does it where there is one"
        return written
    links: tuple[str, ...] = ("-lm",)
    if backend == "xnnpack":
        links = XNNPACK_LINKS
        if not has_xnnpack():
            written.unchecked = "XNNPACK is not here (Debian: libxnnpack-dev, libpthreadpool-dev)"
            return written
    executable = CExecutable(path, prefix, library.inputs, library.outputs, links=links)
    checked = _CheckedRun(model.main, program, executable)
    written.run, written.seconds = checked.run, checked.seconds
    return written


def _library(model: ExportModel, program: Program, name: str, weights: Place, backend: Backend) -> Library:
    entry = model.main
    feeds = taken_feeds(model)
    arrays = as_fed([np.asarray(feeds[port.name]) for port in entry.inputs], program.inputs)
    with _lacking(model):
        return built(
            program,
            name,
            [port.name for port in entry.inputs],
            [port.name for port in entry.outputs],
            weights=weights,
            normalization=model.normalization or Normalization(),
            labels=model.labels,
            golden=(arrays, ProgramRunner(program)(arrays)),
            backend=backend,
        )


@contextlib.contextmanager
def _lacking(model: ExportModel) -> Iterator[None]:
    """Has an error name the nodes of the model that there are no kernels for."""
    try:
        yield
    except LackingOperatorsError as lacking:
        raise LackingError("C", model.graph, lacking.reasons) from lacking


@dataclass
class _CheckedRun:
    """A library that runs on this machine, for the check of exports."""

    entry: EntryPoint
    program: Program
    executable: CExecutable

    def run(self, name: str, feeds: Feeds) -> dict[str, Array]:
        results = self.executable.run(self._arrays(feeds))
        values = zip(self.entry.outputs, self.program.outputs, results, strict=True)
        return {port.name: real(value, array) for port, value, array in values}

    def seconds(self, name: str, feeds: Feeds) -> float:
        return self.executable.seconds(self._arrays(feeds))

    def _arrays(self, feeds: Feeds) -> list[Array]:
        return as_fed([np.asarray(feeds[port.name]) for port in self.entry.inputs], self.program.inputs)
