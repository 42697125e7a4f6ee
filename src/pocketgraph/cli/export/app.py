"""``pocketgraph app``: a small project around a model, for a phone, a Raspberry Pi or a Linux machine."""

from __future__ import annotations

from typing import Any

import click

from pocketgraph.cli.shared.data_options import data_options, reading_options, say, shapes_of
from pocketgraph.cli.shared.listing_command import ListingCommand
from pocketgraph.cli.shared.options import names
from pocketgraph.cli.shared.output import echo
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
@click.option("--labels", help="The name of each class, one a line.")
@click.option("--data", "--samples", "data", metavar="DIR|NPZ|LIST", help="Realistic inputs for the project's test.")
@click.option("--signatures", "--signature", "signatures", help="The signature to take; default: the main one.")
@click.option(
    "--input_shape", multiple=True, metavar="NAME:1,224,…",
    help="Fixes the sizes of an input; without NAME of the only one.",
)  # fmt: skip
@click.option("--priors", default="", help="A detector's priors or anchors, for a web page.")
@click.option("--app", default="", help="What a web page uses the model for, as in live; default: what it is for.")
@click.option("--force", is_flag=True, help="Write into a folder that is not empty.")
@data_options
def command(kind: str, model: str, out: str, data: str | None, priors: str, force: bool, **how: Any) -> None:
    """Write a project of KIND that runs MODEL: a frozen graph, a SavedModel, or a finished .tflite file.

    KIND is android, ios, pi, web or linux. A classifier of pictures gets a camera; any other model gets views that
    run and time it. Each project has a README with two commands and a test of the model.

    \b
      pocketgraph app android frozen.pb -o Flowers/ --labels=labels.txt --preset=mobilenet
      pocketgraph app pi model.tflite -o flowers_pi/
    """
    from pocketgraph.apps.projects import make_project
    from pocketgraph.cli.shared.progress import progress_bar

    reading = reading_options(how)
    with progress_bar() as tell:
        made = make_project(
            kind,
            model,
            out,
            name=how["name"],
            package=how["package"],
            engine=how["engine"],
            labels=how["labels"] or (),
            inputs=reading.pop("inputs") or None,
            outputs=reading.pop("outputs") or None,
            values=reading.pop("feeds"),
            signatures=names(how["signatures"]) or None,
            shapes=shapes_of(how["input_shape"]),
            samples=data,
            boxes=priors,
            app=how["app"],
            force=force,
            progress=tell,
            notify=say,
            **reading,
        )
    for note in made.notes:
        echo(note if note.startswith("warning:") else f"note: {note}", err=True)
    what = "a camera app" if made.has_camera else "views that run and time the model"
    echo(
        f"written: {made.path}, {what}, {counted(len(made.files), 'file')}, {made.bytes:,} bytes; its "
        "README.md says how it runs"
    )
