"""Shows what each rule of a transform string did as one HTML page that needs nothing else, or as JSON."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pocketgraph.pages.document import report, text
from pocketgraph.pages.json_text import json_text
from pocketgraph.pages.page_glossary import GLOSSARY
from pocketgraph.pages.parts import Cell, Column, Row, Verdict, cards, folded, glossary, names, number, section, table
from pocketgraph.pages.quantities import bytes_text, counted
from pocketgraph.transforms.near_miss import Miss
from pocketgraph.transforms.transform_report import RuleEntry

MOST = 2000  # places listed that one rule left alone; the rest is counted
KINDS = ("removed", "added", "rewired", "changed")
COLUMNS = (
    Column("rule", "What ran, in order; those that it ran itself stand behind it."),
    Column("nodes", "Before and after."),
    *(Column(kind, "Nodes.", falls=True) for kind in KINDS),
    Column("bytes", "Of the model file, before and after."),
    Column("ms", GLOSSARY["ms"], falls=True),
    Column("near misses", GLOSSARY["near miss"], falls=True),
)


def as_json(entries: Sequence[RuleEntry], model: str) -> str:
    """The report for programs: ``{"model", "rules": [...]}``."""
    return json_text({"model": model, "rules": [entry.as_dict() for entry in entries]}) + "\n"


def as_html(
    entries: Sequence[RuleEntry], model: str, checked: Sequence[tuple[str, float]] | None = None, problem: str = ""
) -> str:
    """The page: what it comes to, a table of all rules, then what each did, node by node.

    Args:
        entries: a rule each, in order.
        model: the file that was transformed.
        checked: the rules whose results were compared, with the largest relative difference; None for no comparison.
        problem: why it ended early, if it did.
    """
    listed = [pair for entry in entries for pair in _with_steps(entry, 0)]
    return report(
        f"Transforms of {os.path.basename(os.path.normpath(model))}",
        _verdict(entries, checked, problem).html(),
        _cards(entries),
        section("Rules", table(COLUMNS, [_row(i, entry, depth) for i, (entry, depth) in enumerate(listed)])),
        *(_section(i, entry) for i, (entry, _) in enumerate(listed)),
        glossary(("node", "rewired", "near miss", "ms")),
    )


def _verdict(entries: Sequence[RuleEntry], checked: Sequence[tuple[str, float]] | None, problem: str) -> Verdict:
    if problem:
        return Verdict("bad", "Do not ship it: nothing was written", [problem])
    if not entries:
        return Verdict("", "No rule ran")
    idle = [entry.rule for entry in entries if entry.nodes[0] == entry.nodes[1] and not any(_counts(entry))]
    grown = entries[-1].bytes[1] - entries[0].bytes[0]
    reasons = [
        f"{entries[0].nodes[0]:,} nodes became {entries[-1].nodes[1]:,}, and {bytes_text(entries[0].bytes[0])} became "
        f"{bytes_text(entries[-1].bytes[1])}{', which is more' if grown > 0 else ''}."
    ]
    if idle:
        reasons.append(f"These changed nothing: {', '.join(idle)}.")
    if checked is None:
        reasons.append("Nobody compared the results: run it again with the check, or verify both files.")
        return Verdict("fair", "Ship it once its results are checked", reasons)
    rule, worst = max(checked, key=lambda pair: pair[1], default=("", 0.0))
    said = f"by at most {worst:.3g} of their largest magnitude ({rule})" if worst else "nowhere"
    rules = "the one rule" if len(checked) == 1 else f"each of {counted(len(checked), 'rule')}"
    reasons.insert(0, f"After {rules} the results were compared with those before: they differ {said}.")
    return Verdict("good", "Ship it", reasons)


def _counts(entry: RuleEntry) -> list[int]:
    return [len(getattr(entry, kind)) for kind in KINDS]


def _cards(entries: Sequence[RuleEntry]) -> str:
    if not entries:
        return ""
    first, last = entries[0], entries[-1]
    return cards((
        (f"{last.nodes[1]:,}", f"nodes, {first.nodes[0]:,} before"),
        (bytes_text(last.bytes[1]), f"{bytes_text(first.bytes[0])} before"),
        (f"{sum(entry.seconds for entry in entries) * 1000:,.0f} ms", "that the rules took"),
        (f"{sum(len(entry.misses) for entry in entries):,}", "places left alone"),
    ))  # fmt: skip


def _with_steps(entry: RuleEntry, depth: int) -> Iterator[tuple[RuleEntry, int]]:
    """An entry and behind it the rules that it ran itself, each with how deep it stands."""
    yield entry, depth
    for step in entry.steps:
        yield from _with_steps(step, depth + 1)


def called(rule: str, arguments: Mapping[str, Any]) -> str:
    """A rule as it was written: name and parameters."""
    given = [
        f"{key}={str(one).lower() if isinstance(one, bool) else one}"
        for key, value in arguments.items()
        for one in (value if isinstance(value, tuple) else (value,))
    ]
    return f"{rule}({', '.join(given)})" if given else rule


def _row(i: int, entry: RuleEntry, depth: int) -> Row:
    link = f'<a href="#rule{i}"><code>{text(called(entry.rule, entry.arguments))}</code></a>'
    indented = f'<div style="padding-left:{depth}em">{link}</div>' if depth else link
    return Row([
        Cell("", i, more=indented),
        Cell(f"{entry.nodes[0]:,} → {entry.nodes[1]:,}", entry.nodes[1]),
        *(number(count, ",d") for count in _counts(entry)),
        Cell(f"{entry.bytes[0]:,} → {entry.bytes[1]:,}", entry.bytes[1]),
        number(entry.seconds * 1000, ",.1f"),
        number(len(entry.misses), ",d"),
    ])  # fmt: skip


def _section(i: int, entry: RuleEntry) -> str:
    lists = "".join(
        folded(f"{len(listed):,} {kind}", names(listed)) for kind in KINDS if (listed := getattr(entry, kind))
    )
    what = lists + _misses(entry.misses) or "<p>It changed nothing.</p>"
    return f'<h2 id="rule{i}"><code>{text(called(entry.rule, entry.arguments))}</code></h2>\n{what}'


def _misses(misses: Sequence[Miss]) -> str:
    items = "".join(
        f"<li><code>{text(miss.node)}</code>: {text(miss.why)}"
        + (f" (run <code>{text(miss.remedy)}</code> first)" if miss.remedy else "")
        for miss in misses[:MOST]
    )
    more = f"<p>and {len(misses) - MOST:,} more</p>" if len(misses) > MOST else ""
    return folded(f"{counted(len(misses), 'place')} it left alone, and why", f"<ul>{items}</ul>{more}" if items else "")
