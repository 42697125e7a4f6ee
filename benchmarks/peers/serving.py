"""What workers share: TensorFlow's session on a graph, and how each number that is read is answered: so many runs."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any


def serve(once: Callable[[], object]) -> None:
    """Says "ready", then "us N" for each line of the standard input, until that ends."""
    print("ready", flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = time.perf_counter_ns()
            once()
            times.append((time.perf_counter_ns() - start) / 1000)
        print(f"us {statistics.median(times)}", flush=True)


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
