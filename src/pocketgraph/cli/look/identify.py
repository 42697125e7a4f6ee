"""``pocketgraph identify``: one line a file or directory."""

from __future__ import annotations

import click

from pocketgraph.cli.shared.output import CALLED, echo, echo_json


@click.command("identify")
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON, a list with one entry a path.")
@click.option("--variables", is_flag=True, help="List the variables of a checkpoint or SavedModel: name, type, shape.")
def command(paths: tuple[str, ...], as_json: bool, variables: bool) -> None:
    """Say what each PATH is, who wrote it, what is in it, and what to type next.

    Leaves with 1 when one of them does not exist, is damaged, or lacks a file.

    \b
      pocketgraph identify model.pb training/*
    """
    from pocketgraph.inspect.identify import identify

    found = [identify(path) for path in paths]
    if as_json:
        echo_json([one.as_dict() for one in found])
    else:
        for one in found:
            echo(str(one).replace(one.path, "-") if one.path in CALLED else str(one))
            for line in one.variable_lines() if variables else ():
                echo(f"  {line}")
    if not all(one.is_whole for one in found):
        raise click.exceptions.Exit(1)
