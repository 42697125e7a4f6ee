"""``pocketgraph quantize``: an eight-bit model out of a float graph, and a report on every layer."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from pocketgraph.cli._data_options import check_feeds, data_options, feeds, say_of, scaling, sized
from pocketgraph.cli.options import flag_bool, names
from pocketgraph.errors import UsageError

if TYPE_CHECKING:
    from pocketgraph.apps.data import Data
    from pocketgraph.graph import Graph
    from pocketgraph.litert.program import Program
    from pocketgraph.quantize.pipeline import Outcome, Progress
    from pocketgraph.quantize.running import Samples

HELD = 1 << 24
"""Numbers in all samples up to which they are kept in memory; more are read anew each time."""
MOST_JUDGED = 200  # samples that a budget is measured on


@click.command("quantize")
@click.argument("model")
@click.option("--calibrate", metavar="DIR|NPZ|LIST", help="Realistic inputs, without labels; about 100 do.")
@click.option("-o", "--output", "out", required=True, help="The .tflite or .pb file to write.")
@click.option(
    "--mode", type=click.Choice(["static", "dynamic", "weights"]), default="static", show_default=True,
    help="static: eight-bit weights and tensors. dynamic: LiteRT quantizes tensors as they come. weights: only those.",
)  # fmt: skip
@click.option(
    "--activations", type=click.Choice(["int8", "int16"]), default="int8", show_default=True,
    help="Codes of tensors; int16 loses next to nothing and is slow.",
)  # fmt: skip
@click.option(
    "--weights", type=click.Choice(["int8", "int4"]), default="int8", show_default=True,
    help="Codes of weights; int4 for large layers, in half of the bytes.",
)  # fmt: skip
@click.option(
    "--io", type=click.Choice(["float", "int8", "int16"]), default="float", show_default=True,
    help="What goes in and out.",
)  # fmt: skip
@click.option("--max-kl", "--max_kl", type=float, help="Leave layers in float until the mean KL is not above this.")
@click.option(
    "--max-accuracy-drop", "--max_accuracy_drop", type=float, metavar="POINTS",
    help="Likewise for lost top-1 answers, in per cent; for answers that change, where the data tell no classes.",
)  # fmt: skip
@click.option(
    "--judge", metavar="DIR|NPZ|LIST", help="What the budget is measured on; default: samples after the first --limit."
)
@click.option("--labels", help="The name of each class, one a line, for data with classes.")
@click.option(
    "--ranges", type=click.Choice(["auto", "minmax", "percentile", "mse", "entropy"]), default="auto",
    show_default=True, help="How the ranges of tensors are chosen.",
)  # fmt: skip
@click.option(
    "--rounding", type=click.Choice(["fitted", "adaround", "corrected", "nearest"]), default="fitted",
    show_default=True,
    help="fitted: to each layer's results. adaround: so too, up or down together by gradient. corrected: nearest "
    "codes and biases that make up for them.",
)  # fmt: skip
@flag_bool("--equalize", help="Make channels even across layers first.")
@click.option(
    "--float_share", "--float-share", type=float, default=0.12, show_default=True,
    help="Largest share of the multiplications to leave in float where eight bits hurt; 0: none.",
)  # fmt: skip
@click.option(
    "--widen", type=float, default=0.1, show_default=True,
    help="Largest share of the multiplications to add for finer steps of narrow tensors; 0: none.",
)  # fmt: skip
@click.option("--keep", default="", help="Layers to leave in float, by commas.")
@click.option(
    "--limit", type=click.IntRange(1), default=100, show_default=True, help="How many samples to calibrate with."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of every choice by chance.")
@click.option(
    "--report", "report_path", help="Where the report goes; default: OUTPUT.report.html, and .json beside it."
)
@data_options
def command(model: str, calibrate: str | None, out: str, mode: str, limit: int, **how: Any) -> None:
    """Make an eight-bit LiteRT file, or graph, of MODEL: a frozen graph, or the directory of a SavedModel or training.

    The samples show which values each tensor takes. Weights get a scale for each output channel and are fitted so that
    each layer gives what the float one gave. After that a report says what each layer lost and why.

    A call that was interrupted goes on where it was when it is made again.

    \b
      pocketgraph quantize frozen.pb --calibrate=photos/ -o small.tflite
      pocketgraph quantize frozen.pb --calibrate=photos/ -o small.tflite --max-accuracy-drop=0.5
      pocketgraph quantize frozen.pb --mode=dynamic -o small.tflite
    """
    _check(model, calibrate, out, mode, how)
    job = _Job(model, calibrate, out, how)
    if mode == "static":
        job.static(limit)
    else:
        job.light(limit, dynamic=mode == "dynamic")


def _check(model: str, calibrate: str | None, out: str, mode: str, how: dict[str, Any]) -> None:
    """Refuses what does not go together.

    Raises:
        UsageError: something does not.
        PocketgraphError: there is no place for what is to be written.
    """
    from pocketgraph.formats.files import check_place

    if not out.endswith((".tflite", ".pb")):
        raise UsageError(f"'{out}' does not end in .tflite or .pb, the forms that are written")
    if os.path.exists(model) and os.path.exists(out) and os.path.samefile(model, out):
        raise UsageError(f"'{out}' is the model itself, which would be lost", hint="give -o another name")
    for place in (out, how["report_path"]):
        if place:
            check_place(place)
    if out.endswith(".pb"):
        for option, value in (("--activations", how["activations"]), ("--weights", how["weights"])):
            if value != "int8":
                raise UsageError(f"{option}={value} is for .tflite files", hint="or leave it out for a .pb file")
        if mode == "dynamic":
            raise UsageError(
                "--mode=dynamic is for .tflite files", hint="transform_graph's quantize_nodes makes graphs"
            )
        if how["io"] != "float":
            raise UsageError("a .pb file has float inputs and outputs", hint="leave --io out, or write a .tflite file")
    if mode == "static" and not calibrate:
        raise UsageError("no samples are given", hint="pass --calibrate=DIR|NPZ|LIST, or --mode=dynamic")
    if mode != "static":
        for option, value in (("--max-kl", how["max_kl"]), ("--max-accuracy-drop", how["max_accuracy_drop"])):
            if value is not None:
                raise UsageError(f"{option} is for --mode=static: nothing else can stay in float")


class _Job:
    """One model on its way to one file."""

    def __init__(self, model: str, calibrate: str | None, out: str, how: dict[str, Any]) -> None:
        from pocketgraph.quantize.front import front_of, input_shapes
        from pocketgraph.quantize.lowering import lowered_graph
        from pocketgraph.quantize.models import read_graph
        from pocketgraph.quantize.spellings import in_plain_words
        from pocketgraph.runtime.samples import sample_fetches

        self.model, self.calibrate, self.out, self.how = model, calibrate, out, how
        graph = read_graph(model, names(how["outputs"]))
        check_feeds(how["feed"], [graph])
        values = feeds(how["feed"])
        self.outputs = names(how["outputs"]) or list(sample_fetches(graph))
        asked = names(how["inputs"])
        self.front = None if asked else front_of(graph, self.outputs, tuple(values))
        if self.front is not None:
            shapes = dict(self.front.shapes)
            click.echo(
                f"note: the part behind {', '.join(shapes)} is quantized; what reads recordings is not", err=True
            )
        else:
            shapes = input_shapes(graph, self.outputs, asked, tuple(values))
        self.picture = scaling(how, graph if calibrate and not calibrate.endswith((".npz", ".npy")) else None)
        if self.front is None:
            shapes = sized(graph, shapes, calibrate, self.picture)
        self.program: Program
        self.graph: Graph
        self.program, self.graph = lowered_graph(graph, self.outputs, shapes, values)
        if out.endswith(".tflite"):
            self.program = in_plain_words(self.program)
        else:
            from pocketgraph.quantize.as_graph import as_graph

            as_graph(self.program, self.graph, self.outputs)  # what this form does not hold is said before the work

    def open(self, place: str) -> Data:
        """Data for the program."""
        import numpy as np

        from pocketgraph.apps.data import open_data
        from pocketgraph.quantize.models import Input

        inputs = tuple(Input(value.name, value.shape, np.dtype(value.dtype.numpy)) for value in self.program.inputs)
        return open_data(place, inputs, self.picture, self.front, self.how["sample_rate"])

    def held(self, data: Data) -> Samples:
        """The samples, in memory when they are few."""
        if len(data) * sum(value.size for value in self.program.inputs) >= HELD:
            return data.samples
        held = list(data.samples())
        return lambda: iter(held)

    def static(self, limit: int) -> None:
        """Calibrates, quantizes, writes the file and the report, and prints the summary."""
        from pocketgraph.cli._progress import progress_bar
        from pocketgraph.quantize.budget import Budget, quantize_within
        from pocketgraph.quantize.pipeline import Options
        from pocketgraph.quantize.resume import Findings

        how = self.how
        assert self.calibrate is not None
        budget = Budget(how["max_kl"], how["max_accuracy_drop"])
        chosen = ("ranges", "rounding", "equalize", "io", "float_share", "widen", "activations", "weights", "threads",
                  "seed")  # fmt: skip
        keep = [*names(how["keep"]), *self.inner()]
        options = Options(keep=keep, with_tables=self.out.endswith(".tflite"), **{name: how[name] for name in chosen})
        everything = self.open(self.calibrate)
        data = everything.take(limit)
        say_of(data)
        judging = self.judging(everything, data)
        findings = Findings(f"{os.path.splitext(self.out)[0]}.resume.npz", self.key(options, data))
        if findings.resumed:
            click.echo("going on from an interrupted call", err=True)
        with progress_bar() as tell:
            samples = self.held(data)
            try:
                outcome, judged = quantize_within(
                    self.program, samples, len(data), options, budget, self.judge(judging), tell, findings
                )
            except KeyboardInterrupt:
                findings.save()
                raise
            outcome.judged, outcome.are_unseen = judged.comparison, judging is not data
            if not budget.is_set:
                warned = sum(note.startswith("warning:") for note in outcome.notes)
                said = f"on {len(judging)} samples{self.which(judging, data)}: {judged.words()}"
                outcome.notes.insert(warned, said)
            self.write(outcome, samples, self.content(outcome), tell)
        findings.remove()

    def inner(self) -> list[str]:
        """What has to stay in float because the form that is written has no place for its codes."""
        from pocketgraph.quantize.as_graph import inner_operations
        from pocketgraph.quantize.channelwise import with_channelwise_layers

        if not self.out.endswith(".pb"):
            return []
        return inner_operations(with_channelwise_layers(self.program, ()), self.graph)

    def judging(self, everything: Data, data: Data) -> Data:
        """The samples to judge on: those asked for, else others than those calibrated with, else the same."""
        if self.how["judge"]:
            return self.open(self.how["judge"])
        if len(everything) > len(data):
            return everything.after(len(data)).take(MOST_JUDGED)
        return data

    def which(self, judging: Data, data: Data) -> str:
        """What is to be said of the samples that were judged on."""
        return " that it was calibrated with (others do worse)" if judging is data else " that it had not seen"

    def judge(self, data: Data) -> Callable[[Outcome], Any]:
        """What measures an outcome."""
        from pocketgraph.apps.label_image import read_labels
        from pocketgraph.quantize.budget import judged

        known = read_labels(self.how["labels"]) if self.how["labels"] else None
        if self.program.outputs[0].size > 1:
            data.truth(known, self.program.outputs[0].size)  # labels that do not fit are said before the work is done
        return lambda outcome: judged(
            outcome, data.samples, len(data), lambda scores: data.truth(known, scores), self.how["threads"]
        )

    def key(self, options: Any, data: Data) -> str:
        """What the findings of an interrupted call must be of, to be of use to this one."""
        import pocketgraph

        digest = hashlib.sha256()
        inside = sorted(os.path.join(folder, name) for folder, _, found in os.walk(self.model) for name in found)
        for path in inside or [self.model]:
            with open(path, "rb") as file:
                for block in iter(lambda: file.read(1 << 20), b""):
                    digest.update(block)
        asked = (pocketgraph.__version__, options, self.outputs, self.picture, self.how["feed"], self.how["inputs"])
        digest.update(repr((*asked, data.identity())).encode())
        return digest.hexdigest()

    def content(self, outcome: Outcome) -> bytes:
        """The file's bytes."""
        from pocketgraph.formats import to_bytes
        from pocketgraph.quantize.as_graph import as_graph
        from pocketgraph.quantize.running import model_bytes

        if self.out.endswith(".pb"):
            return bytes(to_bytes(as_graph(outcome.converted.program, self.graph, self.outputs)))
        return model_bytes(outcome.converted.program)

    def light(self, limit: int, *, dynamic: bool) -> None:
        """Puts the weights in few bits, writes the file and the report, and prints the summary."""
        from pocketgraph.cli._progress import progress_bar
        from pocketgraph.quantize.light import light_outcome

        data = self.open(self.calibrate).take(limit) if self.calibrate else None
        samples: Samples = self.held(data) if data is not None else lambda: iter(())
        with progress_bar() as tell:
            outcome = light_outcome(
                self.program,
                samples,
                0 if data is None else len(data),
                dynamic=dynamic,
                bits=4 if self.how["weights"] == "int4" else 8,
                with_tables=self.out.endswith(".tflite"),
                threads=self.how["threads"],
                progress=tell,
            )
            self.write(outcome, samples, self.content(outcome), tell)

    def write(self, outcome: Outcome, samples: Samples, content: bytes, tell: Progress) -> None:
        """Writes the model and the report, and prints the summary."""
        from pocketgraph.formats.files import write_atomically
        from pocketgraph.quantize.gain import gain
        from pocketgraph.quantize.layers import report
        from pocketgraph.quantize.page import summary, to_html, to_json
        from pocketgraph.quantize.running import model_bytes

        size = len(model_bytes(self.program)) if self.out.endswith(".tflite") else None
        threads = self.how["threads"]
        found = report(outcome, samples, len(content), threads=threads, progress=tell, float_size=size)
        write_atomically(self.out, content)
        page = self.how["report_path"] or f"{os.path.splitext(self.out)[0]}.report.html"
        name = os.path.basename(os.path.normpath(self.model))
        write_atomically(page, to_html(found, f"{name} in few bits").encode())
        write_atomically(f"{os.path.splitext(page)[0]}.json", to_json(found, {"model": name}).encode())
        for line in summary(found):
            click.echo(line)
        if self.out.endswith(".tflite"):
            compared = gain(self.program, outcome.converted.program, len(content), samples, threads)
            for line in compared.lines():
                click.echo(line)
        else:
            click.echo(f"{found.float_bytes:,} bytes of float weights, the file has {found.bytes:,}")
        click.echo(f"written: {self.out}, {page}")
