"""``pocketgraph benchmark_model``: times a model, with the original tool's flags, lines and tables."""

from __future__ import annotations

import time
from typing import Any

import click

from pocketgraph.cli.options import flag_bool, names
from pocketgraph.errors import UsageError

MISMATCH = (
    "There must be the same number of items in --input_layer, --input_layer_shape, and --input_layer_type, for example "
    "--input_layer=input1,input2 --input_layer_type=float,float  --input_layer_shape=1,224,224,4:1,20"
)


def number(text: str) -> float:
    """A flag's number; text that is no number counts as 0, as in the original."""
    try:
        return float(text)
    except ValueError:
        return 0.0


@click.command("benchmark_model")
@click.argument("model", required=False)
@click.option("--graph", default="", help="The model to time, any form that `pocketgraph.load` takes.")
@click.option("--input_layer", "--input-layer", default="", help="Names to feed, by commas; default: the placeholders.")
@click.option("--input_layer_shape", "--input-layer-shape", default="", help="Shapes: 1,224,224,3:1,20")
@click.option("--input_layer_type", "--input-layer-type", default="", help="Element types: float,int32")
@click.option("--input_layer_values", "--input-layer-values", default="", help="First values: 0.5,1:7 (rest zero).")
@click.option("--output_layer", "--output-layer", default="", help="Names to fetch; default: the likely outputs.")
@click.option("--target_layer", "--target-layer", default="", help="Nodes to run without fetching them.")
@click.option("--max_num_runs", "--max-num-runs", "--num_runs", default=1000, show_default=True, help="Most runs.")
@click.option("--max_time", "--max-time", default="10.0", show_default=True, help="Most seconds a phase.")
@click.option("--inference_delay", "--inference-delay", "--run_delay", default="-1.0", help="Seconds between runs.")
@click.option("--inter_benchmark_delay", "--inter-benchmark-delay", default="-1.0", help="Seconds between phases.")
@click.option(
    "--num_threads", "--num-threads", "-j", default=-1, show_default=True, help="Threads; -1: as many as cores."
)
@click.option("--benchmark_name", "--benchmark-name", default="", help="Shown in the banner.")
@click.option("--output_prefix", "--output-prefix", default="", help="Shown in the banner.")
@click.option("--warmup_runs", "--warmup-runs", default=1, show_default=True, help="Runs before the timed ones.")
@flag_bool("--show_sizes", "--show-sizes", help="Print the outputs' sizes.")
@flag_bool("--show_run_order", "--show-run-order", default=True, help="Print all nodes in run order.")
@click.option("--run_order_limit", "--run-order-limit", default=0, help="Most rows of it; 0: all.")
@flag_bool("--show_time", "--show-time", default=True, help="Print the nodes that take most time.")
@click.option("--time_limit", "--time-limit", default=10, help="Most rows of it; 0: all.")
@flag_bool("--show_memory", "--show-memory", default=True, help="Print the nodes with the largest outputs.")
@click.option("--memory_limit", "--memory-limit", default=10, help="Most rows of it; 0: all.")
@flag_bool("--show_type", "--show-type", default=True, help="Print times by node type.")
@flag_bool("--show_summary", "--show-summary", default=True, help="Print the timing and memory lines.")
def command(model: str | None, graph: str, **flags: Any) -> None:
    """Time MODEL: warm-up, then runs without and with per-node times.

    Without --input_layer the graph's own placeholders are fed with zeros, and without --output_layer its likely
    outputs are fetched.
    """
    from pocketgraph.inspect.benchmark import Limits, benchmark
    from pocketgraph.inspect.stat_summarizer import Options, StatSummarizer
    from pocketgraph.runtime import Session

    path = graph or model
    if not path:
        raise UsageError("no model given", hint="pass --graph=MODEL.pb")
    start = time.perf_counter()
    session = Session(path, threads=flags["num_threads"] if flags["num_threads"] > 0 else None)
    seconds = time.perf_counter() - start
    with session:
        layers = chosen_layers(session.graph, flags)
        outputs = names(flags["output_layer"]) or likely_output_names(session.graph)
        for title, value in banner(path, layers, outputs, flags):
            click.echo(f"{title}: [{value}]")
        click.echo(f"Initialized session in {seconds:g}s")
        summarizer = StatSummarizer(
            Options(**{k: flags[k] for k in ("show_run_order", "run_order_limit", "show_time", "time_limit",
                                             "show_memory", "memory_limit", "show_type", "show_summary")})
        )  # fmt: skip
        limits = Limits(
            max_runs=flags["max_num_runs"],
            max_seconds=number(flags["max_time"]),
            warmup_runs=flags["warmup_runs"],
            inference_delay=number(flags["inference_delay"]),
            inter_benchmark_delay=number(flags["inter_benchmark_delay"]),
        )
        targets = names(flags["target_layer"])
        result = benchmark(session, layers, outputs, limits, summarizer, click.echo, targets)
        click.echo(result.average_line())
        for line in summarizer.lines():
            click.echo(line)
        if flags["show_sizes"]:
            feeds = {layer.name: layer.array() for layer in layers}
            for name, value in zip(outputs, session.run(outputs, feeds), strict=True):
                click.echo(f"{name}\t{value.dtype}\t{value.ndim}\t" + "\t".join(str(size) for size in value.shape))


