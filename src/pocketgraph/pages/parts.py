"""Parts of a page: verdict, figures, notes, tables, plots. Each takes plain text and gives HTML."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pocketgraph.pages.document import text
from pocketgraph.pages.page_glossary import GLOSSARY

MOST_ROWS = 3000  # of a table in a page
LABELLED = 5  # points of a curve that are named in it
TYPED = re.compile(r"`([^`]+)`")
OPTION = re.compile(r"(?<![\w-])--\w(?:(?:&[#\w]+;|[^\s<&`])*(?:&[#\w]+;|[^\s<&`,;:.)]))?")  # in escaped text
NUMBERS = re.compile(r"\d+")
FEWEST = 4  # names that make a group


@dataclass(frozen=True)
class Verdict:
    """What a report comes to.

    Attributes:
        kind: ``good``, ``fair``, ``bad``, or "" where nothing was judged.
        words: it in a few plain words.
        reasons: why, a sentence each.
    """

    kind: str
    words: str
    reasons: Sequence[str] = ()

    def html(self) -> str:
        """The box at the head of a page."""
        items = "".join(f"<li>{prose(reason)}</li>" for reason in self.reasons)
        return f'<div class="verdict {self.kind}"><b>{text(self.words)}</b>{f"<ul>{items}</ul>" if items else ""}</div>'


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        title: its head.
        means: what it shows, on hover.
        is_words: whether it holds words, which stand at the left.
        falls: whether a first click sorts the largest first.
    """

    title: str
    means: str = ""
    is_words: bool = False
    falls: bool = False


@dataclass(frozen=True)
class Cell:
    """A cell: what it says, what it is sorted by (None: not known), a kind (``bad``, ``fair``), and HTML behind it."""

    shown: str
    by: float | str | None = None
    kind: str = ""
    more: str = ""


@dataclass(frozen=True)
class Row:
    """A row; quiet ones are grey."""

    cells: Sequence[Cell]
    is_quiet: bool = False
    copies: Sequence[Row] = field(default=())


def number(value: float, form: str = ",.4g", unit: str = "") -> Cell:
    """A cell with a number; one that is not finite is not known."""
    return Cell(f"{value:{form}}{unit}", value) if math.isfinite(value) else Cell("", None)


def words(shown: str, more: str = "") -> Cell:
    """A cell that is sorted by its words."""
    return Cell(shown, shown, more=more)


def prose(said: str) -> str:
    """A sentence of plain text; what stands between backticks is typed, and options are not broken at their hyphens."""
    return TYPED.sub(r"<code>\1</code>", OPTION.sub(r'<span class="option">\g<0></span>', text(said)))


def cards(figures: Iterable[tuple[str, str]]) -> str:
    """Figures with what they are, beside each other."""
    made = "".join(
        f'<div class="card"><b>{text(value)}</b><span>{text(label)}</span></div>' for value, label in figures
    )
    return f'<div class="cards">{made}</div>' if made else ""


def notes(said: Iterable[str]) -> str:
    """A list of sentences; those that begin with ``warning:`` stand out."""
    items = "".join(f"<li{' class=warning' if s.startswith('warning:') else ''}>{prose(s)}</li>" for s in said)
    return f'<ul class="notes">{items}</ul>' if items else ""


def commands(typed: Iterable[str]) -> str:
    """What to type, a command a line, which is broken between words."""
    lines = (" ".join(f"<span>{text(word)}</span>" for word in command.split(" ")) for command in typed)
    return "".join(f'<pre class="command"><code>{line}</code></pre>' for line in lines)


def section(title: str, *parts: str) -> str:
    """Parts under a title; nothing where there are none."""
    inside = "".join(parts)
    return f"<h2>{text(title)}</h2>\n{inside}" if inside else ""


def paragraph(said: str) -> str:
    """A paragraph of plain text, as ``prose`` has it."""
    return f"<p>{prose(said)}</p>"


def folded(title: str, inside: str) -> str:
    """Parts that a click on their title shows; nothing where there are none."""
    return f"<details><summary>{text(title)}</summary>{inside}</details>\n" if inside else ""


