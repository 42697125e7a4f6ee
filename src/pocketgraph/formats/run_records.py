"""Writes what a run did as TensorFlow's messages: StepStats and RunMetadata for TensorBoard, BenchmarkEntries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pocketgraph.formats.protos import message
from pocketgraph.graph import DType


@dataclass(frozen=True)
class NodeStats:
    """One execution of a node.

    Attributes:
        name: the node.
        label: what TensorBoard shows and StatSummarizer takes the type from: ``name = Op(input, input)``.
        start_us: microseconds since the epoch.
        duration_us: microseconds.
        memory: bytes of the outputs.
        allocator: who gave the memory.
        outputs: type and shape of each output.
    """

    name: str
    label: str
    start_us: int
    duration_us: int
    memory: int
    allocator: str
    outputs: tuple[tuple[DType, tuple[int, ...]], ...] = ()


def step_stats(devices: Mapping[str, Iterable[NodeStats]]) -> bytes:
    """A serialized StepStats; the nodes of each device in the order given."""
    return _step_stats(devices).SerializeToString()  # type: ignore[no-any-return]


def run_metadata(devices: Mapping[str, Iterable[NodeStats]]) -> bytes:
    """A serialized RunMetadata that holds the StepStats."""
    found: Any = message("tensorflow.RunMetadata")()
    found.step_stats.CopyFrom(_step_stats(devices))
    return found.SerializeToString()  # type: ignore[no-any-return]


def _step_stats(devices: Mapping[str, Iterable[NodeStats]]) -> Any:
    found: Any = message("tensorflow.StepStats")()
    for device, nodes in devices.items():
        device_stats = found.dev_stats.add(device=device)
        for node in nodes:
            _fill(device_stats.node_stats.add(), node)
    return found


def _fill(stats: Any, node: NodeStats) -> None:
    stats.node_name = node.name
    stats.timeline_label = node.label
    stats.all_start_micros = stats.scheduled_micros = node.start_us
    stats.op_end_rel_micros = stats.all_end_rel_micros = node.duration_us
    if node.memory:
        stats.memory.add(allocator_name=node.allocator, total_bytes=node.memory, peak_bytes=node.memory)
    for slot, (dtype, shape) in enumerate(node.outputs):
        described = stats.output.add(slot=slot).tensor_description
        described.dtype = dtype.number
        for size in shape:
            described.shape.dim.add(size=size)


def benchmark_entries(name: str, iters: int, wall_time: float, throughput: float) -> bytes:
    """A serialized BenchmarkEntries of one entry, as the original benchmark_model reports it.

    Args:
        name: the benchmark.
        iters: how many runs.
        wall_time: seconds a run.
        throughput: MB/s, -1 when not known.
    """
    found: Any = message("tensorflow.BenchmarkEntries")()
    found.entry.add(
        name=name, iters=iters, cpu_time=-1.0 / iters if iters else -1.0, wall_time=wall_time, throughput=throughput
    )
    return found.SerializeToString()  # type: ignore[no-any-return]
