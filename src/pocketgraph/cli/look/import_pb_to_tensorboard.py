"""``pocketgraph import_pb_to_tensorboard``: an event file of a model, for TensorBoard to show."""

from __future__ import annotations

import click

from pocketgraph.cli.shared.options import names
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import UsageError


@click.command("import_pb_to_tensorboard")
@click.option("--model_dir", required=True, help="The model: a file, or a SavedModel's directory.")
@click.option("--log_dir", required=True, help="TensorBoard's directory, made when it is not there.")
@click.option("--tag_set", default="", help="Comma list: which graph of a SavedModel.")
@click.option("--measure", is_flag=True, help="Run the model on made-up inputs and write what each node took.")
def command(model_dir: str, log_dir: str, tag_set: str, measure: bool) -> None:
    """Write a model's graph where TensorBoard finds it, with inferred shapes, and times with --measure.

    \b
      pocketgraph import_pb_to_tensorboard --model_dir=small.pb --log_dir=logs --measure
      tensorboard --logdir=logs
    """
    from pocketgraph.cli.shared.data_options import say
    from pocketgraph.formats import load
    from pocketgraph.freezing.ready_models import is_training, read_directory
    from pocketgraph.inspect.tensorboard import write_for_tensorboard

    trace = None
    if measure:
        from pocketgraph.inspect.node_times import measured

        if tag_set:
            raise UsageError("--measure runs the graph that is served", hint="leave --tag_set or --measure out")
        graph, trace, _ = measured(model_dir, say)
    else:
        is_frozen = not tag_set and is_training(model_dir)
        graph = read_directory(model_dir, notify=say) if is_frozen else load(model_dir, tags=names(tag_set) or None)
    write_for_tensorboard(graph, log_dir, trace)
    echo(f"Model Imported. Visualize by running: tensorboard --logdir={log_dir}")
