"""Names of files and folders that are being written, and which nobody goes on with: their writer was killed."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterator
from functools import lru_cache

ENDING = ".part"
LONGEST_NAME = 255  # bytes of a file's name, on most file systems
ROOM = 32  # bytes of them for what tells whose part it is

_made: deque[str] = deque(maxlen=256)  # the last ones; few are written at once


def part_name(target: str) -> str:
    """A name beside ``target`` that nobody else uses; it tells the process and the machine."""
    mark = f".{os.getpid()}.{_machine()}{os.urandom(4).hex()}{ENDING}"
    part = f"{_start_of_parts(target)}{mark}"
    _made.append(os.path.abspath(part))
    return part


@contextlib.contextmanager
def written_whole(target: str) -> Iterator[str]:
    """A new path beside ``target`` to write to; renamed to it at the end, removed on failure."""
    part = part_name(target)
    try:
        yield part
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    """A new folder among temporary files, gone at the end; those of killed processes go first.

    Raises:
        OSError: it cannot be made.
    """
    import shutil
    import tempfile

    target = os.path.join(tempfile.gettempdir(), "pocketgraph")
    remove_abandoned(target)
    folder = part_name(target)
    os.mkdir(folder, 0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def is_abandoned(name: str) -> bool:
    """Whether ``part_name`` made this name in a process of this machine that is no more."""
    rest, _, mark = name.removesuffix(ENDING).rpartition(".")
    _, _, process = rest.rpartition(".")
    if not name.endswith(ENDING) or not process.isdecimal() or len(process) > 9 or os.name != "posix":
        return False
    if len(mark) != 12 or not mark.startswith(_machine()):
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


def remove_abandoned(target: str) -> None:
    """Removes the files and folders that killed writers of ``target`` left beside it."""
    folder, start = os.path.split(_start_of_parts(target))
    with contextlib.suppress(OSError):
        for name in os.listdir(folder or "."):
            if name.startswith(f"{start}.") and name.endswith(ENDING) and is_abandoned(name):
                _remove(os.path.join(folder, name))


def remove_own() -> None:
    """Removes what this process has not ended writing: it is about to end at once."""
    for part in [*_made]:
        _remove(part)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        if os.path.isdir(path) and not os.path.islink(path):
            import shutil

            shutil.rmtree(path)
        else:
            os.unlink(path)


def _start_of_parts(target: str) -> str:
    """What names beside ``target`` begin with: the end of a very long one makes room, and a digest of it."""
    folder, name = os.path.split(target)
    raw = os.fsencode(name)
    if len(raw) <= LONGEST_NAME - ROOM:
        return target
    import zlib

    digest = f"{zlib.crc32(raw):08x}"
    return os.path.join(folder, os.fsdecode(raw[: LONGEST_NAME - ROOM - len(digest)]) + digest)


@lru_cache(maxsize=1)
def _machine() -> str:
    """Four digits for this machine: directories may be shared with others, whose processes are not known here."""
    import zlib

    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    return f"{zlib.crc32(name.encode()) & 0xFFFF:04x}"
