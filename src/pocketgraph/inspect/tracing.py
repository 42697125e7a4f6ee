"""A traced run as a file: for TensorBoard (RunMetadata, StepStats) and for Chrome's chrome://tracing or Perfetto."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from pocketgraph.errors import GraphError, UsageError
from pocketgraph.formats.files import write_atomically
from pocketgraph.formats.run_records import NodeStats, run_metadata, step_stats
from pocketgraph.graph import DType, Graph
from pocketgraph.graph.dtype import STRING
from pocketgraph.runtime.profile import NodeTiming, StepTrace

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


def write_trace(trace: StepTrace, path: str | os.PathLike[str], graph: Graph | None = None) -> None:
    """Writes a Chrome trace (``.json``) or a RunMetadata (``.pb``).

    Args:
        trace: a traced run.
        path: the file; its ending says which.
        graph: names the nodes' inputs in the file, when given.

    Raises:
        UsageError: another ending.
        PocketgraphError: the file cannot be written.
    """
    name = os.fspath(path)
    check_ending(name)
    if name.endswith(".json"):
        write_atomically(name, json.dumps(chrome_trace(trace, graph)).encode())
    else:
        write_atomically(name, run_metadata({DEVICE: node_stats(trace, graph)}))


def check_ending(name: str) -> None:
    """Refuses names that ``write_trace`` cannot write to.

    Raises:
        UsageError: the name ends neither in .json nor in .pb.
    """
    if not name.endswith((".json", ".pb")):
        raise UsageError(f"a trace is written as .json (Chrome) or .pb (TensorBoard), not as '{name}'")


def step_stats_of(trace: StepTrace, graph: Graph | None = None) -> bytes:
    """The run as a serialized StepStats."""
    return step_stats({DEVICE: node_stats(trace, graph)})


def node_stats(trace: StepTrace, graph: Graph | None = None) -> Iterator[NodeStats]:
    """The run's nodes as StepStats has them, in running order; the first is ``_SOURCE``, as TensorFlow writes it."""
    origin = int(time.time() * 1e6 - trace.total_us)
    yield NodeStats("_SOURCE", "_SOURCE = NoOp()", origin, 0, 0, "cpu")
    for timing in trace.nodes:
        outputs = tuple((dtype, shape) for name, shape in timing.outputs if (dtype := _dtype(name)) is not None)
        yield NodeStats(
            timing.name, _label(timing, graph), origin + round(timing.start_us), round(timing.duration_us),
            timing.output_bytes, "cpu" if timing.runs_on == "reference" else timing.runs_on, outputs,
        )  # fmt: skip


def chrome_trace(trace: StepTrace, graph: Graph | None = None) -> dict[str, Any]:
    """The run in Chrome's trace event format: one line for each engine, times in microseconds from its start."""
    lanes = {"reference": 1, "litert": 2}
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": "pocketgraph"}},
        *(
            {"ph": "M", "pid": 1, "tid": lane, "name": "thread_name", "args": {"name": engine}}
            for engine, lane in lanes.items()
        ),
    ]
    for timing in trace.nodes:
        details: dict[str, Any] = {"name": timing.name, "bytes": timing.output_bytes}
        node = graph.nodes.get(timing.name) if graph is not None else None
        if node is not None:
            details.update((f"input{index}", text) for index, text in enumerate(node.inputs))
        details.update((f"output{i}", f"{dtype}{list(shape)}") for i, (dtype, shape) in enumerate(timing.outputs))
        events.append(
            {
                "ph": "X", "pid": 1, "tid": lanes.get(timing.runs_on, 0), "cat": "Op", "name": timing.op,
                "ts": timing.start_us, "dur": timing.duration_us, "args": details,
            }
        )  # fmt: skip
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"notes": trace.notes}}


def _label(timing: NodeTiming, graph: Graph | None) -> str:
    node = graph.nodes.get(timing.name) if graph is not None else None
    return f"{timing.name} = {timing.op}({', '.join(node.inputs) if node is not None else ''})"


def _dtype(numpy_name: str) -> DType | None:
    if numpy_name == "object":
        return STRING
    try:
        return DType.of_numpy(np.dtype(numpy_name))
    except (GraphError, TypeError):
        return None
