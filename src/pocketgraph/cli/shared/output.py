"""What commands print: names of a model are shown, and neither obeyed by the terminal nor read as markup."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import click

from pocketgraph.errors import printable

CALLED: dict[str, str] = {}
"""What files are called in what is printed: those that stand for pipes."""
LEAST_NAME = 12  # columns in which a name without its middle still says something
WIDTH = 120  # columns, where the output is not a terminal that has its own


def echo(message: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Prints text, with what a terminal would act on escaped."""
    click.echo(_called(str(message)), err=err, nl=nl)


def echo_json(content: Any, **how: Any) -> None:
    """Prints a report for programs; ``how`` as for ``json_text``."""
    from pocketgraph.pages.json_text import json_text

    echo(json_text(content, **how))


def one_line(name: str) -> str:
    """A file's name as part of a line: an end of line in it is shown, and does not end the line."""
    return name.replace("\n", "\\n")


def wide_console() -> Any:
    """Where tables are printed: as wide as the terminal, or as COLUMNS says; else wide enough for most names."""
    from rich.console import Console

    has_width = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Console(highlight=False, width=None if has_width else WIDTH)


class NamesCell:
    """Names in a table's cell: beside each other where there is room, else each in a line, without its middle where the
    column is narrower than it."""

    def __init__(self, *names: str, rest: str = "") -> None:
        self.lines = [_called(one_line(name)) for name in names]
        self.rest = rest

    def __rich_measure__(self, console: Any, options: Any) -> Any:
        from rich.measure import Measurement

        longest = max(map(len, self.lines), default=0)
        return Measurement(min(longest, LEAST_NAME), len(self._joined())).with_maximum(options.max_width)

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.text import Text

        width = options.max_width
        if len(self._joined()) <= width:
            yield Text(self._joined(), no_wrap=True)
            return
        for line in self.lines:
            yield Text(without_middle(line, width), no_wrap=True)
        if self.rest:
            yield Text(self.rest.strip(), no_wrap=True)

    def _joined(self) -> str:
        return ", ".join(self.lines) + self.rest


def without_middle(text: str, width: int) -> str:
    """A text in so many columns: its beginning and its end where it is longer."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}" if width > 1 else "…"[:width]


def escape(text: object) -> str:
    """A text as part of rich's markup."""
    from rich.markup import escape as escape_markup

    return escape_markup(_called(str(text)))


def _called(text: str) -> str:
    for path, name in CALLED.items():
        text = text.replace(path, name)
    return printable(text)
