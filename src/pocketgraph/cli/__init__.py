"""What a person types: one small file a command."""

import os

import click

from pocketgraph import errors

MODELS = ("model", "in_graph", "graph", "input_graph", "input_meta_graph", "a", "source", "input", "path", "models")
"""Parameters that name the model that a command works on."""


def _flag_of(name: str, in_python: str) -> str:
    """The flag of the command that runs; "" where none does."""
    context = click.get_current_context(silent=True)
    if context is None:
        return ""
    flags = {flag for option in context.command.params for flag in option.opts}
    if f"--{name}" not in flags and in_python and f"--{in_python}" in flags:
        return f"--{in_python}"
    return f"--{name}"


def _model_path() -> str:
    """The path of the one model that the running command was given; "" where there is none, or there are several."""
    context = click.get_current_context(silent=True)
    given = context.params if context is not None else {}
    if given.get("input_checkpoint") or given.get("b"):
        return ""  # a graph without its weights; two models
    value = next(filter(None, map(given.get, (*MODELS, "input_saved_model_dir"))), "")
    path = value[0] if isinstance(value, tuple) and len(value) == 1 else value
    return path if isinstance(path, str) and os.path.exists(path) else ""


errors.spell_options(_flag_of, _model_path)
