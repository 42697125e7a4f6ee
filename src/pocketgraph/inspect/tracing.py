"""A traced run as a file: for TensorBoard (event files, RunMetadata, StepStats), Chrome and Perfetto."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from pocketgraph.errors import GraphError, UsageError
from pocketgraph.formats import to_bytes
from pocketgraph.formats.event_file import write_event_file
from pocketgraph.formats.files import write_atomically
from pocketgraph.formats.run_records import NodeStats, run_metadata, step_stats
from pocketgraph.graph import DType, Graph
from pocketgraph.graph.dtype import STRING
from pocketgraph.runtime.profiling.profile import NodeTiming, StepTrace

MOST_SHOWN = 1024  # bytes of a constant that goes into an event file
DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


def write_trace(trace: StepTrace, path: str | os.PathLike[str], graph: Graph | None = None) -> None:
    """Writes a Chrome trace (``.json``), a RunMetadata (``.pb``), or an event file for TensorBoard (a folder).

    Args:
        trace: a traced run.
        path: the file, whose ending says which; or TensorBoard's log folder, one that is there or ends in a slash.
        graph: names the nodes' inputs in the file, when given; TensorBoard shows it.

    Raises:
        UsageError: another ending.
        PocketgraphError: the file cannot be written.
    """
    name = os.fspath(path)
    check_ending(name)
    if is_folder(name):
        runs = {"run": run_metadata({DEVICE: node_stats(trace, graph)})}
        write_event_file(name, to_bytes(without_weights(graph or Graph())), runs)
    elif name.endswith(".json"):
        write_atomically(name, json.dumps(chrome_trace(trace, graph)).encode())
    else:
        write_atomically(name, run_metadata({DEVICE: node_stats(trace, graph)}))


def check_ending(name: str) -> None:
    """Refuses names that ``write_trace`` cannot write to.

    Raises:
        UsageError: it is no folder, and the name ends neither in .json nor in .pb.
    """
    if not name.endswith((".json", ".pb")) and not is_folder(name):
        raise UsageError(
            f"a trace is written as .json (Chrome), .pb (RunMetadata) or into a folder (TensorBoard), not as '{name}'",
            hint=f"for TensorBoard, put a slash behind it: {name}/",
        )


def is_folder(name: str) -> bool:
    """Whether this is TensorBoard's log folder, to be made where it is not there, and not a file."""
    return name.endswith(("/", os.sep)) or os.path.isdir(name)


def without_weights(graph: Graph) -> Graph:
    """The graph without the values of larger constants, which nobody looks at in a picture."""
    return graph.replace(
        node.replace(attrs={key: value for key, value in node.attrs.items() if key != "value"})
        if node.op == "Const" and node.tensor.nbytes > MOST_SHOWN
        else node
        for node in graph
    )


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