def banner(path: str, layers: list[Any], outputs: list[str], flags: dict[str, Any]) -> list[tuple[str, object]]:
    """The settings as the original prints them first."""
    return [
        ("Graph", path),
        ("Input layers", ",".join(layer.name for layer in layers)),
        ("Input shapes", ":".join(",".join(map(str, layer.shape)) for layer in layers)),
        ("Input types", ",".join(layer.dtype.name for layer in layers)),
        ("Output layers", ",".join(outputs)),
        ("Num runs", flags["max_num_runs"]),
        ("Inter-inference delay (seconds)", flags["inference_delay"]),
        ("Inter-benchmark delay (seconds)", flags["inter_benchmark_delay"]),
        ("Num threads", flags["num_threads"]),
        ("Benchmark name", flags["benchmark_name"]),
        ("Output prefix", flags["output_prefix"]),
        ("Show sizes", int(flags["show_sizes"])),
        ("Warmup runs", flags["warmup_runs"]),
    ]


def chosen_layers(graph: Any, flags: dict[str, Any]) -> list[Any]:
    """The feeds that the flags describe, or the graph's placeholders."""
    from pocketgraph.graph import DType
    from pocketgraph.graph.endpoints import likely_inputs
    from pocketgraph.inspect.benchmark import Layer, layers_from_graph

    layer_names = names(flags["input_layer"])
    if not layer_names and not flags["input_layer_shape"]:
        return list(layers_from_graph(graph, [name for name, _ in likely_inputs(graph)]))
    shapes = flags["input_layer_shape"].split(":") if flags["input_layer_shape"] else []
    if not shapes:
        return list(layers_from_graph(graph, layer_names))
    types = names(flags["input_layer_type"]) or [str(graph.producer(n).attr("dtype", "float")) for n in layer_names]
    if not len(layer_names) == len(shapes) == len(types):
        counts = ", ".join(
            f"--{flag}={flags[flag]} ({len(items)} items)"
            for flag, items in (
                ("input_layer", layer_names),
                ("input_layer_type", types),
                ("input_layer_shape", shapes),
            )
        )
        raise UsageError(MISMATCH, hint=f"here: {counts}")
    values = flags["input_layer_values"].split(":") if flags["input_layer_values"] else []
    if len(values) > len(layer_names):
        raise UsageError(f"--input_layer_values has {len(values)} layers, --input_layer {len(layer_names)}")
    values += [""] * (len(layer_names) - len(values))
    return [
        Layer(name, DType.named(kind), sizes(shape), first_values(some))
        for name, kind, shape, some in zip(layer_names, types, shapes, values, strict=True)
    ]


def sizes(text: str) -> tuple[int, ...]:
    """A shape such as ``1,224,224,3``; empty for a scalar."""
    try:
        dims = tuple(int(part) for part in text.split(",")) if text.strip() else ()
    except ValueError:
        raise UsageError(f"Incorrect size string specified: {text}") from None
    if any(size < 0 for size in dims):
        raise UsageError(
            "Any unknown sizes in the shapes (-1's) must be replaced with the size you want to benchmark with."
        )
    return dims


def first_values(text: str) -> tuple[float, ...]:
    """Values such as ``0.5,1``."""
    try:
        return tuple(float(part) for part in text.split(",")) if text.strip() else ()
    except ValueError:
        raise UsageError(f"Incorrect initialization values string specified: {text}") from None


def likely_output_names(graph: Any) -> list[str]:
    """The likeliest output of the graph, for when none was given."""
    from pocketgraph.graph.endpoints import likely_outputs

    ranked = [name for name, _ in likely_outputs(graph)]
    if not ranked:
        raise UsageError("no likely output was found in the graph", hint="pass --output_layer=NAME")
    return ranked[:1]
