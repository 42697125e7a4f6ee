"""The options that name the key of a sealed file."""

from __future__ import annotations

import os
from collections.abc import Callable

import click

from pocketgraph.cli.shared.options import together
from pocketgraph.errors import UsageError, quoted

VARIABLE = "POCKETGRAPH_KEY"  # as sealed.KEY_VARIABLE, which is not imported only for its name


key_options = together(
    click.option("--key_file", help="A file with the key: 32 bytes or 64 hex digits."),
    click.option("--key_env", help="An environment variable with the key's 64 hex digits."),
)
"""Where a key is; the key itself on the command line would stay in the shell's history."""


def chosen(key_file: str | None, key_env: str | None) -> str:
    """The key in the words of ``sealed.Key``; that of the environment when neither option names one."""
    if not key_file and not key_env:
        from pocketgraph.formats.sealed import key_of_environment

        if key := key_of_environment():
            return key
    if bool(key_file) == bool(key_env):
        raise UsageError(f"give the key with --key-file=FILE or --key-env=NAME, or set {VARIABLE}")
    return f"file:{key_file}" if key_file else f"env:{key_env}"


def typed_key() -> str:
    """The option with the key as it was typed, a space before it, for commands that are proposed; "" without one."""
    context = click.get_current_context(silent=True)
    return "" if context is None else context.meta.get(VARIABLE, "")


def opens_sealed_models(command: click.Command) -> None:
    """Gives a command that reads models the two options, if it has not got them.

    What they name stands in the environment for as long as the command runs, so that every place that opens a model
    finds it, also in the processes that a benchmark starts.
    """
    if any("--key_file" in parameter.opts for parameter in command.params):
        return
    words = "of a sealed model: a file with 32 bytes or 64 hex digits.", "of a sealed model: a variable with 64 digits."
    for option, kind, help_text in (("key_file", "file", words[0]), ("key_env", "env", words[1])):
        command.params.append(
            click.Option(
                [f"--{option}"],
                help=f"The key {help_text}",
                metavar="FILE" if kind == "file" else "NAME",
                expose_value=False,
                callback=_kept(kind),
            )
        )


def _kept(kind: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def keep(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if not value:
            return
        context.meta[VARIABLE] = f" --key-{kind}={quoted(value)}"
        before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = f"{kind}:{value}"

        def restore() -> None:
            if before is None:
                os.environ.pop(VARIABLE, None)
            else:
                os.environ[VARIABLE] = before

        context.call_on_close(restore)

    return keep
