"""``pocketgraph seal``: an encrypted copy of a model file."""

from __future__ import annotations

import os

import click

from pocketgraph.cli.shared.keys import chosen, key_options
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import PocketgraphError, UsageError


@click.command("seal")
@click.argument("source", metavar="IN", required=False)
@click.argument("target", metavar="OUT", required=False)
@key_options
@click.option("--new_key", help="Write a new random key to this file, and seal with it if IN is given.")
def command(
    source: str | None, target: str | None, key_file: str | None, key_env: str | None, new_key: str | None
) -> None:
    """Encrypt the model file IN as OUT (AES-256-GCM), to be opened with the same key only.

    docs/protected_files.md says what this prevents and what it does not.

    \b
      pocketgraph seal small.pb small.sealed --new-key=model.key
      pocketgraph label_image --graph=small.sealed --key-file=model.key photo.jpg
    """
    from pocketgraph.formats import sealed

    if new_key:
        if key_file or key_env:
            raise UsageError("--new-key makes a key, so that no other is taken")
        if (source is None) != (target is None):
            raise UsageError("say where the sealed file goes", hint="give its path behind that of the model")
        _write_key(new_key, sealed.new_key())
        key_file = new_key
    elif source is None or target is None:
        raise UsageError("say what to seal and where to", hint="give both paths, and the key's with --key-file")
    if source is not None and target is not None:
        try:
            sealed.seal(source, target, chosen(key_file, key_env))
        except BaseException:
            if new_key:
                os.unlink(new_key)  # nothing is sealed with it, and the next call would meet it
            raise
        echo(f"{target}: sealed, {os.path.getsize(target):,} bytes")
    if new_key:
        echo(f"{new_key}: a new key; without it nothing that is sealed with it can be opened")


def _write_key(path: str, key: str) -> None:
    """A file that only its owner may read, and never in place of another."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise UsageError("there is a file here already, and a key is never overwritten", where=path) from None
    except OSError as error:
        raise PocketgraphError(f"the key cannot be written: {error.strerror}", where=path) from None
    with os.fdopen(handle, "w") as file:
        file.write(key + "\n")
