"""``pocketgraph evaluate``: judges models on data, the first of them being what the others are held against."""

from __future__ import annotations

import os
from typing import Any

import click

from pocketgraph.cli.shared.data_options import (
    cluster_option,
    data_options,
    json_option,
    reading_options,
    say,
    shape_option,
    shapes_of,
)
from pocketgraph.cli.shared.options import labels_option, page_place, signature_option
from pocketgraph.cli.shared.output import echo, echo_json


@click.command("evaluate")
@click.argument("models", nargs=-1, required=True)
@click.option(
    "--data", "place", required=True, metavar="DIR|NPZ|LIST", help="What to judge on, with classes or without."
)
@labels_option(", in the order of scores")
@click.option("--limit", type=click.IntRange(1), help="Judge on the first so many samples only.")
@click.option(
    "--skip", type=click.IntRange(0), default=0, help="Leave out the first so many, such as those calibrated with."
)
@click.option("--report", metavar="FILE.html", help="Write a page: which model to ship, and why.")
@json_option
@cluster_option
@signature_option
@shape_option
@data_options
def command(
    models: tuple[str, ...], place: str, labels: str | None, limit: int | None, skip: int, report: str | None,
    as_json: bool, cluster_address: str, **how: Any,
) -> None:  # fmt: skip
    """Judge MODELS (graphs and .tflite files) on the same samples.

    Where the data tell the classes: the share of right answers, first and among five, with the interval that the true
    share lies in with 95 % confidence; where they tell numbers: the mean error. For all but the first model: how far
    its answers are from those of the first. Models are judged by their first output, or where the first model has
    several by the one that the data are of; --outputs chooses another.

    \b
      pocketgraph evaluate frozen.pb small.tflite --data=photos/ --labels=labels.txt --skip=100
    """
    from pocketgraph.cli.shared.progress import progress_bar
    from pocketgraph.cluster import connected
    from pocketgraph.formats.files import write_atomically
    from pocketgraph.quantization import evaluate

    if report is not None:
        report = page_place(report)
    with connected(cluster_address), progress_bar() as tell:
        found = evaluate(
            models, place, labels=labels, limit=limit, skip=skip, signature=how["signature"], progress=tell, notify=say,
            shapes=shapes_of(how["input_shape"]), **reading_options(how),
        )  # fmt: skip
    for note in found.notes:
        say(note)
    if report is not None:
        write_atomically(report, found.as_html(os.path.basename(os.path.normpath(place))).encode())
    if as_json:
        echo_json([verdict.as_dict() for verdict in found], indent=1)
    else:
        echo(repr(found))
