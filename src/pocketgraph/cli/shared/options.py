"""Option kinds that the original tools have and click does not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


if TYPE_CHECKING:
    _Base = click.ParamType[bool]
else:
    _Base = click.ParamType  # older clicks cannot say of what


class Truth(_Base):
    """``true`` or ``false`` in any case; also 1, 0, yes, no."""

    name = "true|false"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        """The truth that a word means."""
        if isinstance(value, bool):
            return value
        try:
            return _WORDS[str(value).lower()]
        except KeyError:
            self.fail(f"'{value}' is neither true nor false", param, ctx)


def flag_bool(*names: str, default: bool = False, help: str = "") -> Callable[[F], F]:
    """A boolean option that is written ``--x``, ``--x=true`` or ``--x=false``, as the original tools have them."""
    return click.option(
        *names, is_flag=False, flag_value="true", default=default, type=Truth(), help=help, show_default=True
    )


def names(text: str | None) -> list[str]:
    """A comma list of node or tensor names; blanks around them and empty entries are dropped."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def named_files(texts: Iterable[str]) -> list[tuple[str, Path]]:
    """``NAME=FILE``, or ``FILE`` alone, each as a pair of the input's name, or "", and the file."""
    found = []
    for text in texts:
        name, equals, path = text.partition("=")
        found.append((name, Path(path)) if equals and not os.path.exists(text) else ("", Path(text)))
    return found
