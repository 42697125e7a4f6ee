"""What benchmark_model is to feed and fetch: its flags taken apart and checked, and shown in the original's banner."""

from __future__ import annotations

from typing import Any

from pocketgraph.cli.options import names
from pocketgraph.errors import GraphError, UsageError

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


def banner(path: str, layers: list[Any], outputs: list[str], flags: dict[str, Any]) -> list[tuple[str, object]]:
    """The settings as the original prints them first; two delays, or one when it was asked in the oldest way."""
    delays: list[tuple[str, object]] = [
        ("Inter-inference delay (seconds)", flags["inference_delay"]),
        ("Inter-benchmark delay (seconds)", flags["inter_benchmark_delay"]),
    ]
    if flags["fixed_runs"]:
        delays = [("Inter-run delay (seconds)", flags["inference_delay"])]
    return [
        ("Graph", path),
        ("Input layers", ",".join(layer.name for layer in layers)),
        ("Input shapes", ":".join(",".join(map(str, layer.shape)) for layer in layers)),
        ("Input types", ",".join(layer.dtype.name for layer in layers)),
        ("Output layers", ",".join(outputs)),
        ("Num runs", flags["max_num_runs"]),
        *delays,
        ("Num threads", flags["num_threads"]),
        ("Benchmark name", flags["benchmark_name"]),
        ("Output prefix", flags["output_prefix"]),
        ("Show sizes", int(flags["show_sizes"])),
        ("Warmup runs", flags["warmup_runs"]),
    ]


def chosen_layers(graph: Any, outputs: list[str], flags: dict[str, Any]) -> list[Any]:
    """The feeds that the flags describe, or the placeholders that the outputs need."""
    from pocketgraph.inspect.benchmark import BenchmarkLayer, layers_from_graph
    from pocketgraph.runtime.samples import sample_inputs

    layer_names = names(flags["input_layer"])
    if flags["inputs"]:
        if layer_names:
            raise UsageError("--input_layer and --inputs both say what is fed", hint="pass one of them")
        return _layers_of_files(graph, outputs, flags)
    if not layer_names and not flags["input_layer_shape"]:
        return list(layers_from_graph(graph, sample_inputs(graph, outputs)))
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
        BenchmarkLayer(name, named_type(kind), sizes(shape), first_values(some))
        for name, kind, shape, some in zip(layer_names, types, shapes, values, strict=True)
    ]


def _layers_of_files(graph: Any, outputs: list[str], flags: dict[str, Any]) -> list[Any]:
    """What files hold, and for the other inputs what the graph says."""
    from pocketgraph.cli._data_options import say
    from pocketgraph.cli._feed_files import gathered
    from pocketgraph.datasets.sample_reading import SampleReading
    from pocketgraph.graph import DType, node_name
    from pocketgraph.inspect.benchmark import BenchmarkLayer, layers_from_graph
    from pocketgraph.runtime.samples import sample_inputs

    found = gathered(graph, flags["inputs"], SampleReading(preset=flags["preset"], notify=say), outputs)
    layers = []
    for name, array in found.items():
        dtype = graph.producer(name).attr("dtype", None) or DType.of_numpy(array.dtype)
        layers.append(BenchmarkLayer(name, dtype, array.shape, data=array))
    fed = set(map(node_name, found))
    return [*layers, *layers_from_graph(graph, [n for n in sample_inputs(graph, outputs) if node_name(n) not in fed])]


def named_type(name: str) -> Any:
    """A type by TensorFlow's name.

    Raises:
        UsageError: there is no such type.
    """
    from pocketgraph.graph import DType

    try:
        return DType.named(name)
    except GraphError:
        raise UsageError(f"{name} was an invalid type", hint="types are float, int32, uint8, bool, string…") from None


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
    """The likeliest output of the graph, for when none was given; of several entry points, those of one of them."""
    from pocketgraph.graph.entry_points import likely_outputs
    from pocketgraph.runtime.samples import sample_fetches

    if not graph.outputs and sum(not key.startswith("__") for key in graph.signatures) > 1:
        return list(sample_fetches(graph))
    ranked = [name for name, _ in likely_outputs(graph)]
    if not ranked:
        raise UsageError("no likely output was found in the graph", hint="pass --output_layer=NAME")
    return ranked[:1]
