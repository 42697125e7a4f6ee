"""The table at the end of the demo: one row a variant of the model, on the terminal and as a page with bars."""

from __future__ import annotations

import gzip
import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont


@dataclass(frozen=True)
class Row:
    """One variant of the model.

    Attributes:
        name: what it is called.
        nodes: how many nodes the graph has.
        raw, gzipped: bytes of its files as they are, and compressed one by one.
        accuracy: share of the held-out images that it names rightly.
        difference: the largest difference of any probability from TensorFlow's own.
        milliseconds: median time of one picture.
    """

    name: str
    nodes: int
    raw: int
    gzipped: int
    accuracy: float
    difference: float
    milliseconds: float


COLUMNS: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("model", lambda row: row.name),
    ("nodes", lambda row: f"{row.nodes}"),
    ("bytes", lambda row: f"{row.raw:,}"),
    ("gzipped", lambda row: f"{row.gzipped:,}"),
    ("held-out accuracy", lambda row: f"{row.accuracy:.2%}"),
    ("off TensorFlow by", lambda row: f"{row.difference:.1e}"),
    ("latency", lambda row: f"{row.milliseconds:.3f} ms"),
)


def sizes(paths: Sequence[Path]) -> tuple[int, int]:
    """Bytes of these files as they are, and gzipped."""
    contents = [path.read_bytes() for path in paths]
    return sum(map(len, contents)), sum(len(gzip.compress(data, 9, mtime=0)) for data in contents)


def show(rows: Sequence[Row]) -> None:
    """Prints the table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for title, _ in COLUMNS:
        table.add_column(title, justify="left" if title == "model" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(text(row) for _, text in COLUMNS))
    Console(highlight=False, width=110).print(table)


STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #667; --line: #d8dbe0; --bar: #3b7dd8; --pale: #a9c8f2;
        --page: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --soft: #99a; --line: #3a3f47; --bar: #5b9bf0;
        --pale: #2c4d7c; --page: #16181c; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 62rem;
       margin: 2rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .4rem; }
p { color: var(--soft); margin: .2rem 0 1rem; max-width: 48rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; } th { font-weight: 600; color: var(--soft); }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; } .soft { fill: var(--soft) !important; }
.bar { fill: var(--bar); } .pale { fill: var(--pale); }
figure { display: inline-block; margin: 0 .8rem .8rem 0; text-align: center; } figcaption { font-size: .85rem; }
"""


def page(rows: Sequence[Row], pictures: Sequence[tuple[np.ndarray, str]], note: str) -> str:
    """The table and its bars as one HTML file that needs no other.

    Args:
        rows: the variants.
        pictures: gray images uint8 [height, width], each with its caption.
        note: a line under the table.
    """
    head = "".join(f"<th>{title}</th>" for title, _ in COLUMNS)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(text(row))}</td>' for _, text in COLUMNS)}</tr>\n" for row in rows)
    figures = "".join(
        f"<figure>{picture_svg(image)}<figcaption>{html.escape(caption)}</figcaption></figure>"
        for image, caption in pictures
    )
    files = bars(rows, lambda row: row.raw, lambda row: f"{row.raw / 1e3:,.0f} kB", lambda row: row.gzipped)
    times = bars(rows, lambda row: row.milliseconds, lambda row: f"{row.milliseconds:.3f} ms")
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>From a training directory to a small model</title><style>{STYLE}</style>
<h1>From a training directory to a small model</h1>
<p>Handwritten digits, 8 by 8 pixels: what each step of the walk does to size, accuracy and speed.</p>
<table><thead><tr>{head}</tr></thead><tbody>
{body}</tbody></table>
<p>{html.escape(note)}</p>
<h2>Size of the files, and what is left of it after gzip (dark)</h2>
{files}
<h2>Latency of one picture, median</h2>
{times}
<h2>Held-out pictures and the smallest model's answers</h2>
{figures}
</html>
"""


def bars(
    rows: Sequence[Row],
    length: Callable[[Row], float],
    label: Callable[[Row], str],
    inner: Callable[[Row], float] | None = None,
) -> str:
    """A bar a row as inline SVG; with ``inner`` a darker bar lies inside each."""
    left, room, pitch = 170, 520, 26
    longest = max(length(row) for row in rows) or 1.0
    parts = []
    for i, row in enumerate(rows):
        y = i * pitch
        width = max(1.0, room * length(row) / longest)
        parts.append(f'<text x="0" y="{y + 16}">{html.escape(row.name)}</text>')
        shade = "pale" if inner else "bar"
        parts.append(f'<rect class="{shade}" x="{left}" y="{y + 4}" width="{width:.1f}" height="16" rx="2"/>')
        if inner:
            part = max(1.0, room * inner(row) / longest)
            parts.append(f'<rect class="bar" x="{left}" y="{y + 4}" width="{part:.1f}" height="16" rx="2"/>')
        parts.append(f'<text class="soft" x="{left + width + 8:.1f}" y="{y + 16}">{html.escape(label(row))}</text>')
    height = pitch * len(rows)
    return f'<svg viewBox="0 0 800 {height}" width="800" height="{height}" role="img">{"".join(parts)}</svg>'


def picture_svg(image: np.ndarray) -> str:
    """A gray picture uint8 [height, width] as squares, ink dark on white."""
    height, width = image.shape
    squares = "".join(
        f'<rect x="{x}" y="{y}" width="1.02" height="1.02" fill="rgb({v},{v},{v})"/>'
        for (y, x), v in ((at, 255 - int(value)) for at, value in np.ndenumerate(image))
    )
    return f'<svg viewBox="0 0 {width} {height}" width="64" height="64">{squares}</svg>'


def drawing(rows: Sequence[Row], pictures: Sequence[tuple[np.ndarray, str]]) -> Image.Image:
    """What is left of the size, step by step, and what the smallest model says of pictures."""
    width, left, line, side = 960, 200, 40, 80
    top, strip = 70, 70 + line * len(rows) + 50
    drawn = Image.new("RGB", (width, strip + side + 60), "white")
    pen = ImageDraw.Draw(drawn)
    title, plain = ImageFont.load_default(26), ImageFont.load_default(18)
    pen.text((24, 20), "From a training directory to a small model", "black", title)
    largest = max(row.raw for row in rows)
    for number, row in enumerate(rows):
        y, bar = top + line * number, (width - left - 260) * row.raw / largest
        pen.text((24, y + 6), row.name, "black", plain)
        pen.rectangle((left, y + 4, left + bar, y + line - 8), "#3b7dd8")
        said = f"{row.raw / 1000:,.0f} kB, {row.accuracy:.2%} right"
        pen.text((left + bar + 12, y + 6), said, "#556", plain)
    pen.text((24, strip - 34), "Pictures it had never seen, by the eight-bit model:", "#556", plain)
    for number, (picture, said) in enumerate(pictures):
        x = 24 + number * (width - 48) // max(1, len(pictures))
        large = Image.fromarray(picture.astype(np.uint8)).resize((side, side), Image.Resampling.NEAREST)
        drawn.paste(large, (x, strip))
        pen.text((x, strip + side + 8), said.partition(",")[0], "black", plain)
    return drawn
