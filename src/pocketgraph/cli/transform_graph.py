"""``pocketgraph transform_graph``: rewrites a graph by rules, with the original tool's flags."""

from __future__ import annotations

import logging
import os

import click

from pocketgraph.cli.options import flag_bool, names
from pocketgraph.errors import PocketgraphError, UsageError, did_you_mean
from pocketgraph.graph import Graph, node_name


class WithRules(click.Command):
    """A command whose help ends with the names of all rules."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from pocketgraph.transforms import tool

        with formatter.section("Transforms are"):
            formatter.write_text(", ".join(tool.names()))


@click.command("transform_graph", cls=WithRules)
@click.argument("model", required=False)
@click.option("--in_graph", "--in-graph", "-i", default="", help="The graph to read, binary or text.")
@click.option("--out_graph", "--out-graph", "-o", default="", help="The file to write.")
@click.option("--inputs", default="", help="What will be fed: names with commas between.")
@click.option("--outputs", default="", help="What will be fetched, likewise.")
@click.option("--transforms", "-t", default="", help="What to do, in order; see below.")
@flag_bool("--output_as_text", "--output-as-text", help="Write the text form (.pbtxt).")
@flag_bool("--verbose", "-v", help="Say which transform runs.")
def command(
    model: str | None,
    in_graph: str,
    out_graph: str,
    inputs: str,
    outputs: str,
    transforms: str,
    output_as_text: bool,
    verbose: bool,
) -> None:
    """Rewrite a graph by rules, one after the other.

    A transform is a name, with parameters between parentheses right behind it where it needs some:

    \b
      pocketgraph transform_graph frozen.pb -o small.pb --inputs=x --outputs=softmax --transforms='
        strip_unused_nodes(type=float, shape="1,224,224,3")
        fold_constants(ignore_errors=true)
        fold_batch_norms
        quantize_weights'

    Every transform takes ignore_errors=true, which goes on without it when it fails.
    """
    source = os.path.expanduser(in_graph or model or "")
    target = os.path.expanduser(out_graph)
    if not source:
        raise UsageError("in_graph graph can't be empty", hint="pass --in_graph=MODEL.pb")
    if not target:
        raise UsageError("out_graph graph can't be empty", hint="pass --out_graph=FILE.pb")
    if in_graph and model:
        raise UsageError(f"two graphs to read, '{model}' and --in_graph={in_graph}", hint="pass one of them")

    from pocketgraph import formats
    from pocketgraph.transforms import tool, transform

    try:
        steps = tool.parse_transforms(transforms)
    except UsageError as error:
        raise UsageError(f"Failed to parse --transforms argument, error was {error}") from error
    if not steps:
        raise UsageError("You must specify at least one transform", hint="transform_graph --help names them")
    tool.checked(steps)
    try:
        graph = formats.load(source)
    except PocketgraphError as error:
        raise type(error)(f"Loading graph '{in_graph or model}' failed with {error}") from error
    fed, fetched = names(inputs) or graph.inputs, names(outputs) or graph.outputs
    _check_names(graph, fed, fetched)
    handler = _Echo(logging.INFO if verbose else logging.WARNING)
    tool.log.addHandler(handler)
    tool.log.setLevel(handler.level)
    tool.log.propagate = False
    try:
        graph = transform(graph, transforms, fed, fetched)
    finally:
        tool.log.removeHandler(handler)
        tool.log.propagate = True
    try:
        formats.save(graph, target, text=output_as_text)
    except PocketgraphError as error:
        raise type(error)(f"Saving graph '{out_graph}' failed with {error}") from error


class _Echo(logging.Handler):
    """Shows the log of the transforms on stderr, a line for each record."""

    def emit(self, record: logging.LogRecord) -> None:
        prefix = "warning: " if record.levelno >= logging.WARNING else ""
        click.echo(prefix + " ".join(record.getMessage().split()), err=True)


def _check_names(graph: Graph, inputs: list[str] | tuple[str, ...], outputs: list[str] | tuple[str, ...]) -> None:
    """An output that is not there is an error; an input may have been stripped before, so it gets a warning."""
    for option, given in (("--outputs", outputs), ("--inputs", inputs)):
        for name in given:
            if node_name(name) in graph:
                continue
            text, hint = f"the graph has no node '{node_name(name)}'", did_you_mean(node_name(name), graph.nodes)
            if option == "--outputs":
                raise UsageError(text, where=option, hint=hint or "pocketgraph summarize lists likely outputs")
            click.echo(f"warning: {option}: {text}" + (f"; {hint}" if hint else ""), err=True)
