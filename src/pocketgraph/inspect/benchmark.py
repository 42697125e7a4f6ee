"""Times a model the way the original benchmark_model does: warm-up, runs without and runs with per-node times."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pocketgraph.errors import PocketgraphError, RunError, UsageError, option
from pocketgraph.inspect.benchmark_layers import BenchmarkLayer
from pocketgraph.inspect.benchmark_result import Benchmark
from pocketgraph.runtime.profiling.stat_summarizer import Stat, StatSummarizer

if TYPE_CHECKING:
    from pocketgraph.runtime import Session


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


def time_session(
    session: Session,
    layers: Sequence[BenchmarkLayer],
    outputs: Sequence[str],
    limits: Limits,
    nodes: StatSummarizer | None = None,
    say: Callable[[str], None] = lambda line: None,
    targets: Sequence[str] = (),
) -> Benchmark:
    """Runs the phases of the original tool.

    Args:
        session: an open session.
        layers: what to feed.
        outputs: the tensors to fetch.
        limits: when to stop.
        nodes: collects the per-node times; one with every table by default.
        say: is given each line of progress.
        targets: nodes to run without fetching.
    """
    if limits.max_runs <= 0 and (limits.max_seconds <= 0 or limits.fixed_runs):
        raise UsageError(f"a benchmark needs an end: give {option('max_num_runs')} or {option('max_time')}")
    feeds: Mapping[str, Any] = {layer.name: layer.array() for layer in layers}
    nodes = StatSummarizer() if nodes is None else nodes
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
    result.traced, _ = phase(traced, limits.max_runs, limits.max_seconds, True)
    return result
