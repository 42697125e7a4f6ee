"""Names of files' contents, remembered by path, size, times and inode, so that 95 MB are hashed once, or never.

What is kept of a file needs a name that no other content has. A digest is one, and takes as long as packing the
weights. The file's path, size, times and inode are one as well, as long as it stays as it is. So a large file is hashed
only where one of the same size is known, which it might be a copy of, or when the process has nothing else to do.

File systems that tell whole seconds give two contents of one second the same times, and images that are made to be
reproducible give them to all their files. Files with such times are hashed before they have a name, which is kept once
some seconds have passed, and what lies at some places of them counts as well.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

from pocketgraph.formats.files import version_of
from pocketgraph.graph.record import Record
from pocketgraph.litert import cache
from pocketgraph.litert.cache_integrity import UntrustedError, sealed_text, unsealed
from pocketgraph.litert.code_version import short_digest

TICK = 20_000_000  # nanoseconds: twice what clocks of file systems take between two times
SECOND = 1_000_000_000  # nanoseconds
COARSE = 2 * SECOND  # what the coarsest clocks of file systems take between two times
PROBES, PROBE = 64, 256  # places of a file with whole seconds that are looked at, and bytes of each
LATER_FROM = 4 << 20  # bytes of a file, from which hashing it at once takes longer than some milliseconds
CHUNK = 4 << 20  # bytes hashed before a look at the time; after each the interpreter's lock is waited for
PREFIX, HASH, NAME, STATE = "digest", "sha256", "name", "state"


class _DigestedFile(Record):
    """A file as it is now.

    Attributes:
        path: without links.
        state: the path and what changes with the content.
        note: where the cache directory has what is known of it; None without a directory.
    """

    path: str
    state: list[Any]
    note: str | None

    @property
    def size(self) -> int:
        """In bytes."""
        return int(self.state[1])

    @property
    def is_coarse(self) -> bool:
        """Whether its time of change is a whole second."""
        return int(self.state[3]) % SECOND == 0


def content_name(path: str | os.PathLike[str], cache_dir: cache.Folder | None = None) -> str:
    """A name that a file of another content does not have; equal files have mostly the same.

    It is the SHA-256, but for large files of which the cache directory knows none of the same size: theirs is a digest
    of path, size, times and inode, and stays the content's name when it is hashed later.

    Args:
        path: the file.
        cache_dir: see cache.directory.

    Raises:
        OSError: it cannot be read.
    """
    file = _file(path, cache_dir)
    known = _known(file)
    if known is not None:
        return str(known[NAME])
    if file.size >= LATER_FROM and not file.is_coarse and not _alike(file):
        _settle(file)
        name = short_digest(repr(file.state).encode(), 32)
        _remember(file, name, None)
        return name
    return str(_hashed(file)[NAME])


def file_digest(path: str | os.PathLike[str], cache_dir: cache.Folder | None = None) -> str:
    """The SHA-256 of a file, taken from the cache directory when the file has not changed since.

    Args:
        path: the file.
        cache_dir: see cache.directory.

    Raises:
        OSError: it cannot be read.
        DeadlineError: the run that needs it has taken too long.
    """
    file = _file(path, cache_dir)
    known = _known(file)
    return str((known if known is not None and known[HASH] else _hashed(file))[HASH])


def _hashed(file: _DigestedFile) -> dict[str, Any]:
    """What is known of a file when it has been hashed."""
    known = _known(file)
    _settle(file)
    digest = sha256_of(file.path)
    if _state(file.path) != file.state:  # it was changed meanwhile: nobody knows what was hashed
        return {STATE: file.state, NAME: os.urandom(32).hex(), HASH: digest}
    name = known[NAME] if known is not None else next((each[NAME] for each in _alike(file, digest)), digest)
    return _remember(file, name, digest)


def _alike(file: _DigestedFile, digest: str | None = None) -> list[dict[str, Any]]:
    """What is known of files of the same size, or of the same content where its digest is given."""
    found = []
    folder = os.path.dirname(file.note) if file.note is not None else None
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder) if folder is not None else ():
            if not entry.startswith(PREFIX) or not entry.endswith(_ending(file.size)):
                continue
            known = _read(os.path.join(str(folder), entry))
            if known is None:
                continue
            if digest is not None and not known[HASH]:
                known = _hashed_other(known, str(folder))
            if digest is None or known[HASH] == digest:
                found.append(known)
    return found


def _hashed_other(known: dict[str, Any], folder: str) -> dict[str, Any]:
    """What is known of another file when it has been hashed; as before where it is gone, or is another one by now."""
    with contextlib.suppress(OSError):
        other = _file(str(known[STATE][0]), folder)
        if other.state == known[STATE]:
            digest = sha256_of(other.path)
            if _state(other.path) == other.state:
                return _remember(other, known[NAME], digest)
    return known


def _file(path: str | os.PathLike[str], cache_dir: cache.Folder | None) -> _DigestedFile:
    state = _state(os.path.realpath(path))
    folder = cache.directory(cache_dir)
    if folder is None:
        return _DigestedFile(state[0], state, None)
    note = f"{PREFIX}{short_digest(os.fsencode(state[0]), 12)}{_ending(state[1])}"
    return _DigestedFile(state[0], state, os.path.join(folder, note))


def _state(path: str) -> list[Any]:
    with open(path, "rb", buffering=0) as opened:
        status = os.fstat(opened.fileno())
        found = [path, *version_of(status)]
        if status.st_ctime_ns % SECOND == 0:
            step, read = max(1, status.st_size // PROBES), bytearray()
            for start in range(0, status.st_size, step):
                opened.seek(start)
                read += opened.read(PROBE)
            found.append(short_digest(bytes(read), 12))
    return found


def _ending(size: int) -> str:
    """Of the names of notes on files of this size."""
    return f"-{size}.json"


def _known(file: _DigestedFile) -> dict[str, Any] | None:
    """What is known of a file that has not changed since."""
    known = _read(file.note) if file.note is not None else None
    if known is None or known[STATE] != file.state:
        return None
    with contextlib.suppress(OSError):
        os.utime(str(file.note))  # it goes no sooner than what is kept under its name
    return known


def _read(note: str) -> dict[str, Any] | None:
    """What ``_remember`` wrote; None where it is missing, damaged or somebody else's."""
    with contextlib.suppress(OSError, ValueError, RecursionError, UntrustedError):
        found = unsealed(note)
        if {STATE, NAME, HASH} <= found.keys():
            return found
    return None


