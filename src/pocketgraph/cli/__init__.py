"""What a person types: one small file a command."""

import click

from pocketgraph import errors


def _flag_of(name: str, in_python: str) -> str:
    """The flag of the command that runs; "" where none does."""
    context = click.get_current_context(silent=True)
    if context is None:
        return ""
    flags = {flag for option in context.command.params for flag in option.opts}
    if f"--{name}" not in flags and in_python and f"--{in_python}" in flags:
        return f"--{in_python}"
    return f"--{name}"


errors.spell_options(_flag_of)
