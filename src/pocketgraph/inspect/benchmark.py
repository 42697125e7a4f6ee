"""Times a model the way the original benchmark_model does: warm-up, runs without and runs with per-node times."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.errors import UsageError
from pocketgraph.graph import DType, Graph
from pocketgraph.inspect.stat_summarizer import Stat, StatSummarizer

if TYPE_CHECKING:
    from pocketgraph.runtime import Session

FED_TYPES = ("float", "int32", "int64", "quint8", "uint8", "int8", "bool", "half", "double", "string")
MOST_FEED_BYTES = 1 << 32


@dataclass(frozen=True)
class Layer:
    """One input of a benchmark: where it goes in, its element type, its full shape, and its first values."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    values: tuple[float, ...] = ()

    def array(self) -> np.ndarray[Any, Any]:
        """Zeros of this type and shape with ``values`` in front; empty strings for string layers.

        Raises:
            UsageError: values for strings, more values than elements, a type that cannot be fed, or too large.
        """
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
            return np.full(self.shape, b"", dtype=object)
        if len(self.values) > elements:
            raise UsageError(f"{len(self.values)} values for {elements} elements", where=where)
        flat = np.zeros(elements, self.dtype.numpy)
        flat[: len(self.values)] = np.asarray(self.values).astype(self.dtype.numpy)
        return flat.reshape(self.shape)


@dataclass
class Benchmark:
    """What was measured; times in microseconds unless named otherwise.

    Attributes:
        load_seconds: making the session, model file to ready graph.
        warmup: the untimed-in-the-original first runs; the first includes compiling or finding the plan.
        plain: the runs without per-node times: these are the model's latency.
        traced: the runs with per-node times.
        latencies: every plain run's time, in order.
        nodes: the per-node times of the traced runs.
    """

    load_seconds: float = 0.0
    warmup: Stat = field(default_factory=Stat)
    plain: Stat = field(default_factory=Stat)
    traced: Stat = field(default_factory=Stat)
    latencies: list[int] = field(default_factory=list)
    nodes: StatSummarizer = field(default_factory=StatSummarizer)

    def average_line(self) -> str:
        """The line that tools look for, with whole microseconds."""
        return (
            "Average inference timings in us: "
            f"Warmup: {int(self.warmup.average)}, no stats: {int(self.plain.average)}, "
            f"with stats: {int(self.traced.average)}"
        )

    def percentile(self, percent: float) -> float:
        """A percentile of the plain runs, in microseconds."""
        return float(np.percentile(self.latencies, percent)) if self.latencies else 0.0


@dataclass(frozen=True)
class Limits:
    """How long a phase goes on: at most ``max_runs`` runs (0 or less: no limit) and ``max_seconds`` of run time."""

    max_runs: int = 1000
    max_seconds: float = 10.0
    warmup_runs: int = 1
    inference_delay: float = -1.0
    inter_benchmark_delay: float = -1.0
    traced_runs: int | None = None


def run_phase(once: Callable[[], None], max_runs: int, max_seconds: float, delay: float) -> tuple[Stat, list[int]]:
    """Calls ``once`` until a limit is met and gives its times; only the calls are timed, not the sleeps between."""
    stat, times = Stat(), []
    while max_runs <= 0 or stat.count < max_runs:
        start = time.perf_counter_ns()
        once()
        took = (time.perf_counter_ns() - start) // 1000
        stat.update(took)
        times.append(took)
        if 0 < max_seconds < stat.total / 1e6:
            break
        if delay > 0:
            time.sleep(delay)
    return stat, times


def benchmark(
    session: Session,
    layers: Sequence[Layer],
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
    if limits.max_runs <= 0 and limits.max_seconds <= 0:
        raise UsageError("a benchmark needs an end: give --max_num_runs or --max_time")
    feeds: Mapping[str, Any] = {layer.name: layer.array() for layer in layers}
    result = Benchmark(nodes=nodes)

    def plain() -> None:
        session.run(list(outputs), feeds, targets=list(targets))

    def traced() -> None:
        nodes.add_run(session.profile(list(outputs), feeds, targets=list(targets)).nodes)

    def phase(once: Callable[[], None], runs: int, seconds: float, detailed: bool) -> tuple[Stat, list[int]]:
        say(
            f"Running benchmark for max {runs} iterations, max {seconds:g} seconds "
            f"{'with' if detailed else 'without'} detailed stat logging, "
            f"with {limits.inference_delay:g}s sleep between inferences"
        )
        stat, times = run_phase(once, runs, seconds, limits.inference_delay)
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


def layers_from_graph(graph: Graph, names: Sequence[str]) -> list[Layer]:
    """Layers for these placeholders as the graph declares them; an unknown first dimension becomes 1.

    Raises:
        UsageError: a placeholder's shape is not known well enough; the message says what to pass.
    """
    layers = []
    for name in names:
        node = graph.producer(name)
        shape = node.shape()
        dims = None if shape is None else shape.dims
        if dims is None or any(size is None for size in dims[1:]):
            raise UsageError(
                f"the graph does not fix the size of input '{name}' ({shape if shape is not None else 'no shape'})",
                hint=f"pass --input_layer={name} --input_layer_shape=1,224,224,3 with the sizes you mean",
            )
        dtype = node.dtype("dtype")
        layers.append(Layer(name, dtype, tuple(1 if size is None else size for size in dims)))
    return layers
