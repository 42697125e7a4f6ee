"""``-`` and ``/dev/stdin`` where a model is read, ``-`` and ``/dev/stdout`` where one is written."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any

import click

from pocketgraph.cli.shared.output import CALLED
from pocketgraph.errors import PocketgraphError, UsageError
from pocketgraph.part_files import temporary_folder

READ = frozenset({
    "model", "a", "b", "source", "graph", "in_graph", "input_graph", "input", "path", "paths", "models", "graphs",
    "model_dir", "base", "compare",
})  # fmt: skip
"""Parameters that name a model to read, or several."""
WRITTEN = {
    "out_graph": ".pb", "output_graph": ".pb", "target": ".pb", "out": ".tflite", "dot_output": ".dot",
    "view output": ".html", "optimize_for_inference output": ".pb",
}  # fmt: skip
"""Parameters that name the file to write, some of one command, and the ending that says its form."""
STDIN, STDOUT = ("-", "/dev/stdin"), ("-", "/dev/stdout")
KEPT = "pocketgraph.stdin"


def through_pipes(command: click.Command) -> None:
    """Lets a command read its model from a pipe and write it to one.

    A model is looked at by content and mapped, which a pipe does not allow: it is kept in a temporary file while the
    command runs. What is written goes out when the command has ended, and what it prints goes to stderr.
    """
    for parameter in command.params:
        name = parameter.name or ""
        if name in READ and not parameter.callback:
            parameter.callback = _reading
        elif parameter.nargs == 1 and not parameter.callback:
            ending = WRITTEN.get(name) or WRITTEN.get(f"{command.name} {name}")
            if ending:
                parameter.callback = _writing(ending)


def is_piped() -> bool:
    """Whether the command that runs reads its model from standard input."""
    context = click.get_current_context(silent=True)
    return context is not None and KEPT in context.meta


def _reading(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_reading(context, parameter, one) for one in value)
    if value not in STDIN:
        return value
    kept = context.meta.get(KEPT)
    if kept is not None:
        raise UsageError("standard input is one model, and two are asked of it")
    folder = _folder(context)
    path = context.meta[KEPT] = os.path.join(folder, "stdin")
    CALLED[path] = "standard input"
    try:
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
    except OSError as error:
        what = f"standard input cannot be kept: {error.strerror or error}"
        raise PocketgraphError(what, where=folder, hint="set TMPDIR to a folder with room for the model") from None
    if not os.path.getsize(path):
        raise UsageError("nothing came in on standard input", hint="pocketgraph COMMAND - < model.pb")
    return path


def _writing(ending: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def written(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if value not in STDOUT:
            return value
        path = os.path.join(_folder(context), f"stdout{ending}")
        CALLED[path] = "standard output"
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
    return context.with_resource(temporary_folder())
