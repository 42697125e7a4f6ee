"""strip_unused: the part of a graph between chosen inputs and outputs."""

from __future__ import annotations

import click

from pocketgraph.cli.shared.graph_to_graph import opened, placeholder_types, written
from pocketgraph.cli.shared.options import flag_bool, names
from pocketgraph.errors import UsageError


@click.command("strip_unused")
@click.option("--input_graph", "--input", default="", help="GraphDef file, binary or text.")
@flag_bool("--input_binary", help="Accepted; the content decides.", expose_value=False)
@click.option("--output_graph", "--output", "-o", default="", help="Where the result goes.")
@flag_bool("--output_binary", default=True, help="Write a binary file; false: text.")
@click.option("--input_node_names", "--inputs", default="", help="Inputs, with commas.")
@click.option("--output_node_names", "--outputs", default="", help="Outputs, with commas.")
@click.option(
    "--placeholder_type_enum", default="1", show_default=True,
    help="DataType number of the inputs; with commas one for each. 1 is float, 4 uint8, 3 int32, 7 string.",
)  # fmt: skip
def command(
    input_graph: str, output_graph: str, output_binary: bool, input_node_names: str, output_node_names: str,
    placeholder_type_enum: str,
) -> None:  # fmt: skip
    """Strip what the outputs do not need when the inputs are fed; the inputs become placeholders.

    \b
      pocketgraph strip_unused --input_graph=frozen.pb --output_graph=stripped.pb \\
        --input_node_names=x --output_node_names=softmax
    """
    from pocketgraph.freezing.for_inference import strip_unused

    graph = opened(
        input_graph,
        output_node_names,
        output_graph,
        without_outputs=UsageError("You need to supply the name of a node to --output_node_names."),
        option="--output_graph=stripped.pb",
    )
    stripped = strip_unused(
        graph, names(input_node_names), names(output_node_names), placeholder_types(placeholder_type_enum)
    )
    written(stripped, output_graph, not output_binary)
