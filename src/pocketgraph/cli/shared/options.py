"""Option kinds that the original tools have and click does not."""

from __future__ import annotations

import copy
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


def distinct_names(option: click.Option) -> list[str]:
    """An option's names without those that are another one with dashes for underscores."""
    every = [*option.opts, *option.secondary_opts]
    underscored = {name.replace("_", "-") for name in every if "_" in name}
    return [name for name in every if name not in underscored]


def told_by_distinct_names(option: click.Option) -> None:
    """Has --help show an option by its distinct names; both spellings are taken all the same."""

    def record(context: click.Context) -> tuple[str, str] | None:
        shown, kept = copy.copy(option), distinct_names(option)
        shown.opts = [name for name in option.opts if name in kept]
        shown.secondary_opts = [name for name in option.secondary_opts if name in kept]
        return click.Option.get_help_record(shown, context)

    setattr(option, "get_help_record", record)  # noqa: B010  mypy refuses to replace a method


def names(text: str | None) -> list[str]:
    """A comma list of node or tensor names; blanks around them and empty entries are dropped."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


signature_option = click.option(
    "--signature", metavar="NAME", help="Of a SavedModel: what to feed and compute; default: its main one."
)  # fmt: skip


def named_files(texts: Iterable[str]) -> list[tuple[str, Path]]:
    """``NAME=FILE``, or ``FILE`` alone, each as a pair of the input's name, or "", and the file."""
    found = []
    for text in texts:
        name, equals, path = text.partition("=")
        found.append((name, Path(path)) if equals and not os.path.exists(text) else ("", Path(text)))
    return found
