"""optimize_for_inference: readies a frozen graph for use as TensorFlow's tool of that name does."""

from __future__ import annotations

from typing import Literal

import click

from pocketgraph.cli.shared.graph_to_graph import opened, placeholder_types, written
from pocketgraph.cli.shared.options import flag_bool, names
from pocketgraph.errors import UsageError


@click.command("optimize_for_inference")
@click.option("--input", "--input_graph", "-i", default="", help="Frozen GraphDef file.")
@click.option("--output", "--output_graph", "-o", default="", help="Where the result goes.")
@click.option("--input_names", "--inputs", default="", help="Inputs, with commas.")
@click.option("--output_names", "--outputs", default="", help="Outputs, with commas.")
@flag_bool("--frozen_graph", default=True, help="Write a binary file; false: text.")
@click.option(
    "--placeholder_type_enum", default="1", show_default=True,
    help="DataType number of the inputs; with commas one for each.",
)  # fmt: skip
@flag_bool("--toco_compatible", help="Leave out ops that TensorFlow Lite does not know.")
@click.option(
    "--placeholder_to_const_names", default="",
    help="NAME=true or NAME=false, with commas: bool placeholders to make constants of.",
)  # fmt: skip
@click.option(
    "--like", type=click.Choice(["1.15", "2.x"]), default="2.x", show_default=True,
    help="Whose rules to follow: those of TensorFlow 1.15 or of 2.x.",
)  # fmt: skip
def command(
    input: str,
    output: str,
    input_names: str,
    output_names: str,
    frozen_graph: bool,
    placeholder_type_enum: str,
    toco_compatible: bool,
    placeholder_to_const_names: str,
    like: Literal["1.15", "2.x"],
) -> None:
    """Strip a frozen graph, take training's nodes out, and fold batch norms into convolutions.

    \b
      pocketgraph optimize_for_inference --input=frozen.pb --output=small.pb \\
        --input_names=x --output_names=softmax
    """
    from pocketgraph.freezing.for_inference import optimize_for_inference

    graph = opened(
        input,
        output_names,
        output,
        without_outputs=UsageError("no outputs were named", hint="add --output_names=NAME"),
        option="--output=optimized.pb",
    )
    optimized = optimize_for_inference(
        graph,
        names(input_names),
        names(output_names),
        placeholder_types(placeholder_type_enum),
        toco_compatible,
        names(placeholder_to_const_names),
        like=like,
    )
    written(optimized, output, not frozen_graph)
