"""Shows what each rule of a transform string did as one HTML page that needs nothing else, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape

from pocketgraph.transforms.near_miss import Miss
from pocketgraph.transforms.transform_report import RuleEntry

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; width: 100% } th, td { text-align: right; padding: .3rem .6rem }
th:first-child, td:first-child { text-align: left } tr + tr { border-top: 1px solid #ddd }
h2 { margin-top: 2rem; font-size: 1.1rem } code { background: #f3f3f3; padding: 0 .2rem }
details { margin: .3rem 0 } ul { columns: 2; margin: .3rem 0 } .why li { break-inside: avoid } .why ul { columns: 1 }
"""
MOST = 2000  # names listed of one kind; the rest is counted


def as_json(entries: Sequence[RuleEntry], model: str) -> str:
    """The report for programs: ``{"model", "rules": [...]}``."""
    return json.dumps({"model": model, "rules": [entry.as_dict() for entry in entries]}, indent=2) + "\n"


def as_html(entries: Sequence[RuleEntry], model: str) -> str:
    """The page: a table of all rules, then what each did, node by node."""
    head = "<tr>" + "".join(
        f"<th>{title}</th>"
        for title in ("rule", "nodes", "removed", "added", "rewired", "changed", "bytes", "time", "near misses")
    )
    listed = [pair for entry in entries for pair in _with_steps(entry, 0)]
    rows = "\n".join(_row(i, entry, depth) for i, (entry, depth) in enumerate(listed))
    details = "\n".join(_section(i, entry) for i, (entry, _) in enumerate(listed))
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Transforms of {escape(model)}</title>\n'
        f"<style>{STYLE}</style>\n<h1>Transforms of {escape(model)}</h1>\n"
        f"<table>\n{head}\n{rows}\n</table>\n{details}\n"
    )


def _with_steps(entry: RuleEntry, depth: int) -> Iterator[tuple[RuleEntry, int]]:
    """An entry and behind it the rules that it ran itself, each with how deep it stands."""
    yield entry, depth
    for step in entry.steps:
        yield from _with_steps(step, depth + 1)


def called(entry: RuleEntry) -> str:
    """The rule as it was written: name and parameters."""
    given = [
        f"{key}={str(one).lower() if isinstance(one, bool) else one}"
        for key, value in entry.arguments.items()
        for one in (value if isinstance(value, tuple) else (value,))
    ]
    return f"{entry.rule}({', '.join(given)})" if given else entry.rule


def _row(i: int, entry: RuleEntry, depth: int) -> str:
    indent = "&emsp;" * depth
    cells = [
        f'{indent}<a href="#rule{i}"><code>{escape(called(entry))}</code></a>',
        f"{entry.nodes[0]:,} → {entry.nodes[1]:,}",
        *(f"{len(names):,}" for names in (entry.removed, entry.added, entry.rewired, entry.changed)),
        f"{entry.bytes[0]:,} → {entry.bytes[1]:,}",
        f"{entry.seconds * 1000:,.1f} ms",
        f"{len(entry.misses):,}",
    ]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells)


def _section(i: int, entry: RuleEntry) -> str:
    kinds = ("removed", "added", "rewired", "changed")
    lists = "".join(_names(kind, getattr(entry, kind)) for kind in kinds)
    misses = _misses(entry.misses)
    what = lists + misses or "<p>It changed nothing.</p>"
    return f'<h2 id="rule{i}"><code>{escape(called(entry))}</code></h2>\n{what}'


def _names(kind: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    items = "".join(f"<li>{escape(name)}" for name in names[:MOST])
    more = f"<p>and {len(names) - MOST:,} more</p>" if len(names) > MOST else ""
    return f"<details><summary>{len(names):,} {kind}</summary><ul>{items}</ul>{more}</details>\n"


def _misses(misses: Sequence[Miss]) -> str:
    if not misses:
        return ""
    items = "".join(
        f"<li><code>{escape(miss.node)}</code>: {escape(miss.why)}"
        + (f" (run <code>{escape(miss.remedy)}</code> first)" if miss.remedy else "")
        for miss in misses[:MOST]
    )
    more = f"<p>and {len(misses) - MOST:,} more</p>" if len(misses) > MOST else ""
    title = f"{len(misses):,} places it left alone, and why"
    return f'<details class="why"><summary>{title}</summary><ul>{items}</ul>{more}</details>\n'
