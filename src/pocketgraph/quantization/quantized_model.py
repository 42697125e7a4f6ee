"""An eight-bit model: what it is, what it lost, and how it is saved."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

from pocketgraph.errors import PocketgraphError, UsageError, option, path_of
from pocketgraph.formats import to_bytes
from pocketgraph.formats.files import write_atomically
from pocketgraph.graph import Graph, canonical
from pocketgraph.litert.program import Operation, Program, Value, passed_through
from pocketgraph.pages.document import fragment
from pocketgraph.pages.parts import Verdict, notes
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.accuracy_budget import ProgramComparison
from pocketgraph.quantization.batch_proof import with_proven_batch
from pocketgraph.quantization.conversion.to_graphdef import to_graphdef
from pocketgraph.quantization.core.program_runner import Samples
from pocketgraph.quantization.core.quantization_options import Progress, silent
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.resume_state import ResumeState
from pocketgraph.quantization.report.html_report import to_fragment, to_html, to_json
from pocketgraph.quantization.report.layer_report import QuantizationReport, report_of
from pocketgraph.quantization.report.size_and_latency import SizeAndLatency, measure_size_and_latency
from pocketgraph.quantization.serialization.tflite_bytes import as_written, model_bytes, written_bytes

SUFFIXES = (".tflite", ".pb")
OPEN = "the batch is open: several samples give together what each gives alone"


@contextmanager
def _output_names(program: Program, names: Sequence[str]) -> Iterator[Program]:
    """The program, whose outputs have the names that were asked for within it, and not those of what they hand on."""
    outputs = list(program.outputs)
    kept = [value.name for value in program.outputs]
    copies: list[Operation] = []
    for place, (value, name) in enumerate(zip(program.outputs, names, strict=False)):
        if value.constant is not None or canonical(value.name) == canonical(name):
            continue
        if value in program.inputs or program.outputs.count(value) > 1:
            copies.append(passed_through(value, canonical(name)))
            outputs[place] = copies[-1].outputs[0]
        else:
            value.name = canonical(name)
    try:
        yield Program(program.inputs, outputs, [*program.operations, *copies], program.rounded)
    finally:
        for value, name in zip(program.outputs, kept, strict=True):
            value.name = name


@dataclass(eq=False)
class QuantizedModel:
    """What ``pocketgraph.quantize`` gives.

    Attributes:
        name: of the float model's file.
        outcome: the eight-bit program and all that was found out on the way to it.
        exact: the float program.
        graph: the graph that it was lowered from.
        outputs: the tensors that it computes.
        samples: what it was calibrated with, or its weights fitted to; perhaps none.
        form: ``tflite`` or ``pb``: a ``tflite`` model has operations that no node of the graph stands for.
        judged: the float program and the eight-bit one beside each other, on samples; None where there were none.
        threads: how many threads to compute with.
        without: names of steps that were left out.
        progress: told the stage of a measurement, how many steps of it are done, and of how many.
        resume: what an interrupted call had found; its file is deleted when the model is saved.
        source: the graph whose batch may be open, and of which inputs it is.
        describe: gives the .tflite file with what apps have to know of it; None where that is nothing.
    """

    name: str
    outcome: QuantizationState
    exact: Program
    graph: Graph
    outputs: list[str]
    samples: Samples
    form: str = "tflite"
    judged: ProgramComparison | None = None
    threads: int = 1
    without: tuple[str, ...] = ()
    progress: Progress = field(default=silent, repr=False)
    resume: ResumeState = field(default_factory=ResumeState, repr=False)
    source: tuple[Graph, Sequence[bool]] | None = field(default=None, repr=False)
    describe: Callable[[], bytes | None] | None = field(default=None, repr=False)
    _written: tuple[Program, Mapping[Value, tuple[int, ...]]] | None = field(default=None, init=False, repr=False)

    @property
    def program(self) -> Program:
        """The eight-bit program of LiteRT operators."""
        return self.outcome.converted.program

    @property
    def notes(self) -> list[str]:
        """What was done and why, a sentence each; those that begin with ``warning:`` are to be looked at. What is said
        of an open batch comes with the file."""
        return self.outcome.notes

    def to_bytes(self, form: str | None = None) -> bytes:
        """The content of a file.

        Args:
            form: ``tflite`` or ``pb``; by default the one that the model was made for.

        Returns:
            The bytes, the same each time.

        Raises:
            UsageError: a model that was made for a .tflite file has no other form.
        """
        if (form or self.form) == "tflite":
            return self._tflite
        if self.form != "pb":
            raise UsageError("this model was made for a .tflite file", hint="make it with form='pb' for both")
        return bytes(to_bytes(to_graphdef(self.program, self.graph, self.outputs)))

    def to_described_bytes(self, metadata: Mapping[str, bytes]) -> bytes:
        """The .tflite file with metadata.

        Args:
            metadata: named bytes that say how it is to be used.

        Returns:
            Its content.
        """
        with _output_names(self.program, self.outputs) as program:
            if self._written is None:
                written = as_written(program, self.without)
                found = self._with_open_batch(written)
                self._written = (written, {}) if isinstance(found, str) else found
                if found:
                    self.notes.append(f"the batch is fixed: {found}" if isinstance(found, str) else OPEN)
            return written_bytes(*self._written, metadata)

    def _with_open_batch(self, written: Program) -> tuple[Program, Mapping[Value, tuple[int, ...]]] | str:
        """What the file holds for any batch; why samples do not show that it serves others, "" for no open one."""
        if self.source is None:
            return ""
        graph, is_open = self.source
        ends = [value.name for value in self.exact.inputs], self.outputs
        return with_proven_batch(written, is_open, graph, ends, self.samples, self.threads)

    @cached_property
    def _tflite(self) -> bytes:
        described = self.describe() if self.describe is not None else None
        return described or self.to_described_bytes({})

    @cached_property
    def report(self) -> QuantizationReport:
        """What each layer lost, and through what; both models are run on some samples for it."""
        measured = self.__dict__.get("_speed")
        float_size = measured.float_bytes if measured else None
        if self.form == "tflite" and float_size is None:
            float_size = self._float_bytes
        return report_of(
            self.outcome, self.samples, len(self.to_bytes()), threads=self.threads, progress=self.progress,
            float_size=float_size,
        )  # fmt: skip

    def size_and_latency(self) -> SizeAndLatency:
        """What both models take as .tflite files, measured in turn on this machine, once.

        Returns:
            Bytes, and seconds of a run, of each.
        """
        return self._speed

    @cached_property
    def _speed(self) -> SizeAndLatency:
        found = measure_size_and_latency(self.exact, self.program, len(self._tflite), self.samples, self.threads)
        return replace(found, float_bytes=found.float_bytes + self._described_bytes)

    @property
    def _described_bytes(self) -> int:
        """What says how the file is to be used, as that of floats would, too."""
        return len(self._tflite) - len(self.to_described_bytes({})) if self.describe is not None else 0

    @property
    def _float_bytes(self) -> int:
        return len(model_bytes(self.exact)) + self._described_bytes

    def save(self, path: str | os.PathLike[str], report: str | os.PathLike[str] | None = None) -> None:
        """Writes the model, whole or not at all.

        Args:
            path: ends in ``.tflite`` or ``.pb``.
            report: where the report goes, a page; its numbers go beside it as ``.json``. None for no report.

        Raises:
            UsageError: the path ends in something else, or the model was made for the other form.
        """
        place = path_of(path, "what to write")
        if not place.endswith(SUFFIXES):
            raise UsageError(f"'{place}' does not end in .tflite or .pb, the forms that are written")
        with self.resume.kept_when_stopped():
            content = self.to_bytes("tflite" if place.endswith(".tflite") else "pb")
            speed = self.size_and_latency() if report is not None and self.form == "tflite" else None
            found = self.report if report is not None else None
            write_atomically(place, content)
            if found is not None and report is not None:
                page = os.fspath(report)
                try:
                    write_atomically(page, to_html(found, f"{self.name} in few bits", speed).encode())
                    write_atomically(f"{os.path.splitext(page)[0]}.json", to_json(found, {"model": self.name}).encode())
                except PocketgraphError as error:
                    hint = f"the model is written: {place}; make room, or give {option('report')} another place"
                    raise PocketgraphError(error.what, where=error.where, hint=hint) from None
        self.resume.remove()

    @property
    def _judged_on(self) -> str:
        """On which samples it was judged, in words; others than those of calibration do worse."""
        assert self.judged is not None
        seen = "" if self.outcome.are_unseen else " that it was calibrated with"
        return f"on {counted(self.judged.comparison.count, 'sample')}{seen}"

    def _repr_html_(self) -> str:
        """What a notebook shows: the figures so far; layers, once ``report`` was asked for."""
        if "report" in self.__dict__:
            return to_fragment(self.report, self.__dict__.get("_speed"))
        judged = self.judged.comparison if self.judged is not None else None
        found = (f"{self._judged_on.capitalize()}: {judged.words()}.",) if judged is not None else ()
        return fragment(Verdict("", repr(self).strip("<>"), found).html(), notes(self.notes[:50]))

    def __repr__(self) -> str:
        program = self.outcome.program
        coded = len(self.outcome.converted.quantized)
        size = f"{len(self._tflite):,} bytes of {self._float_bytes:,}"
        layers = (
            f"{coded} of {counted(len(program.operations), 'operation')} in codes" if coded else "weights in few bits"
        )
        judged = f"; {self._judged_on}: {self.judged.words()}" if self.judged else ""
        return f"<QuantizedModel {self.name}: {size}, {layers}{judged}>"
