"""What was found in a folder of photos, as one HTML page with the photos in it that needs nothing else."""

from __future__ import annotations

import os

from pocketgraph.apps.photo_figures import figure, thumbnail
from pocketgraph.apps.training_data.photo_checks import KINDS, DatasetReport, Finding
from pocketgraph.pages.document import report as page
from pocketgraph.pages.document import text
from pocketgraph.pages.parts import Column, Row, Verdict, cards, number, paragraph, section, table, words
from pocketgraph.pages.quantities import counted

MOST = 60
"""Photos shown of one kind; the rest is counted."""


def as_html(report: DatasetReport) -> str:
    """The page."""
    said, *reasons = verdict(report)
    found = [kind for kind in KINDS if report.of_kind(kind)]
    counts = [Row([words(label), number(count, ",")]) for label, count in report.counts.items()]
    return page(
        f"Photos in {os.path.basename(os.path.abspath(report.folder))}",
        Verdict("", said, reasons).html(),
        cards((f"{len(report.of_kind(kind)):,}", kind) for kind in found),
        *(_section(report, kind) for kind in found),
        section("Classes", table([Column("class", is_words=True), Column("photos")], counts)),
    )


def verdict(report: DatasetReport) -> list[str]:
    """The report in sentences."""
    total = sum(report.counts.values())
    proposed = len({one.path for one in report.findings if one.decision != "keep"})
    classes = counted(len(report.counts), "class")
    said = [f"{counted(total, 'photo')} of {classes} open; for {proposed} a change is proposed."]
    if report.small:
        said.append(f"Few photos: {', '.join(f'{label} ({report.counts[label]})' for label in report.small)}.")
    if report.cross_validated is not None:
        said.append(f"{100 * report.cross_validated:.1f} % of the labels are what the other photos say.")
    if report.apart is not None:
        said.append(
            f"The other photos can be told from these with an AUC of {report.apart.auc:.2f} (0.5 is not at all, 1 is "
            f"always); Fréchet distance {report.apart.frechet:.2f} of these photos' variance."
        )
    return said


def _section(report: DatasetReport, kind: str) -> str:
    found = report.of_kind(kind)
    shown = "".join(_figure(report.folder, one) for one in found[:MOST])
    rest = paragraph(f"and {len(found) - MOST:,} more") if len(found) > MOST else ""
    return section(_title(kind), f'<div class="figures">{shown}</div>', rest)


def _title(kind: str) -> str:
    return f"{kind}: {KINDS[kind]}".capitalize() if KINDS[kind] != kind else kind.capitalize()


def _figure(folder: str, one: Finding) -> str:
    paths = (path for path in (one.path, one.beside) if path)
    pictures = " ".join(thumbnail(os.path.join(folder, *path.split("/")), path) for path in paths)
    decision = f"{one.decision} {one.label}".strip()
    return figure(pictures, text(one.path), text(one.why), f"proposed: <b>{text(decision)}</b>")
