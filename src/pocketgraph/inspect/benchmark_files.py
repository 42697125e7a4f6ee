"""The result files of the original benchmark_model: one BenchmarkEntries for each figure."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import NamedTuple

from pocketgraph.errors import PocketgraphError, new_folder, option
from pocketgraph.formats.files import write_atomically
from pocketgraph.inspect.benchmark_layers import BenchmarkLayer
from pocketgraph.inspect.benchmark_result import Benchmark

MEBIBYTE = 1 << 20


class BenchmarkRecord(NamedTuple):
    """One figure.

    Attributes:
        name: the benchmark's name and what of it.
        iters: runs.
        seconds: all runs together.
        throughput: MB/s of the first input, -1 where that says nothing.
        node_type: the op type that it is about, "" when it is about the whole.
    """

    name: str
    iters: int
    seconds: float
    throughput: float = -1.0
    node_type: str = ""


def records(name: str, result: Benchmark, layers: list[BenchmarkLayer]) -> Iterator[BenchmarkRecord]:
    """The figures in the original's order: the runs, the start, then every node type by alphabet."""
    runs, seconds = result.plain.count, result.plain.total / 1e6
    fed = max(1, layers[0].dtype.size) * math.prod(layers[0].shape) if layers else 0
    yield BenchmarkRecord(name, runs, seconds, fed * runs / seconds / MEBIBYTE if seconds else -1.0)
    warmups, warm = result.warmup.count, result.warmup.total / 1e6
    yield BenchmarkRecord(f"{name}_meta-init", 1, result.load_seconds)
    yield BenchmarkRecord(f"{name}_meta-first-inference", warmups, warm)
    yield BenchmarkRecord(
        f"{name}_meta-init-plus-first-inference", 1, result.load_seconds + (warm / warmups if warmups else 0.0)
    )
    for op, microseconds in sorted(result.nodes.times_by_type().items()):
        yield BenchmarkRecord(f"{name}_{op}", result.traced.count, microseconds * result.traced.count / 1e6, -1.0, op)


def path_of(prefix: str, record: BenchmarkRecord) -> str:
    """The record's file; a slash in its name is no folder."""
    return prefix + record.name.replace("/", "__")


def refuse_existing(prefix: str, name: str) -> None:
    """Checks before hours of measuring that the first file can be written.

    Raises:
        PocketgraphError: it is there already, or its folder is not.
    """
    path = path_of(prefix, BenchmarkRecord(name, 0, 0.0))
    if os.path.exists(path):
        raise PocketgraphError(
            f"Cannot create TestReporter, file exists: {path}",
            hint=f"remove it or take another {option('output_prefix')}",
        )
    refuse_no_folder(path)


def refuse_no_folder(path: str) -> None:
    """Checks, before anything is measured, that a file's folder is there.

    Raises:
        PocketgraphError: it is not.
    """
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise PocketgraphError("the directory to write to does not exist", where=path, hint=new_folder(folder))


def write(prefix: str, record: BenchmarkRecord) -> str:
    """Writes one record and gives the file's path.

    Raises:
        PocketgraphError: the file exists or cannot be written.
    """
    from pocketgraph.formats.run_records import benchmark_entries

    path = path_of(prefix, record)
    if os.path.exists(path):
        raise PocketgraphError(f"Cannot create TestReporter, file exists: {path}")
    each = record.seconds / record.iters if record.iters else 0.0
    write_atomically(path, benchmark_entries(record.name, record.iters, each, record.throughput))
    return path
