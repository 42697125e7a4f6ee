"""``pocketgraph app``: a small project around a model, for a phone, a Raspberry Pi or a Linux machine."""

from __future__ import annotations

from typing import Any

import click

from pocketgraph.cli.shared.data_options import data_options, export_options, fixed_shape_option, say
from pocketgraph.cli.shared.listing_command import ListingCommand
from pocketgraph.cli.shared.options import labels_option
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import UsageError, quoted
from pocketgraph.pages.quantities import counted


def _kinds(formatter: click.HelpFormatter) -> None:
    from pocketgraph.apps.projects.kinds import KINDS

    with formatter.section("Kinds"):
        formatter.write_dl([
            (kind.name, f"{kind.summary}. --engine={'|'.join(kind.engines)}") for kind in KINDS.values()
        ])  # fmt: skip


@click.command("app", cls=ListingCommand, listing=_kinds)
@click.argument("kind")
@click.argument("model")
@click.option("-o", "--output", "out", required=True, metavar="DIR", help="The folder to write.")
@click.option("--name", help="What people call the app; default: after the folder.")
@click.option("--package", help="Of Java and the stores, as in com.example.flowers.")
@click.option("--engine", help="What the app runs the model with, where there are several.")
@labels_option()
@click.option("--data", "--samples", "samples", metavar="DIR|NPZ|LIST", help="Realistic inputs for the project's test.")
@click.option("--signatures", "--signature", "signatures", help="The signature to take; default: the main one.")
@fixed_shape_option
@click.option("--priors", "boxes", default="", help="A detector's priors or anchors, for a web page.")
@click.option("--app", default="", help="What a web page uses the model for, as in live; default: what it is for.")
@click.option("--force", is_flag=True, help="Write into a folder that is not empty.")
@data_options
def command(kind: str, model: str, out: str, **how: Any) -> None:
    """Write a project of KIND that runs MODEL: a frozen graph, a SavedModel, or a finished .tflite file.

    KIND is android, ios, pi, web or linux, whose C is made of a graph and not of a file. A classifier of pictures gets
    a camera; any other model gets views that run and time it. Each project has a README with two commands and a test of
    the model.

    \b
      pocketgraph app android frozen.pb -o Flowers/ --labels=labels.txt --preset=mobilenet
      pocketgraph app pi model.tflite -o flowers_pi/
    """
    from pocketgraph.apps.projects import make_project
    from pocketgraph.apps.projects.kinds import KINDS
    from pocketgraph.cli.shared.progress import progress_bar

    if model in KINDS and kind not in KINDS:
        typed = f"pocketgraph app {model} {quoted(kind)} -o {quoted(out)}"
        raise UsageError(f"the kind, '{model}', comes before the model", hint=typed)
    with progress_bar() as tell:
        made = make_project(kind, model, out, progress=tell, notify=say, **export_options(how))
    for note in made.notes:
        echo(note if note.startswith("warning:") else f"note: {note}", err=True)
    echo(
        f"written: {made.path}, {made.shown}, {counted(len(made.files), 'file')}, {made.bytes:,} bytes; its "
        "README.md says how it runs"
    )
