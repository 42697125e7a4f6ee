"""``pocketgraph model_explorer``: a model for Model Explorer, with figures of its nodes as overlays."""

from __future__ import annotations

import os

import click

from pocketgraph.cli.shared.options import default_place
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import UsageError

OWN = b'"graphs":[{"id":"main","nodes":['
"""In each graph that it writes."""


@click.command("model_explorer")
@click.argument("model")
@click.option(
    "--output", "-o", default="", help="The graph's file, graph.json. Default: MODEL's name with .json, here."
)
@click.option("--measure", is_flag=True, help="Run the model on made-up inputs, for an overlay of times.")
@click.option(
    "--quantization", metavar="REPORT.json", help="The report of quantize, for an overlay of what eight bits leave."
)
def command(model: str, output: str, measure: bool, quantization: str | None) -> None:
    """Write MODEL as Model Explorer reads it, and overlays of its nodes' operations, bytes, times beside it.

    \b
      pocketgraph model_explorer frozen.pb -o frozen.json --measure
      model-explorer frozen.json        # pip install ai-edge-model-explorer; then load frozen.time.json as node data
    """
    from pocketgraph.cli.shared.data_options import say
    from pocketgraph.formats.files import check_place
    from pocketgraph.freezing.ready_models import read_directory
    from pocketgraph.inspect.model_explorer import sensitivity_of_report, write_model_explorer
    from pocketgraph.inspect.node_times import measured

    name = os.path.basename(os.path.normpath(model))
    output = output or default_place(f"{os.path.splitext(name)[0] or name}.json", OWN)
    if not output.endswith(".json"):
        raise UsageError(f"Model Explorer reads .json, not '{output}'", hint="-o graph.json")
    check_place(output, model)
    sensitivity = sensitivity_of_report(quantization) if quantization is not None else {}
    graph, trace = measured(model, say)[:2] if measure else (read_directory(model, notify=say), None)
    for file in write_model_explorer(graph, output, name, trace, sensitivity):
        echo(f"{file}: {os.path.getsize(file):,} bytes")