def _remember(file: _DigestedFile, name: str, digest: str | None) -> dict[str, Any]:
    """Notes the name of a file's content, and its digest where that is known."""
    known = {STATE: file.state, NAME: name, HASH: digest}
    if file.note is not None and not (file.is_coarse and _age(file) < COARSE):
        with contextlib.suppress(OSError):
            cache.write(file.note, sealed_text(known))
    return known


def sha256_of(path: str) -> str:
    """SHA-256 of a file's content, in hexadecimal digits."""
    from hashlib import sha256  # a process that finds the name does not need it

    from pocketgraph.budgets import check_time

    found = sha256()
    with open(path, "rb", buffering=0) as file:  # not mapped: who cuts the file meanwhile would end this process
        buffer = bytearray(min(CHUNK, max(1, os.fstat(file.fileno()).st_size)))
        with memoryview(buffer) as view:
            while size := file.readinto(buffer):
                found.update(view[:size])
                check_time("while the model file was hashed")
    return found.hexdigest()


def _settle(file: _DigestedFile) -> None:
    """Waits until a file that was changed just now would get another time if it were changed again."""
    import time

    age = _age(file)
    if age < TICK:  # what was changed later than now was so by another machine's clock
        time.sleep(min(TICK, TICK - age) / 1e9)


def _age(file: _DigestedFile) -> int:
    """Nanoseconds since a file was changed."""
    import time

    return time.time_ns() - int(file.state[3])
