"""Shows what a benchmark measured as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pocketgraph.inspect.benchmark_result import Benchmark, figures_of, kinds_table, nodes_table
from pocketgraph.inspect.timed_programs import PeerResult
from pocketgraph.pages.document import report
from pocketgraph.pages.page_glossary import GLOSSARY
from pocketgraph.pages.parts import (
    Cell,
    Column,
    Row,
    Verdict,
    curve,
    glossary,
    notes,
    number,
    paragraph,
    section,
    table,
    words,
)
from pocketgraph.pages.quantities import bytes_text

POINTS = 400  # runs in the plot, evenly chosen
PEERS = (
    Column("program"), Column("median, ms", GLOSSARY["median"]), Column("first run, ms"), Column("load, ms"),
    Column("memory, MB", "The most that its process held."), Column("difference", "Of results, largest to largest."),
    Column("version", is_words=True),
)  # fmt: skip


def as_html(
    result: Benchmark,
    model: str,
    *,
    machine: Mapping[str, Any] | None = None,
    reasons: Sequence[tuple[int, str, str]] = (),
    peers: Sequence[PeerResult] = (),
) -> str:
    """The page.

    Args:
        result: what was measured.
        model: the file's name.
        machine: facts of the machine, see ``inspect.machine``.
        reasons: how many nodes of which op do not run on LiteRT, and why.
        peers: other programs on the same model.
    """
    latencies = [took / 1000 for took in result.latencies]
    shown = latencies[:: max(1, len(latencies) // POINTS)]
    why = (Column("op"), Column("nodes", falls=True), Column("why not", is_words=True))
    return report(
        f"Benchmark of {model}",
        _beside(result, peers).html(),
        figures_of(result),
        notes(f"Times of nodes: {note}." for note in result.notes),
        section(
            "Runs",
            paragraph("Milliseconds of each run without times of nodes, one after the other."),
            curve([(f"run {at + 1}", took, False) for at, took in enumerate(shown)], 1.1 * max(shown), "ms"),
        )
        if shown
        else "",
        section("Nodes by time", nodes_table(result)) if result.nodes.records else "",
        section("Ops by time", kinds_table(result)) if result.nodes.records else "",
        section(
            "Not on LiteRT",
            table(why, [Row([words(op), number(count, ",d"), words(reason)]) for count, op, reason in reasons]),
        )
        if reasons
        else "",
        section("Other programs on this model", _peers(peers)) if peers else "",
        section("Measured on", notes(_fact(key, value) for key, value in machine.items())) if machine else "",
        glossary(("ms", "median", "percentile", "node", "LiteRT", "reference engine")),
    )


def _beside(result: Benchmark, peers: Sequence[PeerResult]) -> Verdict:
    """The verdict, with a word on the quickest program where that is another one."""
    found, median = result.verdict(), result.percentile(50)
    quicker = [peer for peer in peers if not peer.problem and 0 < peer.median_us < median]
    if not quicker:
        return found
    best = min(quicker, key=lambda peer: peer.median_us)
    return replace(
        found, kind="fair", reasons=[*found.reasons, f"{best.name} is {median / best.median_us:.2f} x as fast."]
    )


def _peers(peers: Sequence[PeerResult]) -> str:
    rows = []
    for peer in peers:
        if peer.problem:
            rows.append(Row([words(peer.name), *[Cell("")] * 5, words(peer.problem)], is_quiet=True))
            continue
        apart = Cell("") if peer.difference is None else number(peer.difference, ".2g")
        memory = Cell("") if peer.peak_bytes is None else number(peer.peak_bytes / 1e6, ",.0f")
        times = [number(us / 1000, ",.3f") for us in (peer.median_us, peer.first_us, peer.load_us)]
        rows.append(Row([words(peer.name), *times, memory, apart, words(peer.version)]))
    return table(PEERS, rows)


def _fact(key: str, value: Any) -> str:
    if key.endswith("_bytes") and isinstance(value, int):
        return f"{key.removesuffix('_bytes').replace('_', ' ')}: {bytes_text(value)}"
    return f"{key.replace('_', ' ')}: {_plain(value)}"


def _plain(value: Any) -> str:
    return ", ".join(f"{key} {one}" for key, one in value.items()) if isinstance(value, Mapping) else str(value)
