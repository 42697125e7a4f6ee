"""The blocks of a page: commands and Python to run, what they print, and what is only to be read.

A page is Markdown as GitHub shows it. A fence says what its block is::

    sh, python      run, in the page's order, in one folder and with one set of names
    output          what the block before it prints; a line of … stands for any lines, … in a line for anything
    text            a picture, a tree of files, a line of an error: to be read

A call of pocketgraph that fills a cell of a table runs too, in one folder with the blocks around it.

A comment ``<!-- not run: why -->`` in front of an ``sh`` or ``python`` block says that no test runs it, and a command
with the comment ``# leaves with 1`` is one that fails.
"""

from __future__ import annotations

import pathlib
import re
from dataclasses import dataclass, replace

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RUN = frozenset({"sh", "python"})
PARSED = frozenset({"c", "kotlin", "swift", "javascript"})
"""Languages whose blocks other tests compile or parse."""
FENCE = re.compile(r"^```(?P<language>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
CELL = re.compile(r"(?<=`)pocketgraph [a-z_]+ [^`\n…]+(?=`)(?=[^\n]*\|$)", re.MULTILINE)
NOT_RUN = re.compile(r"<!-- not run: (?P<why>[^>]+) -->\n+\Z")
FLOAT = re.compile(r"(?<![\w.])-?\d(?:[\d,]*\.\d+(?:e[-+]?\d+)?|e[-+]?\d+)")
NEAR = 0.1  # of a number with decimals: another processor rounds otherwise
TINY = 1e-4
NOISE = re.compile(r"\d[\d.]* dB\b")  # what is left of rounding, which differs between processors
TIME = re.compile(r"(?<![\w.])\d[\d.,]*(?:e[-+]?\d+)? ?(?:ns|us|µs|ms|s|seconds|min)\b")


@dataclass(frozen=True)
class Block:
    """One fence of a page."""

    language: str
    text: str
    line: int
    """Of the page, where the text begins; the first line is 1."""
    why_not: str = ""
    """Why no test runs it."""
    output: str | None = None
    """What the page shows as its output."""
    output_span: tuple[int, int] = (0, 0)
    """Where in the page that output stands, in characters."""

    @property
    def runs(self) -> bool:
        return self.language in RUN and not self.why_not


def documents() -> list[str]:
    """The pages that are written by hand, as paths from the repository's root."""
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY"))]
    return sorted(path.relative_to(ROOT).as_posix() for path in [*pages, *(ROOT / "examples").glob("*/README.md")])


def blocks(page: str) -> list[Block]:
    """The blocks of a page's text, in order; an output belongs to the block before it."""
    found: list[Block] = []
    end = 0
    for fence in FENCE.finditer(page):
        found += in_tables(page, end, fence.start())
        language, text = fence["language"].strip(), fence["text"]
        line = line_of(page, fence.start("text"))
        if language == "output":
            if not found or found[-1].language not in RUN or page[end : fence.start()].strip():
                raise ValueError(f"line {line - 1}: this output follows no block that runs")
            found[-1] = replace(found[-1], output=text, output_span=fence.span("text"))
        else:
            mark = NOT_RUN.search(page, 0, fence.start())
            found.append(Block(language, text, line, mark["why"] if mark else ""))
        end = fence.end()
    return [*found, *in_tables(page, end, len(page))]


def in_tables(page: str, start: int, end: int) -> list[Block]:
    """Calls of pocketgraph that fill cells of tables."""
    return [
        Block("sh", cell[0].replace("\\|", "|"), line_of(page, cell.start()))
        for cell in CELL.finditer(page, start, end)
    ]


def line_of(page: str, place: int) -> int:
    """The line of a character's place; the first is 1."""
    return page.count("\n", 0, place) + 1


def normalized(output: str) -> list[str]:
    """Lines without what differs from run to run: times, noise, and the widths of columns and rules that follow."""
    lines = [re.sub(r"[ \t]+", " ", NOISE.sub("NOISE", TIME.sub("TIME", line))).strip() for line in output.split("\n")]
    lines = [re.sub(r"[─━═]+|-{3,}", "---", line) for line in lines]
    return [line for line in lines if line and not line.endswith(", after TIME")]  # long work says how far it is


def same_output(shown: str, printed: str) -> bool:
    """Whether a block printed what the page shows: numbers with decimals are near, all else is equal."""
    pattern, numbers = "", []
    for line in normalized(shown):
        if line == "…":
            pattern += r"(?:[^\n]*\n)*?"
            continue
        texts = FLOAT.split(line)
        numbers += FLOAT.findall(line)
        parts = [".*".join(map(re.escape, text.split("…"))) for text in texts]
        pattern += rf"({FLOAT.pattern})".join(parts) + r"\n"
    match = re.fullmatch(pattern, "".join(f"{line}\n" for line in normalized(printed)))
    return match is not None and all(map(near, numbers, match.groups()))


def near(shown: str, printed: str) -> bool:
    """Whether two numbers are the same but for rounding."""
    a, b = (float(number.replace(",", "")) for number in (shown, printed))
    return abs(a - b) <= max(NEAR * abs(a), TINY)
