"""The options that name the key of a sealed file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from pocketgraph.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def key_options(function: F) -> F:
    """``--key-file`` and ``--key-env``; a key itself on the command line would stay in the shell's history."""
    function = click.option("--key-env", "--key_env", help="An environment variable with the key's 64 hex digits.")(
        function
    )
    return click.option("--key-file", "--key_file", help="A file with the key: 32 bytes or 64 hex digits.")(function)


def chosen(key_file: str | None, key_env: str | None) -> str:
    """The key in the words of ``sealed.Key``."""
    if bool(key_file) == bool(key_env):
        raise UsageError("give the key with --key-file=FILE or --key-env=NAME")
    return f"file:{key_file}" if key_file else f"env:{key_env}"
