"""What workers share: a session's choice of engines, TensorFlow's session on a graph, and how each number that is read
is answered: so many runs."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any


def serve(once: Callable[[], object]) -> None:
    """Says "ready", then "us N" for each line of the standard input, until that ends: time on the clock, or with
    PROCESSOR_TIME in the environment the time that processors computed for this process."""
    now = time.process_time_ns if os.environ.get("PROCESSOR_TIME") else time.perf_counter_ns
    print("ready", flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = now()
            once()
            times.append((now() - start) / 1000)
        print(f"us {statistics.median(times)}", flush=True)


PATIENCE = 150.0
"""Seconds of processor time that may pass before a chosen engine is opened, or a part compiled anew."""


def let_compile(session: Any, once: Callable[[], object]) -> None:
    """Runs until every part that was compiled quickly for its first runs has been compiled anew."""
    ends = time.process_time() + PATIENCE
    while time.process_time() < ends:
        once()
        parts = [part for plan in session._calls.plans.values() for part in plan.executables]
        if all(getattr(part, "next_tier", None) is None for part in parts):
            return


def let_choose(session: Any, fetches: list[str], feeds: Any) -> None:
    """Measures which engine is the fastest for each part, and runs until those have taken over."""
    chosen = {part.runs_on for part in session.plan(fetches, feeds, measure=True).parts}
    ends = time.process_time() + PATIENCE
    while time.process_time() < ends:
        session.run(fetches, feeds)
        plans = session._calls.plans.values()
        parts = [part for plan in plans for part in plan.executables if getattr(part, "is_open", True)]
        if {getattr(part, "engine", "").partition(" ")[0] or "litert" for part in parts} == chosen:
            return


def tensorflow_session(path: str, threads: int) -> Any:
    """A session of TensorFlow 2 on a GraphDef, which computes one node at a time, as ours does."""
    import tensorflow as tf

    tf1 = tf.compat.v1
    graph_def = tf1.GraphDef()
    with open(path, "rb") as file:
        graph_def.ParseFromString(file.read())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    config = tf1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1)
    return tf1.Session(graph=graph, config=config)
