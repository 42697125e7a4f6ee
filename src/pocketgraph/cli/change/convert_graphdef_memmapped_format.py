"""``pocketgraph convert_graphdef_memmapped_format``: the original tool, its flags and its words."""

from __future__ import annotations

import click

from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import FormatError, PocketgraphError, UsageError
from pocketgraph.formats.memmapped_writer import MIN_CONVERSION_SIZE, save_memmapped


@click.command("convert_graphdef_memmapped_format")
@click.option("--in_graph", "-i", default="", help="The graph, a GraphDef.")
@click.option("--out_graph", "-o", default="", help="The memory-mapped package to write.")
@click.option(
    "--min_conversion_tensor_size", type=int, default=MIN_CONVERSION_SIZE,
    show_default=True, help="Smallest constant, in bytes, that gets a region of its own.",
)  # fmt: skip
def command(in_graph: str, out_graph: str, min_conversion_tensor_size: int) -> None:
    """Write a graph as a package whose weights are mapped into memory and not read.

    \b
      pocketgraph convert_graphdef_memmapped_format --in_graph=frozen.pb --out_graph=frozen.mmap
    """
    import pocketgraph

    if not in_graph:
        raise UsageError("in_graph graph can't be empty", hint="pass --in_graph=MODEL.pb")
    if not out_graph:
        raise UsageError("out_graph graph can't be empty", hint="pass --out_graph=MODEL.mmap")
    if min_conversion_tensor_size <= 0:
        raise UsageError("min_conversion_tensor_size must be > 0")
    try:
        graph = pocketgraph.load(in_graph)
    except FormatError as error:
        raise FormatError(f"Failed to load graph at '{in_graph}' : {error.what}", hint=error.hint) from None
    try:
        converted = save_memmapped(graph, out_graph, min_conversion_tensor_size)
    except PocketgraphError as error:
        raise type(error)(f"Conversion failed {error}") from None
    echo(f"Converted {converted} nodes", err=True)
