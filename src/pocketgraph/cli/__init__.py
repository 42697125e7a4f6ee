"""What a person types: one small file a command."""

import click

from pocketgraph import errors

errors.spell_options(lambda name: f"--{name}" if click.get_current_context(silent=True) else "")
