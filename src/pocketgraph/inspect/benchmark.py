"""Times a model the way the original benchmark_model does: warm-up, runs without and runs with per-node times."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.errors import PocketgraphError, RunError, UsageError, option
from pocketgraph.graph import DType, Graph, Shape
from pocketgraph.inspect.benchmark_result import Benchmark
from pocketgraph.runtime.encoded_samples import decoder_of, encoded_sample
from pocketgraph.runtime.feeds import FeedSpec
from pocketgraph.runtime.stat_summarizer import Stat, StatSummarizer
from pocketgraph.runtime.tensor_names import feed_endpoint

if TYPE_CHECKING:
    from pocketgraph.runtime import Session

FED_TYPES = ("float", "int32", "int64", "quint8", "uint8", "int8", "bool", "half", "double", "string")
MOST_FEED_BYTES = 1 << 32


@dataclass(frozen=True)
class BenchmarkLayer:
    """One input of a benchmark: where it goes in, its element type, its full shape, its first values, or a text; or all
    of its values."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    values: tuple[float, ...] = ()
    text: bytes = b""
    data: np.ndarray[Any, Any] | None = None

    def array(self) -> np.ndarray[Any, Any]:
        """Zeros of this type and shape with ``values`` in front; ``text`` for string layers.

        Raises:
            UsageError: values for strings, more values than elements, a type that cannot be fed, or too large.
        """
        if self.data is not None:
            return self.data
        where = f"input layer '{self.name}'"
        if self.dtype.name not in FED_TYPES:
            raise UsageError(f"Unsupported input type: {self.dtype.name}", where=where)
        elements = 1
        for size in self.shape:
            elements *= size
        if elements * max(1, self.dtype.size) > MOST_FEED_BYTES:
            raise UsageError(f"a feed of shape {list(self.shape)} is too large", where=where)
        if self.dtype.name == "string":
            if self.values:
                raise UsageError("Initialization values are not supported for strings", where=where)
            return np.full(self.shape, self.text, dtype=object)
        if len(self.values) > elements:
            raise UsageError(f"{len(self.values)} values for {elements} elements", where=where)
        flat = np.zeros(elements, self.dtype.numpy)
        flat[: len(self.values)] = np.asarray(self.values).astype(self.dtype.numpy)
        return flat.reshape(self.shape)


@dataclass(frozen=True)
class Limits:
    """How long a phase goes on: at most ``max_runs`` runs (0 or less: no limit) and ``max_seconds`` of run time.

    With ``fixed_runs`` each phase has just ``max_runs`` runs, and its line is that of the oldest benchmark_model.
    """

    max_runs: int = 1000
    max_seconds: float = 10.0
    warmup_runs: int = 1
    inference_delay: float = -1.0
    inter_benchmark_delay: float = -1.0
    traced_runs: int | None = None
    fixed_runs: bool = False


