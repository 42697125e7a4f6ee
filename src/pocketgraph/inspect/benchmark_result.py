"""What a benchmark measured: times, what they come to in plain words, and tables of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pocketgraph.graph.groups import by_key
from pocketgraph.pages.document import fragment
from pocketgraph.pages.page_glossary import GLOSSARY
from pocketgraph.pages.parts import Cell, Column, Row, Verdict, cards, meter, number, table, words
from pocketgraph.pages.quantities import bytes_text, counted, duration
from pocketgraph.runtime import StepTrace
from pocketgraph.runtime.profiling.stat_summarizer import Stat, StatSummarizer

if TYPE_CHECKING:
    from pocketgraph.inspect.flops import Flops
    from pocketgraph.inspect.timed_programs import PeerResult

UNSTEADY = 1.5  # times the median, from which on p95 is worth a word
NAMED = 3  # nodes that the verdict names
NODES = (
    Column("node", GLOSSARY["node"]),
    Column("op", "What it computes.", is_words=True),
    Column("ms", "In one run, all its calls together, measured here.", falls=True),
    Column("share", "Of the time of all nodes.", falls=True),
    Column("calls", "In one run.", falls=True),
    Column("kB", "Of its results.", falls=True),
    Column("runs on", "The engine; part: a compiled one.", is_words=True),
)
KINDS = (
    Column("op"),
    Column("nodes", falls=True),
    Column("ms", GLOSSARY["ms"], falls=True),
    Column("share", falls=True),
)


@dataclass(repr=False)
class Benchmark:
    """What was measured; times in microseconds unless named otherwise.

    Attributes:
        load_seconds: making the session, model file to ready graph.
        warmup: the untimed-in-the-original first runs; the first includes compiling or finding the plan.
        plain: the runs without per-node times: these are the model's latency.
        traced: the runs with per-node times.
        latencies: every plain run's time, in order.
        notes: how the node times were taken, where that is not plain measuring.
        last_trace: the newest traced run.
        nodes: the per-node times of the traced runs.
        flops: the operations of a run, where they were counted.
        peers: other programs on the same model, where they were asked for.
    """

    load_seconds: float = 0.0
    warmup: Stat = field(default_factory=Stat)
    plain: Stat = field(default_factory=Stat)
    traced: Stat = field(default_factory=Stat)
    latencies: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    last_trace: StepTrace | None = None
    nodes: StatSummarizer = field(default_factory=StatSummarizer)
    flops: Flops | None = None
    peers: list[PeerResult] = field(default_factory=list)

    def average_line(self) -> str:
        """The line that tools look for, with whole microseconds."""
        return (
            "Average inference timings in us: "
            f"Warmup: {int(self.warmup.average)}, no stats: {int(self.plain.average)}, "
            f"with stats: {int(self.traced.average)}"
        )

    def percentile(self, percent: float) -> float:
        """A percentile of the plain runs, in microseconds."""
        return float(np.percentile(self.latencies, percent)) if self.latencies else 0.0

    def verdict(self) -> Verdict:
        """How fast it is, in plain words, and where the time goes."""
        if not self.latencies:
            return Verdict("", "Nothing was measured")
        median, late = self.percentile(50), self.percentile(95)
        speed = f"A run takes {duration(median / 1e6)}: {_rate(1e6 / max(median, 1))} a second, one after the other"
        total = sum(record.time.total for record in self.nodes.records.values())
        heavy = sorted(self.nodes.records.values(), key=lambda record: -record.time.total)[:NAMED]
        reasons = []
        if total and heavy:
            share = sum(record.time.total for record in heavy) / total
            names = ", ".join(record.name for record in heavy)
            count = "One node takes" if len(heavy) == 1 else f"{len(heavy)} nodes take"
            reasons.append(f"{count} {share:.0%} of the time: {names}.")
        is_steady = late <= UNSTEADY * median
        if not is_steady:
            reasons.append(
                f"Times vary: 5 of 100 runs take more than {late / 1000:,.3g} ms. Something else runs on this machine, "
                "or it slows down when it gets warm; measure again."
            )
        return Verdict("good" if is_steady else "fair", speed, reasons)

    def __repr__(self) -> str:
        if not self.latencies:
            return "<Benchmark: nothing was measured>"
        times = ", ".join(f"{name} {duration(self.percentile(at) / 1e6)}" for name, at in (("median", 50), ("p95", 95)))
        first = f"; first run {duration(self.warmup.first / 1e6)}" if self.warmup.count else ""
        loaded = f"; loaded in {duration(self.load_seconds)}" if self.load_seconds else ""
        return f"<Benchmark: {times}, {counted(self.plain.count, 'run')}{first}{loaded}>"

    def _repr_html_(self) -> str:
        nodes = nodes_table(self, 10) if self.nodes.records else ""
        return fragment(self.verdict().html(), figures_of(self), nodes)


def _rate(runs: float) -> str:
    return f"{runs:,.0f}" if runs >= 100 else f"{runs:.3g}"


def figures_of(result: Benchmark) -> str:
    """The figures of the whole."""
    figures = [
        (duration(result.percentile(50) / 1e6), "median of a run"),
        (duration(result.percentile(95) / 1e6), "p95: 95 of 100 stay below"),
        (duration(result.warmup.first / 1e6), "first run, which compiles") if result.warmup.count else None,
        (duration(result.load_seconds), "to load it"),
        (f"{result.plain.count:,}", "runs"),
    ]
    memory = sum(int(record.memory.newest) for record in result.nodes.records.values())
    if memory:
        figures.append((bytes_text(memory), "of results in one run, all together"))
    return cards([figure for figure in figures if figure is not None])


def nodes_table(result: Benchmark, most: int = 2000) -> str:
    """The nodes, those that take most time first; names that differ in numbers share a row."""
    runs = max(1, result.traced.count)
    engines = {t.name: t.runs_on for t in result.last_trace.nodes} if result.last_trace is not None else {}
    records = sorted(result.nodes.records.values(), key=lambda record: -record.time.total)
    total = sum(record.time.total for record in records) or 1
    rows = [
        Row([
            words(r.name), words(r.op), number(r.time.total / runs / 1000, ",.3f"), _share(r.time.total / total),
            number(r.times_called / runs, ",.4g"), number(r.memory.newest / 1000, ",.1f"),
            words(engines.get(r.name, "")),
        ])
        for r in records
    ]  # fmt: skip
    return table(NODES, rows, most, is_grouped=True)


def kinds_table(result: Benchmark) -> str:
    """The ops, those that take most time first."""
    runs = max(1, result.traced.count)
    times = by_key((record.op, int(record.time.total)) for record in result.nodes.records.values())
    total = sum(map(sum, times.values())) or 1
    rows = [
        Row([words(op), number(len(of), ",d"), number(sum(of) / runs / 1000, ",.3f"), _share(sum(of) / total)])
        for op, of in sorted(times.items(), key=lambda item: -sum(item[1]))
    ]
    return table(KINDS, rows)


def _share(share: float) -> Cell:
    return Cell(f"{share:.1%}", share, more=meter(share))
