"""What commands print: names of a model are shown, and neither obeyed by the terminal nor read as markup."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from pocketgraph.errors import printable

CALLED: dict[str, str] = {}
"""What files are called in what is printed: those that stand for pipes."""
WIDTH = 120  # columns, where the output is not a terminal that has its own


def echo(message: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Prints text, with what a terminal would act on escaped."""
    click.echo(_called(str(message)), err=err, nl=nl)


def one_line(name: str) -> str:
    """A file's name as part of a line: an end of line in it is shown, and does not end the line."""
    return name.replace("\n", "\\n")


def wide_console() -> Any:
    """Where tables are printed: as wide as the terminal, or as COLUMNS says; else wide enough for most names."""
    from rich.console import Console

    is_told = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Console(highlight=False, width=None if is_told else WIDTH)


def escape(text: object) -> str:
    """A text as part of rich's markup."""
    from rich.markup import escape as escape_markup

    return escape_markup(_called(str(text)))


def _called(text: str) -> str:
    for path, name in CALLED.items():
        text = text.replace(path, name)
    return printable(text)
