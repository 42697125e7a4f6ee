"""``pocketgraph print_selective_registration_header``: the header for a TensorFlow that holds what graphs need."""

from __future__ import annotations

import click

from pocketgraph.cli.shared.options import names
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import UsageError
from pocketgraph.exporting.required_ops import DEFAULT_PAIRS, Required, RequiredKernel, header, ops_list, required
from pocketgraph.formats import load
from pocketgraph.formats.files import mapped
from pocketgraph.graph.model_file_graph import refuse_finished

FORMATS = ("rawproto", "textproto", "ops_list")


@click.command("print_selective_registration_header")
@click.argument("models", nargs=-1)
@click.option("--graphs", default="", help="Comma-separated list of paths to model files to be analyzed.")
@click.option(
    "--proto_fileformat", type=click.Choice(FORMATS),
    help="Of the files; by default what their content tells. ops_list: JSON pairs of op and kernel.",
)  # fmt: skip
@click.option(
    "--default_ops", default=DEFAULT_PAIRS, show_default=True,
    help='op:kernel pairs to always include; "all" for everything.',
)  # fmt: skip
def command(models: tuple[str, ...], graphs: str, proto_fileformat: str | None, default_ops: str) -> None:
    """Print ops_to_register.h for MODELS: only the ops and CPU kernels that they need are registered.

    TensorFlow 1.15's own output, for a build of it with SELECTIVE_REGISTRATION. Ops that it has no kernel for are
    named on stderr and left out. What functions hold, and nodes on a GPU, count like the rest (there, they do not).

    \b
      pocketgraph print_selective_registration_header --graphs=frozen.pb > ops_to_register.h
    """
    paths = [*names(graphs), *models]
    if not paths:
        raise UsageError("no graph is given", hint="pass --graphs=FROZEN.pb,OTHER.pb")
    if default_ops == "all":
        echo(header(None))
        return
    found = needed(paths, proto_fileformat == "ops_list", default_ops)
    for op in found.missing:
        echo(f"Warning: no kernel found for op {op}", err=True)
    if not found.kernels:
        echo("Error reading graph!\n1")
        return
    echo(header(found))


def needed(paths: list[str], are_lists: bool, default_ops: str) -> Required:
    """What the graphs, or lists of ops, at these paths need."""
    if not are_lists:
        graphs = [load(path) for path in paths]
        for graph in graphs:
            refuse_finished(graph, "print_selective_registration_header", ", or print_required_ops this file")
        return required(graphs, default_ops)
    kernels: set[RequiredKernel] = set(required([], default_ops).kernels)
    for path in paths:
        kernels.update(ops_list(bytes(mapped(path)).decode("utf-8", "replace"), path))
    return Required(tuple(sorted(kernels)), ())