def run_phase(
    once: Callable[[], int],
    max_runs: int,
    max_seconds: float,
    delay: float,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[Stat, list[int]]:
    """Calls ``once`` until a limit is met and gives its times, which it tells in microseconds; sleeps do not count.

    Raises:
        RunError: a run failed; ``say`` is told which.
    """
    stat, times = Stat(), []
    while max_runs <= 0 or stat.count < max_runs:
        try:
            took = once()
        except PocketgraphError as error:
            say(f"Error during inference: {error}")
            say(f"Failed on run {stat.count}")
            raise RunError(f"Timing failed with {error.what}", where=error.where, hint=error.hint) from error
        stat.update(took)
        times.append(took)
        if 0 < max_seconds < stat.total / 1e6:
            break
        if delay > 0:
            time.sleep(delay)
    return stat, times


def benchmark(
    session: Session,
    layers: Sequence[BenchmarkLayer],
    outputs: Sequence[str],
    limits: Limits,
    nodes: StatSummarizer,
    say: Callable[[str], None] = lambda line: None,
    targets: Sequence[str] = (),
) -> Benchmark:
    """Runs the phases of the original tool.

    Args:
        session: an open session.
        layers: what to feed.
        outputs: the tensors to fetch.
        limits: when to stop.
        nodes: collects the per-node times.
        say: is given each line of progress.
        targets: nodes to run without fetching.
    """
    if limits.max_runs <= 0 and (limits.max_seconds <= 0 or limits.fixed_runs):
        raise UsageError(f"a benchmark needs an end: give {option('max_num_runs')} or {option('max_time')}")
    feeds: Mapping[str, Any] = {layer.name: layer.array() for layer in layers}
    result = Benchmark(nodes=nodes)
    fetches, goals = list(outputs), tuple(targets)

    def plain() -> int:
        start = time.perf_counter_ns()
        session.run(fetches, feeds, targets=goals)
        return (time.perf_counter_ns() - start) // 1000

    def traced() -> int:
        trace = session.profile(fetches, feeds, targets=goals)
        nodes.add_run(trace.nodes)
        result.last_trace = trace
        result.notes += [note for note in trace.notes if note not in result.notes]
        return int(trace.total_us)

    def phase(once: Callable[[], int], runs: int, seconds: float, detailed: bool) -> tuple[Stat, list[int]]:
        logging = "with" if detailed else "without"
        if limits.fixed_runs:
            say(f"Running benchmark for {runs} iterations {logging} detailed stat logging:")
        else:
            say(
                f"Running benchmark for max {runs} iterations, max {seconds:g} seconds {logging} detailed stat logging,"
                f" with {limits.inference_delay:g}s sleep between inferences"
            )
        stat, times = run_phase(once, runs, seconds, limits.inference_delay, say)
        say(str(stat))
        say("")
        return stat, times

    if limits.warmup_runs > 0:
        result.warmup, _ = phase(plain, limits.warmup_runs, -1.0, False)
    if limits.inter_benchmark_delay > 0:
        time.sleep(limits.inter_benchmark_delay)
    result.plain, result.latencies = phase(plain, limits.max_runs, limits.max_seconds, False)
    if limits.inter_benchmark_delay > 0:
        time.sleep(limits.inter_benchmark_delay)
    traced_runs = limits.max_runs if limits.traced_runs is None else limits.traced_runs
    result.traced, _ = phase(traced, traced_runs, limits.max_seconds, True)
    return result


def layers_from_graph(graph: Graph, names: Sequence[str]) -> list[BenchmarkLayer]:
    """Layers for these placeholders as the graph declares them; an unknown first dimension becomes 1.

    What decodes recordings or pictures is fed one of noise.

    Raises:
        UsageError: a placeholder's shape is not known well enough; the message says what to pass.
    """
    specs = {name: FeedSpec.of(graph, feed_endpoint(graph, name), name) for name in names}
    decoders = {name: decoder_of(graph, spec.endpoint.node) for name, spec in specs.items()}
    shapes = {name: Shape(()) if decoders[name] is not None else spec.shape for name, spec in specs.items()}
    open_ones = [name for name, shape in shapes.items() if shape.dims is None or None in shape.dims[1:]]
    if open_ones:
        known = ":".join(_sizes(shape.dims) for shape in shapes.values())
        flags = f"{option('input_layer')}={','.join(names)} {option('input_layer_shape')}={known}"
        raise UsageError(
            f"the graph does not fix the size of input '{open_ones[0]}' ({shapes[open_ones[0]]})",
            hint=f"pass {flags} with sizes in place of the question marks",
        )
    return [
        BenchmarkLayer(
            name,
            graph.producer(name).dtype("dtype"),
            tuple(1 if size is None else size for size in shape.dims or ()),
            text=encoded_sample(decoder, np.random.default_rng(0)) if (decoder := decoders[name]) is not None else b"",
        )
        for name, shape in shapes.items()
    ]


def _sizes(dims: tuple[int | None, ...] | None) -> str:
    """A shape as the flag has it: 1 for an open first size, question marks for others."""
    if dims is None:
        return "?"
    return ",".join(str(size) if size is not None else "?" if axis else "1" for axis, size in enumerate(dims))
