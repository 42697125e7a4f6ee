"""``pocketgraph verify``: two models on the same feeds, how far apart their outputs are, and whether that passes."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

import click

from pocketgraph.cli._output import echo, escape
from pocketgraph.cli.options import names
from pocketgraph.errors import UsageError

if TYPE_CHECKING:
    from pocketgraph.runtime.compare import Difference, Report


@click.command("verify")
@click.argument("a")
@click.argument("b")
@click.option(
    "--inputs", "-i", multiple=True, metavar="FILE.npz|NAME=FILE",
    help="Feeds: an .npz of arrays by tensor name; or one input's .npy or, where it reads files, .wav or .jpg. "
    "May be given several times. Default: made up.",
)  # fmt: skip
@click.option("--outputs", "-o", default="", help="Comma list of tensors to compare. Default: the likely outputs of A.")
@click.option(
    "--tolerance", default=1e-4, show_default=True, help="Largest difference, as a share of A's largest magnitude."
)
@click.option("--top1", type=float, help="Least share of rows with the same largest element, e.g. 0.99.")
@click.option("--runs", default=1, show_default=True, help="How many sets of made-up feeds.")
@click.option("--seed", default=0, show_default=True, help="For made-up feeds.")
@click.option("--engine", type=click.Choice(["reference", "litert"]), help="Run both on one engine only.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def command(
    a: str, b: str, inputs: tuple[str, ...], outputs: str, tolerance: float, top1: float | None, runs: int, seed: int,
    engine: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Run models A and B on the same feeds and compare what comes out.

    A is taken to be right. Exits with 1 when B is further away than --tolerance allows.

    \b
      pocketgraph verify frozen.pb small.pb
      pocketgraph verify frozen.pb small.pb --inputs=feeds.npz --tolerance=0.05 --top1=0.99
    """
    from pocketgraph.runtime import verify

    if inputs and runs != 1:
        raise UsageError("--runs is for made-up feeds; --inputs is one set")
    report = verify(
        a, b, gathered(a, inputs), names(outputs) or None, tolerance, top1=top1, runs=runs, seed=seed, engine=engine
    )
    if as_json:
        echo(json.dumps(as_dict(report, a, b), indent=2))
    else:
        show(report, a, b)
    if not report.passed:
        sys.exit(1)


def gathered(model: str, inputs: tuple[str, ...]) -> dict[str, Any] | None:
    """The feeds that the --inputs options describe; None when there are none.

    Raises:
        UsageError: a file that is no array file, or an input given twice.
    """
    if not inputs:
        return None
    import os

    from pocketgraph.formats import load
    from pocketgraph.runtime.compare import read_feeds, read_input, tensor_of_key

    graph = load(model)
    feeds: dict[str, Any] = {}
    for text in inputs:
        name, equals, path = text.partition("=")
        if equals and not os.path.exists(text):
            tensor = tensor_of_key(name, graph, {})
            found = {tensor: read_input(graph, tensor, path)}
        else:
            found = read_feeds(text, graph)
        for tensor, value in found.items():
            if tensor in feeds:
                raise UsageError(f"--inputs gives '{tensor}' twice")
            feeds[tensor] = value
    return feeds


def as_dict(report: Report, a: str, b: str) -> dict[str, Any]:
    """The report for programs; numbers that JSON lacks become null."""
    return {
        "a": a,
        "b": b,
        "passed": report.passed,
        "tolerance": report.tolerance,
        "runs": report.runs,
        "outputs": [
            {
                "name": d.name,
                "shape": list(d.shape),
                "max_abs": finite(d.largest),
                "mean_abs": finite(d.mean),
                "max_relative": finite(d.largest_relative),
                "mean_relative": finite(d.mean_relative),
                "worst_index": list(d.worst),
                "top1": d.top1,
                "problem": d.problem,
                "passed": d.passed,
            }
            for d in report.outputs
        ],
    }


def finite(number: float) -> float | None:
    """The number, or None where JSON has no word for it."""
    return number if math.isfinite(number) else None


def show(report: Report, a: str, b: str) -> None:
    """Prints the table and the verdict."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(escape(f"{a} against {b}"), soft_wrap=True)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("output", overflow="fold", min_width=8)
    for title in ("max diff", "mean diff", "of peak", "worst at", "top-1"):
        table.add_column(title, justify="right", no_wrap=True)
    for difference in report.outputs:
        table.add_row(*row(difference))
    console.print(table)
    failed = [d for d in report.outputs if not d.passed]
    if failed:
        text = f"{len(failed)} of {len(report.outputs)} outputs are past {report.tolerance:g} of the largest magnitude"
        console.print(f"[red]differs[/red]: {text}", soft_wrap=True)
    else:
        text = f"within {report.tolerance:g} of the largest magnitude, {report.runs} set(s) of feeds"
        console.print(f"[green]equal[/green] {text}", soft_wrap=True)


def row(d: Difference) -> list[str]:
    """One output's line of the table."""

    shape = escape("[" + ",".join(map(str, d.shape)) + "]")
    verdict = "[green]ok[/green]" if d.passed else "[red]differs[/red]"
    output = f"{escape(d.name)} {shape}"
    if d.problem:
        return [verdict, f"{output}: {escape(d.problem)}", "", "", "", "", ""]
    top1 = "" if d.top1 is None else f"{d.top1:.2%}"
    worst = ",".join(map(str, d.worst))
    numbers = [f"{number:.3g}" for number in (d.largest, d.mean, d.largest_relative)]
    return [verdict, output, *numbers, worst, top1]
