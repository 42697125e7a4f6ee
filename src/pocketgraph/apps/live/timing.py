"""Benchmark: a model run again and again on made-up inputs, and percentiles of what it took."""

from __future__ import annotations

from collections import deque
from time import perf_counter
from typing import Any

import numpy as np

from pocketgraph.apps.live.answers import Answer, Settings
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array

MOST_RUNS = 1000  # runs whose times are kept


class BenchmarkApp(Settings):
    """Times a model; what it is given is left unused, so that any model can be timed.

    Args:
        graph: any model.
        threads: as in Session.
    """

    kind = "benchmark"

    def __init__(self, graph: Graph, *, threads: int | None = None, outputs: list[str] | None = None) -> None:
        from pocketgraph.runtime import Session
        from pocketgraph.runtime.feeding.default_tensors import default_fetches
        from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds

        self._session = Session(graph, threads=threads)
        self._outputs = outputs or list(default_fetches(graph))
        self._feeds = synthetic_feeds(graph, self._outputs)
        self._session.run(self._outputs, self._feeds)
        self.begin()

    def __call__(self, given: Any) -> Answer:
        """One more run; percentiles over the last thousand."""
        started = perf_counter()
        self._session.run(self._outputs, self._feeds)
        took = 1000 * (perf_counter() - started)
        self._times.append(took)
        times = np.array(self._times)
        values: dict[str, Any] = _percentiles(times)
        values.update(runs=len(times), least=round(float(times.min()), 3), mean=round(float(times.mean()), 3))
        return Answer(values=values, milliseconds=took)

    def report(self) -> dict[str, Any]:
        """What ``fit`` takes as a device of one's own: times, operations, times by kind of op, and this machine.

        Returns:
            these parts of what ``benchmark_model --json`` prints; times in microseconds, those of one more run by op.
        """
        from pocketgraph.inspect.machine import facts
        from pocketgraph.inspect.step_flops import count_step
        from pocketgraph.runtime.profiling.stat_summarizer import Stat, StatSummarizer

        if not self._times:
            self(None)
        stat, nodes = Stat(), StatSummarizer()
        for took in self._times:
            stat.update(round(1000 * took))
        nodes.add_run(self._session.profile(self._outputs, self._feeds).nodes)
        return {
            "threads": self._session.threads,
            "outputs": list(self._outputs),
            "no_stats": stat.as_dict(),
            "percentiles": {name: round(1000 * took) for name, took in _percentiles(np.array(self._times)).items()},
            "by_type": nodes.times_by_type(),
            "flops": count_step(self._session.graph, self._feeds, self._outputs).as_dict(),
            "machine": facts(),
        }

    def begin(self) -> None:
        """Forgets the runs before."""
        self._times: deque[float] = deque(maxlen=MOST_RUNS)


def _percentiles(times: Array) -> dict[str, float]:
    return {f"p{share}": round(float(np.percentile(times, share)), 3) for share in (50, 90, 99)}