def table(
    columns: Sequence[Column],
    rows: Sequence[Row],
    most: int = MOST_ROWS,
    *,
    is_grouped: bool = False,
    is_stacked: bool = False,
) -> str:
    """A table that sorts by a click on a title.

    Args:
        columns: the columns; the first stays in sight.
        rows: of as many cells.
        most: rows shown; the others are counted.
        is_grouped: whether rows with names that differ in numbers only become one that opens; it shows the first of
            them in the order given.
        is_stacked: whether cells stand below each other on narrow screens, as suits few rows of words.
    """
    if is_grouped:
        rows = _folded_rows(rows)
    head = "".join(_th(column) for column in columns)
    bodies = "\n".join(_body(columns, row) for row in rows[:most])
    left = f'<p class="dim">and {len(rows) - most:,} more rows</p>' if len(rows) > most else ""
    kind = "wide stacked" if is_stacked else "wide"
    return f'<div class="{kind}"><table><thead><tr>{head}</tr></thead>\n{bodies}\n</table></div>{left}\n'


def _th(column: Column) -> str:
    title = f' title="{text(column.means)}"' if column.means else ""
    kind = " class=words" if column.is_words else ""
    first = " data-first=descending" if column.falls else ""
    return f'<th{kind}{first}{title}><button type="button">{text(column.title)}</button></th>'


def _folded_rows(rows: Sequence[Row]) -> list[Row]:
    found = []
    for places in alike([row.cells[0].shown for row in rows]):
        first = rows[places[0]]
        found.append(Row(first.cells, first.is_quiet, [rows[at] for at in places] if len(places) > 1 else ()))
    return found


def _body(columns: Sequence[Column], row: Row) -> str:
    if not row.copies:
        return f"<tbody>{_tr(columns, row)}</tbody>"
    count = f'<button type="button" class="times" aria-expanded="false">&times; {len(row.copies)}</button>'
    inside = "\n".join(_tr(columns, copy) for copy in row.copies[:MOST_ROWS])
    return f'<tbody class="group">{_tr(columns, row, count)}\n{inside}</tbody>'


def _tr(columns: Sequence[Column], row: Row, behind: str = "") -> str:
    cells = []
    for at, (column, cell) in enumerate(zip(columns, row.cells, strict=True)):
        by = "" if cell.by is None else f' data-sort="{text(cell.by)}"'
        kinds = " ".join(filter(None, (cell.kind, "words" if column.is_words else "")))
        kind = f' class="{kinds}"' if kinds else ""
        cells.append(f"<td{kind}{by}>{text(cell.shown)}{behind if at == 0 else ''}{cell.more}</td>")
    return f"<tr{' class=quiet' if row.is_quiet else ''}>{''.join(cells)}</tr>"


def names(listed: Sequence[str], most: int = 2000) -> str:
    """Names in columns."""
    items = "".join(f"<li>{text(name)}</li>" for name in listed[:most])
    more = f"<p>and {len(listed) - most:,} more</p>" if len(listed) > most else ""
    return f'<ul class="names">{items}</ul>{more}'


def meter(share: float) -> str:
    """A small bar that is filled to a share from 0 to 1."""
    return f'<span class="meter"><i style="width:{100 * min(max(share, 0), 1):.1f}%"></i></span>'


