"""``-`` and ``/dev/stdin`` where a model is read, ``-`` and ``/dev/stdout`` where one is written."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import click

from pocketgraph.errors import UsageError

READ = frozenset({"model", "a", "b", "source", "graph", "in_graph", "input_graph", "input", "path"})
"""Parameters that name one model to read."""
WRITTEN = {"out_graph": ".pb", "output_graph": ".pb", "target": ".pb", "out": ".tflite"}
"""Parameters that name the file to write, and the ending that says its form where none is given."""
STDIN, STDOUT = ("-", "/dev/stdin"), ("-", "/dev/stdout")
KEPT = "pocketgraph.stdin"


def through_pipes(command: click.Command) -> None:
    """Lets a command read its model from a pipe and write it to one.

    A model is looked at by content and mapped, which a pipe does not allow: it is kept in a temporary file while the
    command runs. What is written goes out when the command has ended, and what it prints goes to stderr.
    """
    for parameter in command.params:
        name, is_one = parameter.name or "", parameter.nargs == 1
        if is_one and name in READ and not parameter.callback:
            parameter.callback = _reading
        elif is_one and name in WRITTEN and not parameter.callback:
            parameter.callback = _writing(WRITTEN[name])


def is_piped() -> bool:
    """Whether the command that runs reads its model from standard input."""
    context = click.get_current_context(silent=True)
    return context is not None and KEPT in context.meta


def _reading(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    if value not in STDIN:
        return value
    kept = context.meta.get(KEPT)
    if kept is not None:
        raise UsageError("standard input is one model, and two are asked of it")
    folder = _folder(context)
    path = context.meta[KEPT] = os.path.join(folder, "stdin")
    with open(path, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    if not os.path.getsize(path):
        raise UsageError("nothing came in on standard input", hint="pocketgraph COMMAND - < model.pb")
    return path


def _writing(ending: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def written(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if value not in STDOUT:
            return value
        path = os.path.join(_folder(context), f"stdout{ending}")
        out = sys.stdout.buffer

        def send() -> None:
            if os.path.exists(path):
                with open(path, "rb") as file:
                    shutil.copyfileobj(file, out)
                out.flush()

        context.call_on_close(send)
        context.with_resource(contextlib.redirect_stdout(sys.stderr))
        return path

    return written


def _folder(context: click.Context) -> str:
    """A folder that is there while the command runs."""
    return context.with_resource(tempfile.TemporaryDirectory(prefix="pocketgraph."))
