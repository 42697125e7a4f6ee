"""``pocketgraph print_required_ops``: the ops that models need, as reduced builds of a runtime want them."""

from __future__ import annotations

import click

from pocketgraph.cli.shared.options import names
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import UsageError

OUTPUT_FORMS = ("text", "ops_list", "litert", "onnxruntime")


@click.command("print_required_ops")
@click.argument("models", nargs=-1)
@click.option("--graphs", default="", help="More models, by commas.")
@click.option(
    "--form", type=click.Choice(OUTPUT_FORMS), default="text", show_default=True,
    help="text: op and kernel a line. ops_list: JSON for print_selective_registration_header. litert: C++ that "
    "registers the operators of .tflite files. onnxruntime: the config of a reduced build for .onnx files.",
)  # fmt: skip
def command(models: tuple[str, ...], graphs: str, form: str) -> None:
    """Print the ops of MODELS with TensorFlow 1.15's kernel classes, or a runtime's list for a reduced build.

    \b
      pocketgraph print_required_ops frozen.pb
      pocketgraph print_required_ops --form=litert model.tflite small.tflite > registered_ops.cc
      pocketgraph print_required_ops --form=onnxruntime model.onnx > required_operators.config
    """
    from pocketgraph.cli.shared.data_options import say
    from pocketgraph.exporting import required_ops
    from pocketgraph.formats import load
    from pocketgraph.formats.files import mapped
    from pocketgraph.freezing.ready_models import is_training, read_model
    from pocketgraph.graph.model_file_graph import is_litert_file, is_model_file

    paths = [*names(graphs), *models]
    if not paths:
        raise UsageError("no model is given", hint="list the files at the end")
    if form == "litert":
        wrong = next((path for path in paths if bytes(mapped(path)[4:8]) != b"TFL3"), None)
        if wrong is not None:
            raise UsageError("this is no .tflite file", where=wrong, hint="export makes one of a frozen graph")
        echo(required_ops.litert_registration(required_ops.litert_operators({p: mapped(p) for p in paths})))
        return
    if form == "onnxruntime":
        found_onnx = required_ops.onnx_operators({path: mapped(path) for path in paths})
        if not found_onnx:
            raise UsageError("there are no ONNX operators in it", where=paths[0], hint="give .onnx files")
        echo(required_ops.onnx_config(found_onnx))
        return
    loaded = {path: read_model(path, notify=say) if is_training(path) else load(path) for path in paths}
    for path, graph in loaded.items():
        if is_model_file(graph):
            runtime, form = ("LiteRT", "litert") if is_litert_file(graph) else ("ONNX Runtime", "onnxruntime")
            raise UsageError(f"its operators are {runtime}'s, not TensorFlow's", where=path, hint=f"--form={form}")
    found = required_ops.required(loaded.values(), "")
    if form == "ops_list":
        echo(required_ops.as_ops_list(found.kernels))
    else:
        for kernel in found.kernels:
            echo(f"{kernel.op}  {kernel.cls}".rstrip())
    for op in found.missing:
        echo(f"Warning: no kernel found for op {op}", err=True)
