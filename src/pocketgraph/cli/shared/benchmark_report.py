"""What benchmark_model says in the end: lines and tables, files, or JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import PocketgraphError

if TYPE_CHECKING:
    from pocketgraph.graph import Graph
    from pocketgraph.inspect.benchmark_layers import BenchmarkLayer
    from pocketgraph.inspect.benchmark_result import Benchmark
    from pocketgraph.inspect.timed_programs import PeerResult
    from pocketgraph.runtime import Session
    from pocketgraph.runtime.description import Description

PERCENTILES = (50, 90, 95, 99)


def show(result: Benchmark, show_sizes: bool) -> None:
    """Prints the lines and tables in the original's order, then what the original has not."""
    from pocketgraph.inspect.machine import peak_memory
    from pocketgraph.inspect.value_text import human_readable
    from pocketgraph.pages.quantities import bytes_text

    echo(result.average_line())
    for line in result.nodes.lines():
        echo(line)
    if show_sizes:
        for line in result.nodes.output_lines():
            echo(line)
    for warning in result.nodes.warnings:
        echo(warning, err=True)
    for note in result.notes:
        echo(f"Node times: {note}.")
    points = ", ".join(f"p{percent} {result.percentile(percent):.0f}" for percent in PERCENTILES)
    echo(f"Latency percentiles in us: {points}")
    peak = peak_memory()
    if peak is not None:
        echo(f"Peak memory of the process: {bytes_text(peak)}")
    flops = result.flops
    if flops is not None:
        each = result.plain.average / 1e6
        echo(f"FLOPs estimate: {human_readable(flops.original)}")
        echo(f"FLOPs/second: {human_readable(int(flops.original / each)) if each else '0'}")
        echo(f"FLOPs of all ops: {human_readable(flops.total)}")
        for op, count in sorted(flops.by_op.items(), key=lambda item: -item[1]):
            echo(f"  {op}: {human_readable(count)}")
        if flops.unknown:
            echo(f"  not counted, shapes not known: {', '.join(flops.unknown[:10])}")
        if flops.uncounted:
            echo(f"  not counted, no formula: {', '.join(sorted(flops.uncounted))}")


def written(
    result: Benchmark, layers: Sequence[BenchmarkLayer], graph: Graph, flags: dict[str, Any], with_results: bool
) -> Iterator[str]:
    """Writes the files that were asked for; gives the lines to print."""
    from pocketgraph.formats.files import write_atomically
    from pocketgraph.inspect import benchmark_files
    from pocketgraph.inspect.tracing import step_stats_of, write_trace

    trace = result.last_trace
    if with_results:
        for record in benchmark_files.records(flags["benchmark_name"], result, list(layers)):
            if record.node_type:
                yield f"Outputting: [{record.node_type}]"
            benchmark_files.write(flags["output_prefix"], record)
    if trace is not None and flags["step_stats_name"]:
        write_atomically(flags["step_stats_name"], step_stats_of(trace, graph))
        yield f"Wrote {flags['step_stats_name']}"
    if trace is not None and flags["trace_file"]:
        write_trace(trace, flags["trace_file"], graph)
        yield f"Wrote {flags['trace_file']}"


def page(
    path: str, session: Session, layers: Sequence[BenchmarkLayer], outputs: Sequence[str], result: Benchmark
) -> str:
    """Everything as an HTML page."""
    from pocketgraph.inspect.benchmark_page import as_html
    from pocketgraph.inspect.machine import facts

    name = os.path.basename(os.path.normpath(path))
    description = _plan(session, layers, outputs)
    reasons = description.grouped() if description is not None else ()
    return as_html(result, name, machine=facts(), reasons=reasons, peers=result.peers)


def show_peers(peers: Sequence[PeerResult]) -> None:
    """Prints the programs side by side."""
    echo("")
    echo(f"{'program':<22}{'median us':>12}{'first us':>12}{'load ms':>10}{'peak MB':>9}{'difference':>12}  version")
    for peer in peers:
        if peer.problem:
            echo(f"{peer.name:<22}{peer.problem}")
            continue
        difference = "-" if peer.difference is None else f"{peer.difference:.2g}"
        peak = "-" if peer.peak_bytes is None else f"{peer.peak_bytes / 1e6:.0f}"
        echo(
            f"{peer.name:<22}{peer.median_us:>12.0f}{peer.first_us:>12.0f}{peer.load_us / 1000:>10.1f}{peak:>9}"
            f"{difference:>12}  {peer.version}"
        )


def as_json(
    path: str, session: Session, layers: Sequence[BenchmarkLayer], outputs: Sequence[str], result: Benchmark
) -> str:
    """Everything as JSON; times in microseconds, memory in bytes."""
    from dataclasses import asdict

    from pocketgraph.inspect.machine import facts, peak_memory

    document: dict[str, Any] = {
        "model": path,
        "engine": session.engine or "auto",
        "threads": session.threads,
        "inputs": [{"name": x.name, "dtype": x.dtype.name, "shape": list(x.shape)} for x in layers],
        "outputs": list(outputs),
        "runs_on": _runs_on(session, layers, outputs),
        "session_seconds": result.load_seconds,
        "warmup": result.warmup.as_dict(),
        "no_stats": result.plain.as_dict(),
        "with_stats": result.traced.as_dict(),
        "percentiles": {f"p{percent}": result.percentile(percent) for percent in PERCENTILES},
        "peak_memory": peak_memory(),
        "nodes": [
            {
                "name": r.name, "op": r.op, "average": r.time.average, "memory": r.memory.newest,
                "times_called": r.times_called / max(1, result.traced.count),
            }
            for r in result.nodes.records.values()
        ],
        "by_type": result.nodes.times_by_type(),
        "notes": result.notes,
        "machine": facts(),
    }  # fmt: skip
    flops, peers = result.flops, result.peers
    if flops is not None:
        document["flops"] = flops.as_dict()
    if peers:
        document["compared"] = [
            asdict(peer) | ({"difference": "infinite"} if peer.difference == float("inf") else {}) for peer in peers
        ]
    return json.dumps(document, indent=2, allow_nan=False)


def _runs_on(session: Session, layers: Sequence[BenchmarkLayer], outputs: Sequence[str]) -> dict[str, int]:
    """How many nodes each engine runs."""
    description = _plan(session, layers, outputs)
    found: dict[str, int] = {}
    for part in description.parts if description is not None else ():
        found[part.runs_on] = found.get(part.runs_on, 0) + len(part.nodes)
    return found


def _plan(session: Session, layers: Sequence[BenchmarkLayer], outputs: Sequence[str]) -> Description | None:
    """What runs where; None where that cannot be told."""
    try:
        return session.plan(list(outputs), {layer.name: layer.shape for layer in layers})
    except PocketgraphError:
        return None
