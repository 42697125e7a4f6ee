"""What was found in a folder of photos, as one HTML page with the photos in it that needs nothing else."""

from __future__ import annotations

import base64
import io
import os
from html import escape

import numpy as np
from PIL import Image

from pocketgraph.apps.training_data.check import KINDS, DatasetReport, Finding
from pocketgraph.datasets import image_loading
from pocketgraph.errors import FormatError

THUMBNAIL = 144  # pixels
MOST = 60
"""Photos shown of one kind; the rest is counted."""
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
  color: #222; background: #fff } h2 { margin: 2rem 0 .5rem; font-size: 1.1rem }
table { border-collapse: collapse } td, th { padding: .2rem .8rem .2rem 0; text-align: left }
td + td, th + th { text-align: right } .photos { display: flex; flex-wrap: wrap; gap: 1rem }
figure { margin: 0; width: 19rem; border: 1px solid #ddd; border-radius: .3rem; padding: .5rem }
figure img { max-height: 9rem; max-width: 48%; vertical-align: top }
figcaption { font-size: .8rem; overflow-wrap: anywhere }
"""


def as_html(report: DatasetReport) -> str:
    """The page."""
    title = f"Photos in {escape(os.path.basename(os.path.abspath(report.folder)))}"
    rows = "".join(f"<tr><td>{escape(label)}<td>{count}" for label, count in report.counts.items())
    found = "".join(
        f"<tr><td><a href='#{kind.replace(' ', '-')}'>{escape(kind)}</a><td>{len(report.of_kind(kind))}"
        for kind in KINDS
        if report.of_kind(kind)
    )
    sections = "".join(_section(report, kind) for kind in KINDS if report.of_kind(kind))
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8">\n<title>{title}</title>\n<style>{STYLE}</style>\n'
        f"<h1>{title}</h1>\n{''.join(f'<p>{escape(line)}' for line in verdict(report))}\n"
        f"<table><tr><th>class<th>photos{rows}</table>\n<h2>Found</h2><table>{found}</table>\n{sections}\n</html>\n"
    )


def verdict(report: DatasetReport) -> list[str]:
    """The report in sentences."""
    total = sum(report.counts.values())
    proposed = len({one.path for one in report.findings if one.decision != "keep"})
    said = [f"{total} photos of {len(report.counts)} classes open; for {proposed} a change is proposed."]
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
    rest = f"<p>and {len(found) - MOST} more" if len(found) > MOST else ""
    name = kind.replace(" ", "-")
    return f"<h2 id='{name}'>{kind.capitalize()}: {KINDS[kind]}</h2>\n<div class=photos>{shown}</div>{rest}\n"


def _figure(folder: str, one: Finding) -> str:
    pictures = "".join(_thumbnail(folder, path) for path in (one.path, one.beside) if path)
    decision = f"{one.decision} {one.label}".strip()
    return (
        f"<figure>{pictures}<figcaption>{escape(one.path)}<br>{escape(one.why)}<br>"
        f"proposed: <b>{escape(decision)}</b></figcaption></figure>\n"
    )


def _thumbnail(folder: str, path: str) -> str:
    """The photo, small, in the page itself; nothing where it does not open."""
    try:
        pixels = image_loading.read(os.path.join(folder, *path.split("/")))
    except FormatError:
        return ""
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    picture.thumbnail((THUMBNAIL, THUMBNAIL))
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=70)
    data = base64.b64encode(content.getvalue()).decode()
    return f'<img alt="{escape(path, quote=True)}" src="data:image/jpeg;base64,{data}">'
