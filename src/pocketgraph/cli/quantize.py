"""``pocketgraph quantize``: an eight-bit LiteRT model out of a float graph, and a report on every layer."""

from __future__ import annotations

import os
from typing import Any

import click

from pocketgraph.cli._data_options import data_options, feeds, scaling
from pocketgraph.cli.options import flag_bool, names
from pocketgraph.errors import UsageError


@click.command("quantize")
@click.argument("model")
@click.option("--calibrate", metavar="DIR|NPZ|LIST", help="Realistic inputs, without labels; about 100 do.")
@click.option("-o", "--output", "out", required=True, help="The .tflite file to write.")
@click.option(
    "--mode", type=click.Choice(["static", "dynamic", "weights"]), default="static", show_default=True,
    help="static: eight-bit weights and tensors. dynamic: LiteRT quantizes tensors as they come. weights: only those.",
)  # fmt: skip
@click.option(
    "--io", type=click.Choice(["float", "int8"]), default="float", show_default=True, help="What goes in and out."
)
@click.option(
    "--ranges", type=click.Choice(["auto", "minmax", "percentile", "mse", "entropy"]), default="auto",
    show_default=True, help="How the ranges of tensors are chosen.",
)  # fmt: skip
@click.option(
    "--rounding", type=click.Choice(["fitted", "corrected", "nearest"]), default="fitted", show_default=True,
    help="fitted: to each layer's results. corrected: nearest codes and biases that make up for them.",
)  # fmt: skip
@flag_bool("--equalize", help="Make channels even across layers first.")
@click.option(
    "--float_share", "--float-share", type=float, default=0.12, show_default=True,
    help="Largest share of the multiplications to leave in float where eight bits hurt; 0: none.",
)  # fmt: skip
@click.option("--keep", default="", help="Layers to leave in float, by commas.")
@click.option(
    "--limit", type=click.IntRange(1), default=100, show_default=True, help="How many samples to calibrate with."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of every choice by chance.")
@click.option(
    "--report", "report_path", help="Where the report goes; default: OUTPUT.report.html, and .json beside it."
)
@data_options
def command(model: str, calibrate: str | None, out: str, mode: str, limit: int, **how: Any) -> None:
    """Make an eight-bit LiteRT file of the frozen graph MODEL.

    The samples show which values each tensor takes. Weights get a scale for each output channel and are fitted so that
    each layer gives what the float one gave. After that a report says what each layer lost and why.
    """
    from pocketgraph.formats import load
    from pocketgraph.formats.files import write_atomically
    from pocketgraph.quantize.light import lighter
    from pocketgraph.quantize.lowering import float_program
    from pocketgraph.quantize.running import model_bytes
    from pocketgraph.runtime.samples import sample_fetches, sample_shapes

    if not out.endswith(".tflite"):
        raise UsageError(f"'{out}' does not end in .tflite, the form that is written")
    if mode == "static" and not calibrate:
        raise UsageError("no samples are given", hint="pass --calibrate=DIR|NPZ|LIST, or --mode=dynamic")
    graph = load(model)
    values = feeds(how["feed"])
    outputs = names(how["outputs"]) or list(sample_fetches(graph))
    shapes = sample_shapes(graph, outputs, tuple(values))
    if how["inputs"]:
        shapes = {name: shapes[name] if name in shapes else _shape_of(graph, name) for name in names(how["inputs"])}
    picture = scaling(how, graph if calibrate and not calibrate.endswith((".npz", ".npy")) else None)
    shapes = {name: _sized(shape, picture) for name, shape in shapes.items()}
    program = float_program(graph, outputs, shapes, values)
    if mode != "static":
        data = model_bytes(lighter(program, dynamic=mode == "dynamic"))
        write_atomically(out, data)
        click.echo(f"{out}: {len(data):,} bytes, int8 weights; `pocketgraph evaluate {model} {out} --data=…` judges it")
        return
    assert calibrate is not None
    static(program, model, calibrate, out, picture, limit, how)


def static(program: Any, model: str, calibrate: str, out: str, picture: Any, limit: int, how: dict[str, Any]) -> None:
    """Calibrates, quantizes, writes the file and the report, and prints the summary."""
    import numpy as np

    from pocketgraph.apps.data import open_data
    from pocketgraph.cli._progress import progress_bar
    from pocketgraph.formats.files import write_atomically
    from pocketgraph.quantize.layers import report
    from pocketgraph.quantize.models import Input
    from pocketgraph.quantize.page import summary, to_html, to_json
    from pocketgraph.quantize.pipeline import Options, quantize
    from pocketgraph.quantize.running import model_bytes

    inputs = tuple(Input(value.name, value.shape, np.dtype(value.dtype.numpy)) for value in program.inputs)
    data = open_data(calibrate, inputs, picture).take(limit)
    options = Options(
        ranges=how["ranges"],
        rounding=how["rounding"],
        equalize=how["equalize"],
        io=how["io"],
        keep=names(how["keep"]),
        float_share=how["float_share"],
        threads=how["threads"],
        seed=how["seed"],
    )
    with progress_bar() as tell:
        held = list(data.samples()) if len(data) * sum(value.size for value in program.inputs) < HELD else None
        samples = data.samples if held is None else lambda: iter(held)
        outcome = quantize(program, samples, len(data), options, tell)
        content = model_bytes(outcome.converted.program)
        found = report(outcome, samples, len(content), threads=how["threads"], progress=tell)
    write_atomically(out, content)
    page = how["report_path"] or f"{os.path.splitext(out)[0]}.report.html"
    write_atomically(page, to_html(found, f"{os.path.basename(model)} in eight bits").encode())
    write_atomically(f"{os.path.splitext(page)[0]}.json", to_json(found, {"model": os.path.basename(model)}).encode())
    for line in summary(found):
        click.echo(line)
    click.echo(f"written: {out}, {page}")


HELD = 1 << 24
"""Numbers in all samples up to which they are kept in memory; more are read anew each time."""


def _sized(shape: tuple[int, ...], picture: Any) -> tuple[int, ...]:
    """The shape of a picture with the size that was asked for where the graph leaves it open."""
    if len(shape) == 4 and shape[1:3] == (1, 1) and picture.width and picture.height:
        return shape[0], picture.height, picture.width, shape[3]
    return shape


def _shape_of(graph: Any, name: str) -> tuple[int, ...]:
    """What is known of the shape of a tensor in the midst of the graph."""
    from pocketgraph.graph import canonical
    from pocketgraph.kernels.shapes import infer

    graph.producer(name)
    shape = infer(graph).shape(canonical(name))
    if shape.dims is None:
        raise UsageError(f"the shape of the input '{name}' is not known", hint="choose another place to start")
    return tuple(1 if size is None else size for size in shape.dims)
