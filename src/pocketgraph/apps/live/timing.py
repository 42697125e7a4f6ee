"""Benchmark: a model run again and again on made-up inputs, and percentiles of what it took."""

from __future__ import annotations

import copy
from collections import deque
from time import perf_counter
from typing import Any

import numpy as np

from pocketgraph.apps.live.answers import Answer, Setting, Settings
from pocketgraph.graph import Graph

MOST_RUNS = 1000


class BenchmarkApp(Settings):
    """Times a model; what it is given is left unused, so that any model can be timed.

    Args:
        graph: any model.
        threads: as in Session.
    """

    kind = "benchmark"
    hears = False
    table: tuple[Setting, ...] = ()

    def __init__(self, graph: Graph, *, threads: int | None = None, outputs: list[str] | None = None) -> None:
        from pocketgraph.runtime import Session
        from pocketgraph.runtime.samples import sample_feeds, sample_fetches

        self._session = Session(graph, threads=threads)
        self._outputs = outputs or list(sample_fetches(graph))
        self._feeds = sample_feeds(graph, self._outputs)
        self._session.run(self._outputs, self._feeds)
        self._times: deque[float] = deque(maxlen=MOST_RUNS)

    def __call__(self, given: Any) -> Answer:
        """One more run; percentiles over the last thousand."""
        started = perf_counter()
        self._session.run(self._outputs, self._feeds)
        took = 1000 * (perf_counter() - started)
        self._times.append(took)
        times = np.array(self._times)
        values: dict[str, Any] = {f"p{share}": round(float(np.percentile(times, share)), 3) for share in (50, 90, 99)}
        values.update(runs=len(times), least=round(float(times.min()), 3), mean=round(float(times.mean()), 3))
        return Answer(values=values, milliseconds=took)

    def another(self) -> BenchmarkApp:
        """For another viewer."""
        twin = copy.copy(self)
        twin._times = deque(maxlen=MOST_RUNS)
        return twin
