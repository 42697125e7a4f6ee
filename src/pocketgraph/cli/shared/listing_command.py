"""A command whose help ends with a list, which is made when somebody asks for the help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


class ListingCommand(click.Command):
    """The command.

    Args:
        listing: writes the list.
        attributes: as for ``click.Command``.
    """

    def __init__(self, *arguments: Any, listing: Callable[[click.HelpFormatter], None], **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self._listing = listing

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list."""
        self._listing(formatter)