def curve(points: Sequence[tuple[str, float, bool]], most: float, unit: str, worst: Sequence[int] = ()) -> str:
    """A line through numbers in order, with the worst of them named below it, under the digits that they have in it.

    Args:
        points: a name, a number, and whether it is quiet.
        most: the number at the upper edge; 0 is at the lower one.
        unit: of the numbers.
        worst: which points to name.
    """
    wide, tall, left = 800, 260, 48
    step = (wide - left - 20) / max(len(points) - 1, 1)

    def height(value: float) -> float:
        return tall - 24 - min(max(value, 0), most) / most * (tall - 60) if not math.isnan(value) else tall - 24

    grid = "".join(
        f'<line class="axis" stroke-dasharray="2 4" x1="{left}" x2="{wide - 20}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{most * part / 3:.3g}</text>'
        for part in range(4)
        for y in [height(most * part / 3)]
    )
    places = [(left + at * step, height(value)) for at, (_, value, _) in enumerate(points)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    named = list(dict.fromkeys(worst))[:LABELLED]
    dots = "".join(
        f'<circle class="dot{" worst" if at in named else " quiet" if is_quiet else ""}" cx="{x:.1f}" cy="{y:.1f}" '
        f'r="{4 if at in named else 3 if len(points) < 200 else 1.5}"><title>{text(name)}: {value:.4g} {text(unit)}'
        "</title></circle>"
        for at, ((x, y), (name, value, is_quiet)) in enumerate(zip(places, points, strict=True))
    )
    digits = [(number, *places[at], _is_dip(places, at)) for number, at in enumerate(named, 1)]
    labels = "".join(
        f'<text class="worst" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{number}</text>'
        for number, x, y in _spread(digits, wide, tall)
    )
    listed = "".join(f"<li>{text(points[at][0])}</li>" for at in named)
    names_below = f'<ol class="notes">{listed}</ol>' if listed else ""
    sizes = f"max-width:{wide * 6 // 5}px;min-width:{wide * 9 // 10}px"  # so that words stay between 10 and 13 px
    return (
        f'<div class="wide"><svg viewBox="0 0 {wide} {tall}" width="100%" style="{sizes}" '
        f'role="img"><text x="4" y="12">{text(unit)}</text>{grid}<polyline class="line" points="{line}"/>{dots}{labels}'
        f"</svg></div>{names_below}"
    )


def _is_dip(places: Sequence[tuple[float, float]], at: int) -> bool:
    """Whether the line comes down to a point, so that there is room below it."""
    beside = [places[other][1] for other in (at - 1, at + 1) if 0 <= other < len(places)]
    return bool(beside) and sum(beside) / len(beside) < places[at][1]


def _spread(places: Sequence[tuple[int, float, float, bool]], wide: int, tall: int) -> list[tuple[int, float, float]]:
    """Digits above their points, or below where the line comes down to these; no two on each other.

    Args:
        places: each digit, where its point is, and whether it goes below.
        wide, tall: of the drawing.
    """
    found: list[tuple[int, float, float]] = []
    for number, x, y, is_below in places:
        low = min(y + 16, tall - 4.0) if is_below else max(y - 8, 24.0)
        aside = 9 if x < wide / 2 else -9
        while any(abs(other_x - x) < 9 and abs(other - low) < 12 for _, other_x, other in found):
            x += aside
        found.append((number, x, low))
    return found


def histogram(bars: Sequence[float], labels: Sequence[str] = (), *, cut: Sequence[bool] = (), title: str = "") -> str:
    """Bars with what each counts below it.

    Args:
        bars: their heights.
        labels: below them; without, the bars are narrow.
        cut: which are drawn in the colour of harm.
        title: on hover.
    """
    top = max(*bars, 1e-12) if len(bars) > 1 else max([*bars, 1e-12])
    wide, tall, foot, head = (38, 96, 16, 16) if labels else (2.5, 32, 0, 0)
    shapes = []
    for at, bar in enumerate(bars):
        height = (tall - foot - head) * bar / top
        x, y = at * wide, tall - foot - height
        kind = "bar cut" if at < len(cut) and cut[at] else "bar"
        gap = 8 if labels else 0
        shapes.append(f'<rect class="{kind}" x="{x:g}" y="{y:.1f}" width="{wide - gap:g}" height="{height:.1f}"/>')
        if labels:
            centre = x + (wide - gap) / 2
            shapes.append(f'<text x="{centre:g}" y="{tall - 3}" text-anchor="middle">{text(labels[at])}</text>')
            if bar:
                shapes.append(f'<text x="{centre:g}" y="{y - 3:.1f}" text-anchor="middle">{bar:g}</text>')
    hover = f"<title>{text(title)}</title>" if title else ""
    return f'<svg width="{wide * len(bars):g}" height="{tall}">{hover}{"".join(shapes)}</svg>'


def figures(drawn: Iterable[tuple[str, str]]) -> str:
    """Pictures with their titles, beside each other."""
    made = "".join(f"<figure><figcaption>{text(title)}</figcaption>{picture}</figure>" for title, picture in drawn)
    return f'<div class="figures">{made}</div>' if made else ""


def glossary(used: Iterable[str]) -> str:
    """What the words of a page mean, folded away at its end."""
    entries = "".join(f"<dt>{text(word)}</dt><dd>{text(GLOSSARY[word])}</dd>" for word in dict.fromkeys(used))
    return folded("What the words mean", f"<dl>{entries}</dl>")


def alike(names: Sequence[str], fewest: int = FEWEST) -> list[list[int]]:
    """The places of names that differ in numbers only, each group where its first stands; others alone.

    They are the steps of an unrolled loop, the blocks of a deep network.

    >>> alike(["x", "step_1/mul", "step_2/mul", "y", "step_3/mul", "step_4/mul"])
    [[0], [1, 2, 4, 5], [3]]
    """
    groups: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        groups.setdefault(NUMBERS.sub("#", name), []).append(at)
    found = []
    for at, name in enumerate(names):
        group = groups[NUMBERS.sub("#", name)]
        if len(group) < fewest:
            found.append([at])
        elif group[0] == at:
            found.append(group)
    return found
