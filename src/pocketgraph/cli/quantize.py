"""``pocketgraph quantize``: an eight-bit model out of a float graph, and a report on every layer."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

import click

from pocketgraph.cli.shared.data_options import (
    cluster_option,
    data_options,
    reading_options,
    say,
    shape_option,
    shapes_of,
)
from pocketgraph.cli.shared.options import flag_bool, labels_option, names, seed_option, signature_option
from pocketgraph.cli.shared.output import CALLED, echo
from pocketgraph.errors import UsageError
from pocketgraph.quantization.core import quantization_options as options

if TYPE_CHECKING:
    from pocketgraph.quantization import QuantizedModel


def _one_of(name: str, kind: Any, help: str) -> Callable[[Any], Any]:
    """An option that is one of the members of a Literal, by default the first."""
    members = get_args(kind)
    return click.option(name, type=click.Choice(members), default=members[0], show_default=True, help=help)


@click.command("quantize")
@click.argument("model")
@click.option(
    "--calibrate", "--data", "calibrate", metavar="DIR|NPZ|LIST", help="Realistic inputs, without labels; about 100 do."
)
@click.option("-o", "--output", "out", required=True, help="The .tflite or .pb file to write.")
@_one_of(
    "--mode", options.Mode,
    "static: eight-bit weights and tensors. dynamic: LiteRT quantizes tensors as they come. weights: only those.",
)  # fmt: skip
@_one_of("--activations", options.Activations, "Codes of tensors; int16 loses next to nothing and is slow.")
@_one_of("--weights", options.WeightType, "Codes of weights; int4 for large layers, in half of the bytes.")
@_one_of("--io", options.InOut, "What goes in and out; codes have a scale and a zero point in the file.")
@click.option("--max_kl", type=float, help="Leave layers in float until the mean KL is not above this.")
@click.option(
    "--max_accuracy_drop", type=float, metavar="POINTS",
    help="Leave layers in float until the share of right answers, in per cent, falls by no more than this; where the "
    "data tell no classes, until no more answers change.",
)  # fmt: skip
@click.option(
    "--judge", metavar="DIR|NPZ|LIST", help="What the budget is measured on; default: samples after the first --limit."
)
@labels_option(", for data with classes")
@_one_of("--ranges", options.Ranges, "How the ranges of tensors are chosen.")
@_one_of(
    "--rounding", options.Rounding,
    "fitted: to each layer's results. adaround: so too, up or down together by gradient. corrected: nearest "
    "codes and biases that make up for them.",
)  # fmt: skip
@flag_bool("--equalize", help="Make channels even across layers first.")
@click.option(
    "--float_share", type=float, default=options.QuantizationOptions.float_share, show_default=True,
    help="Largest share of the multiplications to leave in float where eight bits hurt; 0: none.",
)  # fmt: skip
@click.option(
    "--widen", type=float, default=options.QuantizationOptions.widen, show_default=True,
    help="Largest share of the multiplications to add for finer steps of narrow tensors; 0: none.",
)  # fmt: skip
@click.option("--keep", default="", help="Layers to leave in float, by commas.")
@click.option("--without", default="", help="Steps to leave out, by commas; docs/quantization.md lists them.")
@click.option(
    "--limit", type=click.IntRange(1), default=100, show_default=True, help="How many samples to calibrate with."
)
@seed_option("Of every choice by chance")
@click.option(
    "--report", "report_path", help="Where the report goes; default: OUTPUT.report.html, and .json beside it."
)
@cluster_option
@signature_option
@shape_option
@data_options
def command(
    model: str, calibrate: str | None, out: str, report_path: str | None, cluster_address: str, **how: Any
) -> None:  # fmt: skip
    """Make an eight-bit LiteRT file, or graph, of MODEL: a frozen graph, or the directory of a SavedModel or training.

    The samples show which values each tensor takes. Weights get a scale for each output channel and are fitted so that
    each layer gives what the float one gave. After that a report says what each layer lost and why.

    A call that was interrupted goes on where it was when it is made again.

    \b
      pocketgraph quantize frozen.pb --calibrate=photos/ -o small.tflite
      pocketgraph quantize frozen.pb --calibrate=photos/ -o small.tflite --max-accuracy-drop=0.5
      pocketgraph quantize frozen.pb --mode=dynamic -o small.tflite
    """
    from pocketgraph.apps.quantizing import quantize
    from pocketgraph.cli.shared.progress import QUANTIZING, progress_bar
    from pocketgraph.cluster import connected

    is_left = out in CALLED and not report_path  # it goes with the file that stands for the pipe
    report_path = report_path or f"{os.path.splitext(out)[0]}.report.html"
    _check_places(model, out, report_path)
    how["keep"], how["without"] = names(how["keep"]), names(how["without"])
    form: Any = "tflite" if out.endswith(".tflite") else "pb"
    reading = reading_options(how)
    shapes = shapes_of(how.pop("input_shape"))
    others = {name: value for name, value in how.items() if name not in (*reading, "feed")}
    with connected(cluster_address), progress_bar(QUANTIZING) as tell:
        made = quantize(
            model, calibrate, form=form, resume=f"{os.path.splitext(out)[0]}.resume.npz", progress=tell, notify=say,
            shapes=shapes, **others, **reading,
        )  # fmt: skip
        made.save(out, report=report_path)
        for line in summary(made):
            echo(line)
        figures = f"{os.path.splitext(report_path)[0]}.json"
        echo(f"written: {out}" if is_left else f"written: {out}, {report_path}, {figures}")


def _check_places(model: str, out: str, report_path: str) -> None:
    """Refuses places that nothing can be written to before any work is done.

    Raises:
        UsageError: the output has an unknown ending, or is the model.
        PocketgraphError: there is no place for what is to be written.
    """
    from pocketgraph.formats.files import check_place

    if not out.endswith((".tflite", ".pb")):
        raise UsageError(f"'{out}' does not end in .tflite or .pb, the forms that are written")
    for place in (out, report_path):
        check_place(place, model)


def summary(made: QuantizedModel) -> list[str]:
    """What was done and what it cost, a line each."""
    from pocketgraph.quantization.report.html_report import summary as of_layers

    if made.form == "tflite":
        return [*of_layers(made.report), *made.size_and_latency().lines()]
    size = f"{made.report.float_bytes:,} bytes of float weights, the file has {made.report.bytes:,}"
    return [*of_layers(made.report), size]
