"""``pocketgraph unseal``: the decrypted copy of a sealed file."""

from __future__ import annotations

import os

import click

from pocketgraph.cli.shared.keys import chosen, key_options
from pocketgraph.cli.shared.output import echo


@click.command("unseal")
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@key_options
def command(source: str, target: str, key_file: str | None, key_env: str | None) -> None:
    """Decrypt the sealed file IN as OUT.

    A program needs no such copy: pocketgraph.load(path, key=…) decrypts in memory only.

    \b
      pocketgraph unseal small.sealed small.pb --key-file=model.key
    """
    from pocketgraph.formats import sealed

    sealed.unseal(source, target, chosen(key_file, key_env))
    echo(f"{target}: unsealed, {os.path.getsize(target):,} bytes")
