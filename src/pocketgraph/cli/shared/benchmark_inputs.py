"""What benchmark_model is to feed and fetch: flags taken apart and checked, shown in its banner, proposed elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pocketgraph.cli.shared.options import named_files, names
from pocketgraph.errors import GraphError, PocketgraphError, UsageError, quoted
from pocketgraph.graph import DType, Graph, node_name
from pocketgraph.pages.quantities import counted

if TYPE_CHECKING:
    from pocketgraph.inspect import EndpointSummary, Summary

MISMATCH = (
    "There must be the same number of items in --input_layer, --input_layer_shape, and --input_layer_type, for example "
    "--input_layer=input1,input2 --input_layer_type=float,float  --input_layer_shape=1,224,224,4:1,20"
)


LONGEST = 1e9
"""Seconds; sleeping does not take any number."""


def number(text: str) -> float:
    """A flag's number of seconds, at most ``LONGEST``; text that is no number counts as 0, as in the original."""
    try:
        found = float(text)
    except ValueError:
        return 0.0
    return 0.0 if math.isnan(found) else min(LONGEST, max(-LONGEST, found))


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
    """The feeds that the flags describe, or the placeholders that the outputs need.

    Placeholders that tell training from use, and are not among the flags, get their value in use.
    """
    from pocketgraph.apps.model_timing import layers_of, needed_inputs
    from pocketgraph.cli.shared.data_options import say
    from pocketgraph.datasets.sample_reading import SampleReading
    from pocketgraph.inspect.benchmark_layers import BenchmarkLayer, layers_from_graph, synthetic_text
    from pocketgraph.passes.training_switches import training_switches

    layer_names = names(flags["input_layer"])
    if flags["inputs"]:
        if layer_names:
            raise UsageError("--input_layer and --inputs both say what is fed", hint="pass one of them")
        return layers_of(
            graph, named_files(flags["inputs"]), outputs, SampleReading(preset=flags["preset"], notify=say)
        )
    if not any(flags[flag] for flag in ("input_layer_shape", "input_layer_type", "input_layer_values")):
        return list(layers_from_graph(graph, layer_names or needed_inputs(graph, outputs), say))
    shapes = flags["input_layer_shape"].split(":") if flags["input_layer_shape"] else []
    types = names(flags["input_layer_type"])
    declared = layers_from_graph(graph, layer_names, say) if layer_names and not shapes else []
    shapes = shapes or [",".join(map(str, layer.shape)) for layer in declared]
    types = (
        types
        or [layer.dtype.name for layer in declared]
        or [str(graph.producer(name).attr("dtype", "float")) for name in layer_names]
    )
    if not len(layer_names) == len(shapes) == len(types):
        counts = ", ".join(
            f"--{flag}={flags[flag]} ({counted(len(items), 'item')})"
            for flag, items in (
                ("input_layer", layer_names),
                ("input_layer_type", types),
                ("input_layer_shape", shapes),
            )
        )
        raise UsageError(MISMATCH, hint=f"here: {counts}")
    values = flags["input_layer_values"].split(":") if flags["input_layer_values"] else []
    if len(values) > len(layer_names):
        raise UsageError(f"--input_layer_values has {counted(len(values), 'layer')}, --input_layer {len(layer_names)}")
    values += [""] * (len(layer_names) - len(values))
    chosen = [
        BenchmarkLayer(
            name,
            named_type(kind),
            sizes(shape),
            first_values(some),
            synthetic_text(graph, name) if kind == "string" else b"",
        )
        for name, kind, shape, some in zip(layer_names, types, shapes, values, strict=True)
    ]
    if declared:  # what tells training from use has its value in use, unless another one is given
        chosen = [replace(one, values=one.values or layer.values) for one, layer in zip(chosen, declared, strict=True)]
    given = {node_name(name) for name in layer_names}
    needed = [name for name in needed_inputs(graph, outputs) if name not in given]
    known = training_switches(graph) if needed else {}
    return chosen + layers_from_graph(graph, [name for name in needed if name in known])


def named_type(name: str) -> Any:
    """A type by TensorFlow's name.

    Raises:
        UsageError: there is no such type.
    """
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


def benchmark_flags(facts: Summary, fed: Sequence[EndpointSummary]) -> str | None:
    """The layer flags, left out where the graph tells all; None where no shapes are found that fit."""
    from pocketgraph.runtime.feeding.encoded_samples import decoder_of
    from pocketgraph.runtime.feeding.record_samples import parser_of

    def is_inferred(end: EndpointSummary) -> bool:
        if end.shape.dims is not None and None not in end.shape.dims[1:]:
            return True
        return decoder_of(facts.graph, end.name) is not None or parser_of(facts.graph, end.name) is not None

    outputs = quoted(",".join(facts.main_outputs))
    takes_numbers = any(e.shape.dims == () and _values_to_feed(facts.graph, e, ()) for e in fed)
    if not takes_numbers and all(map(is_inferred, fed)):
        return f" --output_layer={outputs}"
    shapes = open_shapes(facts)
    if not shapes:
        return None
    fed = [e for e in fed if e.name in shapes]
    sizes = ":".join(",".join(map(str, shapes[e.name])) for e in fed)
    types = ",".join(e.dtype.name if e.dtype else "float" for e in fed)
    listed = ":".join(_values_to_feed(facts.graph, e, shapes[e.name]) for e in fed)
    values_flag = f" --input_layer_values={listed}" if listed.strip(":") else ""
    return (
        f" --input_layer={quoted(','.join(e.name for e in fed))} --input_layer_shape={sizes}"
        f" --input_layer_type={types}{values_flag} --output_layer={outputs}"
    )


def _values_to_feed(graph: Graph, end: EndpointSummary, shape: tuple[int, ...]) -> str:
    """The numbers to feed an input: the share with which dropouts let everything through, the sizes of a sparse matrix,
    and 1 for a length or what sizes of pictures are multiplied with, as zero leaves nothing to compute; "" where any
    do."""
    from pocketgraph.passes.training_switches import dropout_share
    from pocketgraph.runtime.feeding.sparse_inputs import sparse_part
    from pocketgraph.runtime.feeding.synthetic_feeds import NUMBER, scales_pictures

    name, is_whole = node_name(end.name), end.dtype is not None and end.dtype.is_integer
    if is_whole and shape == (2,) and len(sizes := sparse_part(graph, name) or ()) == 2:
        return ",".join(map(str, sizes))
    if shape in NUMBER and (is_whole or scales_pictures(graph, name)):
        return "1"
    share = None if shape else dropout_share(graph, end.name)
    return "" if share is None else f"{share:g}"


def open_shapes(facts: Summary) -> dict[str, tuple[int, ...]]:
    """Shapes of what the main outputs need, by node name; none where the graph does not tell them."""
    from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_shapes

    try:
        return synthetic_shapes(facts.graph, facts.main_outputs)
    except PocketgraphError:
        return {}
