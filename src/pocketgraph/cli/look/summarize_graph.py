"""``pocketgraph summarize_graph``: the original tool's report, byte for byte."""

from __future__ import annotations

import click

from pocketgraph.cli.shared.options import flag_bool, one_file
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import UsageError


@click.command("summarize_graph")
@click.argument("model", required=False)
@click.option("--in_graph", "-i", default="", help="The graph, binary or text.")
@flag_bool("--print_structure", help="Also list every node in execution order.")
def command(model: str | None, in_graph: str, print_structure: bool) -> None:
    """Say what a graph holds, in the words that the original tool used and scripts read.

    `pocketgraph summarize` shows more, in tables.

    \b
      pocketgraph summarize_graph --in_graph=frozen.pb
    """
    from pocketgraph.cli.shared.data_options import say
    from pocketgraph.freezing.ready_models import read_directory
    from pocketgraph.inspect.summarize import original_report

    path = one_file(model, in_graph)
    if not path:
        raise UsageError("in_graph graph can't be empty", hint="pass --in_graph=MODEL.pb")
    for line in original_report(read_directory(path, notify=say), path, print_structure=print_structure):
        echo(line)
