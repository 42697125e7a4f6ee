"""Where an export is made, and how it gets to its place: whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator

from pocketgraph.errors import PocketgraphError, UsageError, new_folder, option
from pocketgraph.formats.files import check_not_model, check_place, reason, resolved, takes_bytes
from pocketgraph.part_files import part_name, remove_abandoned


def check_target(path: str, *, is_folder: bool, force: bool, source: str | None = None) -> None:
    """Refuses a place that cannot be written to; long work does so before it begins.

    Raises:
        UsageError: it is the model itself, or a folder with something in it and not ``force``.
        PocketgraphError: its directory does not exist, or it is a directory where a file is to be.
    """
    check_not_model(path, source)
    if not is_folder:
        check_place(path)
        return
    if os.path.lexists(path) and not os.path.isdir(path):
        raise UsageError("this is a file, not a place for a folder", where=path)
    if os.path.isdir(path) and os.listdir(path) and not force:
        raise UsageError("this directory is not empty", where=path, hint=f"give another one, or {option('force')}")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise PocketgraphError("the directory to write to does not exist", where=path, hint=new_folder(folder))


@contextlib.contextmanager
def workshop(path: str) -> Iterator[str]:
    """A folder beside ``path`` to make things in, with the path in it where the exporter writes; gone at the end.

    Beside a device or a pipe nothing is made: the folder is among temporary files. What killed exporters to the same
    path left behind goes as well.

    Raises:
        PocketgraphError: it cannot be made, or the disk is full.
    """
    target = resolved(path)
    try:
        if takes_bytes(target):
            target = os.path.join(tempfile.gettempdir(), os.path.basename(target))
        remove_abandoned(target)
        folder = part_name(target)
        os.mkdir(folder, 0o700)
    except OSError as error:
        raise PocketgraphError(f"the file cannot be written: {reason(error)}", where=path) from None
    try:
        yield os.path.join(folder, os.path.basename(target))
    except OSError as error:
        raise PocketgraphError(f"the file cannot be written: {reason(error)}", where=path) from error
    except PocketgraphError as error:
        if type(error) is not PocketgraphError or not error.where.startswith(folder):
            raise
        inside = os.path.relpath(error.where, folder)  # begins with the name of what is made
        shown = os.path.join(os.path.dirname(path), inside)
        raise PocketgraphError(error.what, where=shown, hint=error.hint) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def put_in_place(made: str, path: str) -> list[str]:
    """Moves what was made to its place: the file and what lies beside it, or the folder.

    Files that are there are replaced, and the weights beside an ONNX file go with it; in a folder, others stay.

    Args:
        made: the path in the workshop that the exporter wrote to.
        path: where it goes.

    Returns:
        The files, the main one first; beside a symbolic link's target lies what goes with it.
    """
    target = resolved(path)
    folder, main = os.path.split(made)
    beside = sorted(name for name in os.listdir(folder) if name != main)
    written, left = [path], _weights_beside(target)
    for name in beside if os.path.isdir(made) else (*beside, main):
        with open(os.path.join(folder, name), "rb") as file:
            os.fsync(file.fileno())
        place = os.path.join(os.path.dirname(target), name)
        if takes_bytes(place):
            with open(os.path.join(folder, name), "rb") as file, open(place, "wb") as taker:
                shutil.copyfileobj(file, taker)
        else:
            os.replace(os.path.join(folder, name), place)
    if left and os.path.basename(left) not in beside:
        os.remove(left)
    if os.path.isdir(made):
        inside = sorted(
            os.path.relpath(os.path.join(at, name), made) for at, _, names in os.walk(made) for name in names
        )
        if not os.path.exists(target):
            os.rename(made, target)
        for name in inside if os.path.exists(made) else ():
            os.makedirs(os.path.dirname(os.path.join(target, name)), exist_ok=True)
            os.replace(os.path.join(made, name), os.path.join(target, name))
        written = [os.path.join(path, name) for name in inside]
    place = os.path.dirname(target if os.path.islink(path) else path)
    return [*written, *(os.path.join(place, name) for name in beside)]


def _weights_beside(target: str) -> str:
    """The file of weights that an earlier ONNX file at this place reads, or "" where there is none of its name."""
    weights = f"{target}.data"
    if not (target.endswith(".onnx") and os.path.isfile(weights) and os.path.isfile(target)):
        return ""
    with open(target, "rb") as file:
        return weights if os.path.basename(weights).encode() in file.read() else ""
