"""``pocketgraph graph_to_dot``: a graph as a DOT file, or as a picture where Graphviz is installed."""

from __future__ import annotations

import os

import click

from pocketgraph.cli.shared.options import flag_bool, one_file
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import FormatError, UsageError


@click.command("graph_to_dot")
@click.argument("model", required=False)
@click.option("--graph", default="", help="The model; the same as MODEL.")
@flag_bool(
    "--input_binary", default=True, help="Taken for old scripts; content tells text from binary.", expose_value=False
)
@click.option(
    "--dot_output", "-o", default="",
    help="The file to write; .svg, .png and .pdf are drawn by Graphviz, when it is installed.",
)  # fmt: skip
@flag_bool("--colors", help="Colour nodes by op family.")
@flag_bool("--shapes", help="Write type and shape beside edges.")
@flag_bool("--clusters", help="Draw a box around each name scope.")
def command(model: str | None, graph: str, dot_output: str, colors: bool, shapes: bool, clusters: bool) -> None:
    """Write MODEL's nodes and edges for Graphviz.

    Without --colors, --shapes and --clusters the file is the original tool's.

    \b
      pocketgraph graph_to_dot --graph=small.pb --dot_output=small.dot
      pocketgraph graph_to_dot small.pb -o small.svg --colors --shapes --clusters
    """
    from pocketgraph.cli.shared.data_options import say
    from pocketgraph.formats.files import check_place, near
    from pocketgraph.freezing.ready_models import read_directory
    from pocketgraph.inspect import dot

    path = one_file(model, graph)
    if not path:
        raise UsageError("no model given", hint="pass --graph=MODEL.pb")
    if not dot_output:
        raise UsageError("no file to write given", hint="pass --dot_output=graph.dot")
    if not os.path.exists(path):
        raise FormatError(f"Input graph file '{path}' does not exist!", hint=near(path))
    check_place(dot_output, path)
    loaded = read_directory(path, notify=say)
    plain = not (colors or shapes or clusters)
    lines = dot.original_dot(loaded) if plain else dot.dot(loaded, colors=colors, shapes=shapes, clusters=clusters)
    dot.write_dot(lines, dot_output)
    is_picture = os.path.splitext(dot_output)[1].lower().removeprefix(".") in dot.PICTURES
    echo(f"Created {'picture' if is_picture else 'DOT file'} '{dot_output}'.")
