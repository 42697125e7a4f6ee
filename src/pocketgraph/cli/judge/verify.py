"""``pocketgraph verify``: two models on the same feeds, how far apart their outputs are, and whether that passes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from pocketgraph.cli.shared.data_options import feeds, sample_options, say, shapes_of
from pocketgraph.cli.shared.options import named_files, names, seed_option, signature_option
from pocketgraph.cli.shared.output import echo_json, escape, wide_console
from pocketgraph.pages.quantities import counted

if TYPE_CHECKING:
    from pocketgraph.runtime.comparison.compare import Difference
    from pocketgraph.runtime.comparison.comparison_report import Report


@click.command("verify")
@click.argument("a")
@click.argument("b", required=False)
@click.option(
    "--inputs", "-i", multiple=True, metavar="FILE|NAME=FILE",
    help="Feeds: an .npz of arrays by tensor name, or one input's array, picture, recording or text; several times if "
    "need be. Default: made up. With --data: the tensors to feed, by commas.",
)  # fmt: skip
@click.option("--data", metavar="DIR|NPZ|LIST", help="Pictures, recordings, a table or arrays, a set of feeds each.")
@click.option(
    "--limit", type=click.IntRange(1), default=100, show_default=True, help="Take the first so many of --data only."
)
@click.option("--outputs", "-o", default="", help="Comma list of tensors to compare. Default: the likely outputs of A.")
@click.option(
    "--tolerance", type=float, help="Largest difference, a share of A's largest magnitude. Default: 1e-4; 0.02 for a "
    "file of half precision; eight-bit: by agreement of the top class, KL divergence and signal-to-noise ratio.",
)  # fmt: skip
@click.option("--top1", type=float, help="Least share of rows with the same largest element, e.g. 0.99.")
@click.option("--runs", type=int, help="How many sets of made-up feeds; default: 2.")
@seed_option("Of made-up feeds")
@click.option(
    "--input_shape", multiple=True, metavar="NAME:1,224,…",
    help="The shape of a made-up input that the model leaves open; without NAME of the only one.",
)  # fmt: skip
@click.option("--partial", is_flag=True, help="Let feeds cut weights off, which are then not compared.")
@click.option("--engine", metavar="NAME", help="Run both on one engine only: reference, litert, openvino, ….")
@click.option("--engines", is_flag=True, help="Compare MODEL on the reference engine with itself as sessions run it.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
@signature_option
@sample_options
def command(
    a: str, b: str | None, inputs: tuple[str, ...], data: str | None, outputs: str, input_shape: tuple[str, ...],
    engines: bool, as_json: bool, **how: Any,
) -> None:  # fmt: skip
    """Run models A and B (.pb and its like, .tflite, .onnx) on the same feeds and compare what comes out.

    A is taken to be right. Exits with 1 when B is further away than its kind may be, does not depend on the inputs that
    A depends on, or answers always the same. With --engines there is no B: A on the reference engine is compared with A
    as sessions run it.

    \b
      pocketgraph verify frozen.pb small.pb
      pocketgraph verify frozen.pb small.tflite --data=photos/ --preset=mobilenet
      pocketgraph verify frozen.pb small.pb --inputs=feeds.npz --tolerance=0.05 --top1=0.99
      pocketgraph verify frozen.pb --engines
    """
    from pocketgraph.apps.model_comparison import verify
    from pocketgraph.cli.shared.progress import progress_bar

    values = feeds(how.pop("feed"))
    with progress_bar() as tell:
        report = verify(
            a, b, named_files(inputs) if inputs and not data else None, names(outputs) or None, data=data,
            data_inputs=[name for text in inputs for name in names(text)] if data else (), engines=engines,
            shapes=shapes_of(input_shape), feeds=values, progress=tell, notify=say, **how,
        )  # fmt: skip
    b = b or a
    if as_json:
        echo_json(as_dict(report, a, b))
    else:
        show(report, f"{a} on the reference engine" if engines else a, f"{b} by default" if engines else b)
    if not report.passed:
        sys.exit(1)


def as_dict(report: Report, a: str, b: str) -> dict[str, Any]:
    """The report for programs."""
    return {
        "a": a,
        "b": b,
        "passed": report.passed,
        "standard": report.standard,
        "tolerance": report.tolerance,
        "runs": report.runs,
        "made_up": report.is_made_up,
        "notes": report.notes,
        "outputs": [
            {
                "name": d.name,
                "shape": d.shape,
                "max_abs": d.largest,
                "mean_abs": d.mean,
                "max_relative": d.largest_relative,
                "mean_relative": d.mean_relative,
                "worst_index": d.worst,
                "top1": d.top1,
                "snr_db": d.snr,
                "kl": d.kl,
                "problem": d.problem,
                "passed": d.passed,
            }
            for d in report.outputs
        ],
    }


NARROWEST = 8  # columns of an output's name, which is folded
BETWEEN = 3  # columns of blanks beside each column of a table


def show(report: Report, a: str, b: str) -> None:
    """Prints the table and the verdict."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    console = wide_console()
    console.print(escape(f"{a} against {b}"), soft_wrap=True)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("output", overflow="fold", min_width=8)
    quality = ("top-1", "KL", "SNR dB") if report.is_eight_bit else ("mean diff", "worst at", "top-1")
    titles = ("max diff", "of peak", *quality)
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    rows = [row(difference, report.is_eight_bit) for difference in report.outputs]
    for cells in rows:
        table.add_row(*cells)
    is_apart = any(difference.problem for difference in report.outputs)
    if not is_apart and _needed([("", "output", *titles), *rows]) <= console.width:
        console.print(table)
    else:  # a narrow terminal would cut numbers off
        for verdict, output, *numbers in rows:
            console.print(f"{verdict} {output}", soft_wrap=True)
            console.print(
                *(f"  {title} {cell}\n" for title, cell in zip(titles, numbers, strict=True) if cell), sep="", end=""
            )
    for note in report.notes:
        console.print(f"note: {escape(note)}", soft_wrap=True)
    if report.is_eight_bit and report.is_made_up:
        console.print("note: the feeds are made up; eight-bit models are better judged on --data", soft_wrap=True)
    failed = [d for d in report.outputs if not d.passed]
    kind = "made-up feeds" if report.is_made_up else "feeds"
    text = f"{escape(report.standard)}, {counted(report.runs, 'set')} of {kind}"
    if failed:
        console.print(
            f"[red]differs[/red]: {len(failed)} of {counted(len(report.outputs), 'output')} "
            f"{'fails' if len(failed) == 1 else 'fail'}: {text}",
            soft_wrap=True,
        )
    else:
        console.print(f"[green]equal[/green] {text}", soft_wrap=True)


def _needed(lines: Sequence[Sequence[str]]) -> int:
    """Columns that a table takes with no number cut off."""
    from rich.cells import cell_len
    from rich.text import Text

    widths = [max(cell_len(Text.from_markup(cell).plain) for cell in column) for column in zip(*lines, strict=True)]
    return sum(widths) - widths[1] + NARROWEST + BETWEEN * len(widths)


def row(d: Difference, is_eight_bit: bool) -> list[str]:
    """One output's line of the table."""

    shape = escape("[" + ",".join(map(str, d.shape)) + "]")
    verdict = "[green]ok[/green]" if d.passed else "[red]differs[/red]"
    output = f"{escape(d.name)} {shape}"
    if d.problem:
        return [verdict, f"{output}: {escape(d.problem)}", *([""] * 5)]
    top1 = "" if d.top1 is None else f"{d.top1:.2%}"
    kl, snr = ("" if number is None else f"{number:.3g}" for number in (d.kl, d.snr))
    quality = [top1, kl, snr] if is_eight_bit else [f"{d.mean:.3g}", ",".join(map(str, d.worst)), top1]
    return [verdict, output, f"{d.largest:.3g}", f"{d.largest_relative:.3g}", *quality]
