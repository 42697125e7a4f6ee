"""What commands print: names of a model are shown, and neither obeyed by the terminal nor read as markup."""

from __future__ import annotations

import click

from pocketgraph.errors import printable


def echo(message: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Prints text, with what a terminal would act on escaped."""
    click.echo(printable(str(message)), err=err, nl=nl)


def escape(text: object) -> str:
    """A text as part of rich's markup."""
    from rich.markup import escape as escape_markup

    return escape_markup(printable(str(text)))
