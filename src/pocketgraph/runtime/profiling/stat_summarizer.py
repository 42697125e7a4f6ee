"""Per-node times over many runs, and the tables that TensorFlow's StatSummarizer makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from pocketgraph.errors import GraphError
from pocketgraph.runtime.profiling.profile import NodeTiming
from pocketgraph.runtime.profiling.statistic import Statistic

METRIC_COLUMNS = (
    ("[node type]", 24), ("[start]", 17), ("[first]", 9), ("[avg ms]", 9), ("[%]", 8), ("[cdf%]", 8), ("[mem KB]", 10),
    ("[times called]", 9),
)  # fmt: skip
TYPE_COLUMNS = (
    ("[Node type]", 24), ("[count]", 9), ("[avg ms]", 10), ("[avg %]", 11), ("[cdf %]", 11), ("[mem KB]", 10),
    ("[times called]", 10),
)  # fmt: skip
CSV_HEADER = "node type, start, first, avg_ms, %, cdf%, mem KB, times called, name"
CSV_TYPE_HEADER = "node type, count, avg_ms, avg %, cdf %, mem KB, times called"


class Stat(Statistic[int]):
    """A running statistic of integers (microseconds or bytes), printed as the original prints it."""

    @property
    def deviation(self) -> int:
        """The population standard deviation; variance and root are cut to whole numbers, as the original does."""
        return 0 if self.minimum == self.maximum else math.isqrt(int(self.variance))

    def as_dict(self) -> dict[str, float]:
        """For JSON."""
        return {
            "count": self.count, "first": self.first, "min": self.minimum, "max": self.maximum,
            "average": self.average, "std": self.deviation,
        }  # fmt: skip

    def __str__(self) -> str:
        if self.count == 0:
            return "count=0"
        if self.minimum == self.maximum:
            return f"count={self.count} curr={self.newest}" + ("(all same)" if self.count > 1 else "")
        return (
            f"count={self.count} first={self.first} curr={self.newest} min={self.minimum} max={self.maximum} "
            f"avg={self.average:g} std={self.deviation}"
        )


@dataclass
class NodeRecord:
    """What one node did over all runs: times in microseconds, memory in bytes, (NumPy dtype, shape) of its outputs."""

    name: str
    op: str
    run_order: int
    start: Stat = field(default_factory=Stat)
    time: Stat = field(default_factory=Stat)
    memory: Stat = field(default_factory=Stat)
    times_called: int = 0
    outputs: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class Options:
    """Which tables to print, how many rows of each (0: all), and whether as comma-separated values."""

    show_run_order: bool = True
    run_order_limit: int = 0
    show_time: bool = True
    time_limit: int = 10
    show_memory: bool = True
    memory_limit: int = 10
    show_type: bool = True
    show_summary: bool = True
    format_as_csv: bool = False


class StatSummarizer:
    """Collects node times run by run and prints them as tables.

    A node that ran several times in one run (in a loop) adds as many samples under its one name. The run total is the
    sum over nodes, not wall time.

    Differs from the original: the run order table is in run order. The original sorts numbers as texts, which puts
    nodes behind loops, whose numbers are larger than the count of nodes, before all others.

    Args:
        options: which tables, sorted how; by default the original's.
    """

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.records: dict[str, NodeRecord] = {}
        self.run_totals = Stat()
        self.run_memory = Stat()
        self.warnings: list[str] = []

    def add_run(self, timings: Iterable[NodeTiming]) -> None:
        """Takes in the timings of one run, in execution order."""
        total, memory = 0, 0
        for timing in timings:
            record = self.records.get(timing.name)
            if record is None:
                record = NodeRecord(timing.name, timing.op, len(self.records) + 1)
                self.records[timing.name] = record
            record.start.update(round(timing.start_us))
            record.time.update(round(timing.duration_us))
            record.memory.update(timing.output_bytes)
            if record.outputs and timing.outputs != record.outputs and timing.outputs:
                self._warn_of_change(record, timing)
            record.outputs = timing.outputs
            record.times_called += 1
            total += round(timing.duration_us)
            memory += timing.output_bytes
        self.run_totals.update(total)
        self.run_memory.update(memory)

    def _warn_of_change(self, record: NodeRecord, timing: NodeTiming) -> None:
        before, now = len(record.outputs), len(timing.outputs)
        if before != now:
            said = f"Number of outputs changed between runs for '{record.name}' - was {before}, now {now}"
        else:
            said = f"Output tensor changed between runs for '{record.name}"
        if said not in self.warnings:
            self.warnings.append(said)

    def lines(self) -> list[str]:
        """The whole report, a line an entry."""
        report: list[str] = []
        chosen = self.options
        if chosen.show_run_order:
            report += self.metric_table("Run Order", lambda r: -r.run_order, chosen.run_order_limit)
        if chosen.show_time:
            report += self.metric_table("Top by Computation Time", lambda r: r.time.average, chosen.time_limit)
        if chosen.show_memory:
            report += self.metric_table("Top by Memory Use", lambda r: r.memory.average, chosen.memory_limit)
        if chosen.show_type:
            report += self.type_table()
        if chosen.show_summary:
            report += [*self.short_summary(), ""]
        return report

    def metric_table(self, title: str, key: Callable[[NodeRecord], float], limit: int) -> list[str]:
        """A table: ``title``, one row a node, the largest ``key`` first, at most ``limit`` (0: all), an empty line."""
        rows = sorted(self.records.values(), key=key, reverse=True)
        if limit > 0:
            rows = rows[:limit]
        csv = self.options.format_as_csv
        out = [CSV_HEADER] if csv else [_title(title), _columns(*METRIC_COLUMNS) + "\t[Name]"]
        runs = max(1, self.run_totals.count)
        cumulative = 0
        for record in rows:
            cumulative += record.time.total
            start, first, average = record.start.average / 1000, record.time.first / 1000, record.time.average / 1000
            share, so_far = self._share(record.time.total), self._share(cumulative)
            memory, calls = record.memory.newest / 1000, record.times_called // runs
            if csv:
                # Commas of the name would be columns.
                name = record.name.replace(",", "\t")
                times = f"{start:g}, {first:g}, {average:g}, {share:g}%, {so_far:g}%"
                out.append(f"{record.op}, {times}, {memory:g}, {calls}, {name}")
                continue
            shown = (record.op, f"{start:.3f}", f"{first:.3f}", f"{average:.3f}", f"{share:.3f}%", f"{so_far:.3f}%",
                     f"{memory:.3f}", str(calls))  # fmt: skip
            widths = (width for _, width in METRIC_COLUMNS)
            out.append(_columns(*zip(shown, widths, strict=True)) + f"\t{record.name}")
        return [*out, ""]

    def type_table(self) -> list[str]:
        """One row an op type, the most expensive first."""
        runs = max(1, self.run_totals.count)
        by_type: dict[str, list[int]] = {}
        for record in self.records.values():
            row = by_type.setdefault(record.op, [0, 0, 0, 0])
            row[0] += 1
            row[1] += record.time.total // runs
            row[2] += int(record.memory.average)
            row[3] += record.times_called // runs
        total = sum(row[1] for row in by_type.values()) or 1
        csv = self.options.format_as_csv
        out = [f"Number of nodes executed: {len(self.records)}"]
        out += [CSV_TYPE_HEADER] if csv else [_title("Summary by node type"), _columns(*TYPE_COLUMNS)]
        cumulative = 0.0
        ordered = sorted(by_type.items(), key=lambda item: (item[1][1], item[0], item[1][2]), reverse=True)
        for op, (count, time, memory, calls) in ordered:
            share = 100.0 * time / total
            cumulative += share
            if csv:
                out.append(f"{op}, {count}, {time / 1000:g}, {share:g}%, {cumulative:g}%, {memory / 1000:g}, {calls}")
                continue
            out.append(
                _columns((op, 24), (str(count), 9), (f"{time / 1000:.3f}", 10), (f"{share:.3f}%", 11),
                         (f"{cumulative:.3f}%", 11), (f"{memory / 1000:.3f}", 10), (str(calls), 9))
            )  # fmt: skip
        return [*out, ""]

    def times_by_type(self) -> dict[str, int]:
        """Microseconds a run of each op type; each node's time is cut to whole ones before they are added."""
        runs = max(1, self.run_totals.count)
        found: dict[str, int] = {}
        for record in self.records.values():
            found[record.op] = found.get(record.op, 0) + record.time.total // runs
        return found

    def output_lines(self) -> list[str]:
        """The size of every node's outputs, in the order in which the nodes started."""
        out = ["============ Node output tensor sizes in run order ========"]
        for record in sorted(self.records.values(), key=lambda record: record.start.average):
            outputs = record.outputs
            line = f"{record.name}\t{len(outputs)}"
            for dtype, shape in outputs:
                line += f"\t{_type_name(dtype)}\t{len(shape)}" + "".join(f"\t{size}" for size in shape)
            out.append(line)
        return out

    def short_summary(self) -> list[str]:
        """The timing and memory lines."""
        return [
            f"Timings (microseconds): {self.run_totals}",
            f"Memory (bytes): {self.run_memory}",
            f"{len(self.records)} nodes observed",
        ]

    def _share(self, microseconds: int) -> float:
        return 100.0 * microseconds / self.run_totals.total if self.run_totals.total else 0.0


def _title(text: str) -> str:
    return f"{'=' * 30} {text} {'=' * 30}"


def _type_name(numpy_name: str) -> str:
    """TensorFlow's name of a NumPy dtype."""
    if numpy_name == "object":
        return "string"
    try:
        from pocketgraph.graph import DType

        return DType.of_numpy(np.dtype(numpy_name)).name
    except (GraphError, TypeError):
        return numpy_name


def _columns(*fields: tuple[str, int]) -> str:
    return "".join(f"\t{text:>{width}}" for text, width in fields)
