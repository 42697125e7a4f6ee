"""``pocketgraph.benchmark``: how long a model takes, node by node, and beside other programs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.apps.file_feeds import Given, feeds_of
from pocketgraph.datasets.sample_reading import Notify, SampleReading, unheard
from pocketgraph.errors import UsageError, option
from pocketgraph.freezing import freeze
from pocketgraph.freezing.ready_models import for_session
from pocketgraph.freezing.training_dir import model_path
from pocketgraph.graph import DType, Graph, canonical, node_name
from pocketgraph.graph.entry_points import likely_outputs
from pocketgraph.graph.model_file_graph import is_model_file
from pocketgraph.inspect.benchmark import Limits, time_session
from pocketgraph.inspect.benchmark_layers import BenchmarkLayer, layers_from_graph
from pocketgraph.inspect.benchmark_result import Benchmark
from pocketgraph.inspect.step_flops import count_step
from pocketgraph.inspect.timed_programs import PEERS, PeerResult, check_programs, compare
from pocketgraph.runtime import Session
from pocketgraph.runtime.feeding.default_tensors import default_fetches, needed_placeholders
from pocketgraph.runtime.feeding.synthetic_feeds import check_mapping


def benchmark(
    model: Graph | str | os.PathLike[str],
    inputs: Given | None = None,
    outputs: Sequence[str] | None = None,
    *,
    targets: Sequence[str] = (),
    shapes: Mapping[str, Sequence[int]] | None = None,
    max_runs: int = 1000,
    max_seconds: float = 10.0,
    warmup_runs: int = 1,
    inference_delay: float = -1.0,
    threads: int | None = None,
    engine: str | None = None,
    flops: bool = False,
    programs: Sequence[str] | str = (),
    python: str = "",
    signature: str | None = None,
    preset: str | None = None,
    progress: Callable[[str], None] | None = None,
    notify: Notify | None = None,
) -> Benchmark:
    """Times a model: a first run, runs without and runs with the times of nodes.

    >>> from pocketgraph.graph.text_format import parse
    >>> result = benchmark(parse("x = Placeholder(dtype=float, shape=[8])\\ny = Exp(x, T=float)"), max_runs=5)
    >>> result.plain.count, [record.op for record in result.nodes.records.values()]
    (5, ['Exp'])
    >>> result
    <Benchmark: median ..., p95 ..., 5 runs; first run ...; loaded in ...>

    Args:
        model: a graph, a model file, or the directory of a SavedModel or a training.
        inputs: arrays by tensor name, or paths of pictures, recordings, texts or arrays; or one file of arrays. The
            other placeholders get zeros.
        outputs: tensors to fetch; by default the likely output.
        targets: nodes to run without fetching them.
        shapes: of placeholders that get zeros, by name, where the graph leaves sizes open.
        max_runs, max_seconds: where a phase ends; 0 for no limit.
        warmup_runs: runs before the timed ones.
        inference_delay: seconds to sleep after every run.
        threads, engine: as for Session.
        flops: count floating point operations too.
        programs: time these on the same model as well: names from ``inspect.timed_programs.PEERS``, or ``"all"``.
        python: the interpreter that has those programs.
        signature: of a SavedModel, the one that says what goes in and comes out; by default the main one.
        preset: how pictures are scaled.
        progress: told each line of the original tool.
        notify: told what is easily overlooked.

    Returns:
        The times of each phase, with percentiles, and of each node.

    Raises:
        UsageError: the model's inputs or outputs are not clear, or there are no such programs.
        RunError: the model does not run.
    """
    wanted_programs = programs_of(programs)
    start = time.perf_counter()
    ready = model if isinstance(model, Graph) else for_session(model, outputs, signature=signature, notify=notify)
    with Session(ready, threads, engine=engine) as session:
        graph = session.graph
        seconds = time.perf_counter() - start
        chosen = list(outputs) if outputs is not None else likely_output_names(graph) if not targets else []
        reading = SampleReading(preset=preset, notify=notify or unheard)
        layers = layers_of(graph, inputs, [*chosen, *targets], reading, shapes)
        limits = Limits(max_runs, max_seconds, warmup_runs, inference_delay)
        result = time_session(session, layers, chosen, limits, say=progress or unheard, targets=targets)
        result.load_seconds = seconds
        if flops:
            feeds = {layer.name: layer.array() for layer in layers}
            result.flops = count_step(graph, feeds, chosen, targets)
        if wanted_programs:
            place = "" if isinstance(model, Graph) else os.fspath(model)
            result.peers = timed_programs(place, session, layers, chosen, limits, wanted_programs, python)
    return result


def layers_of(
    graph: Graph,
    given: Given | None,
    fetches: Sequence[str],
    reading: SampleReading,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> list[BenchmarkLayer]:
    """What is given, and zeros for the other placeholders that the fetches need.

    Args:
        graph: the model.
        given, reading: see ``feeds_of``.
        fetches: tensors and nodes to compute.
        shapes: of the zeros, where the graph leaves sizes open.

    Raises:
        UsageError: a shape is not known, or a file does not fit.
    """
    found = feeds_of(graph, given, reading, fetches)
    arrays = {name: np.asarray(value) for name, value in found.items()}
    layers = [_layer(graph, name, array.shape, array) for name, array in arrays.items()]
    check_mapping(shapes)
    layers += [_layer(graph, name, tuple(shape)) for name, shape in (shapes or {}).items()]
    fed = {node_name(layer.name) for layer in layers}
    rest = [name for name in needed_inputs(graph, fetches) if node_name(name) not in fed]
    return [*layers, *layers_from_graph(graph, rest, reading.notify)]


def needed_inputs(graph: Graph, fetches: Sequence[str]) -> list[str]:
    """What has to be fed for fetches; of a file that a runtime runs as a whole, all that its entry point takes."""
    if is_model_file(graph):
        wanted = set(map(canonical, fetches))
        for signature in graph.signatures.values():
            if wanted <= set(map(canonical, signature.outputs.values())):
                return [name.removesuffix(":0") for name in signature.inputs.values()]
    return list(needed_placeholders(graph, fetches))


def _layer(graph: Graph, name: str, shape: tuple[int, ...], data: Any = None) -> BenchmarkLayer:
    declared = graph.producer(name).attr("dtype", None)
    dtype = declared if isinstance(declared, DType) else DType.named("float") if data is None else None
    if dtype is None:
        dtype = DType.of_numpy(data.dtype)
    elif data is not None and data.dtype.kind in "biufc":  # what else there is, the session refuses
        data = data.astype(dtype.numpy, copy=False)
    return BenchmarkLayer(name, dtype, shape, data=data)


def likely_output_names(graph: Graph) -> list[str]:
    """All that the likeliest output's node gives, for when no output was given; of several entry points, the outputs of
    one of them.

    Raises:
        UsageError: there is none.
    """
    if not graph.outputs and len(graph.public_signatures) > 1:
        return list(default_fetches(graph))
    ranked = [name for name, _ in likely_outputs(graph)]
    if not ranked:
        hint = f"pass {option('output_layer', 'outputs')}=NAME"
        raise UsageError("no likely output was found in the graph", hint=hint)
    return [name for name in ranked if node_name(name) == node_name(ranked[0])]


def programs_of(wanted: Sequence[str] | str) -> list[str]:
    """The programs to be timed: all, a comma list, or several.

    Raises:
        UsageError: there is no such program.
    """
    listed = wanted.split(",") if isinstance(wanted, str) else wanted
    found = [name.strip() for name in listed if name.strip()]
    if found == ["all"]:
        return list(PEERS)
    check_programs(found)
    return found


def timed_programs(
    path: str,
    session: Session,
    layers: Sequence[BenchmarkLayer],
    outputs: Sequence[str],
    limits: Limits,
    programs: Sequence[str],
    python: str = "",
) -> list[PeerResult]:
    """Times other programs; a SavedModel is frozen for them, because its variables lie in other files.

    Args:
        path: of the model; "" for one from memory.
        session: with the model.
        layers, outputs, limits: as for the session.
        programs: their names.
        python: the interpreter that has them.
    """
    if not outputs:
        raise UsageError("programs are compared by what is fetched", hint="name an output")
    graph = freeze(path, outputs) if os.path.isdir(model_path(path)) else session.graph
    return compare(
        graph, layers, outputs, programs, threads=session.threads, max_runs=limits.max_runs,
        max_seconds=limits.max_seconds, python=python, beside=path,
    )  # fmt: skip
