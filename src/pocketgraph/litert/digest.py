"""Digests of files, remembered by path, size, times and inode, so that 95 MB are hashed once."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable

from pocketgraph.litert import cache
from pocketgraph.litert.cache_integrity import is_own
from pocketgraph.litert.code_version import short_digest

TICK = 20_000_000  # nanoseconds: twice what clocks of file systems take between two times


def file_digest(
    path: str | os.PathLike[str],
    cache_dir: cache.Folder | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> str:
    """The SHA-256 of a file, taken from the cache directory when the file has not changed since.

    Args:
        path: the file.
        cache_dir: see cache.directory.
        meanwhile: what a file needs that was never seen at this path, while a large one is hashed by another thread.

    Raises:
        OSError: it cannot be read.
    """
    full = os.path.realpath(path)
    with open(full, "rb") as file:
        status = os.fstat(file.fileno())
        state = [full, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev]
        folder = cache.directory(cache_dir)
        note, is_new = None, True
        if folder is not None:
            note = os.path.join(folder, f"digest{short_digest(full.encode(), 12)}.json")
            with (
                contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError),
                open(note, "rb") as remembered,
            ):
                is_new = False
                if not is_own(os.fstat(remembered.fileno())):
                    raise ValueError
                known = json.loads(remembered.read())
                if known["state"] == state and len(known["sha256"]) == 64:
                    return str(known["sha256"])
        import mmap  # neither is needed by a process that finds the digest
        from hashlib import sha256

        if note is not None:
            _settle(status.st_ctime_ns)
        found = sha256()
        if status.st_size:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                if meanwhile is None or not is_new or status.st_size < cache.LARGE:
                    found.update(content)
                else:
                    _beside(lambda: found.update(content), meanwhile)
        digest = found.hexdigest()
    if note is not None:
        with contextlib.suppress(OSError):
            cache.write(note, json.dumps({"state": state, "sha256": digest}))
    return digest


def _beside(task: Callable[[], object], meanwhile: Callable[[], object]) -> None:
    """Does two things at once, the first in another thread; it must not fail."""
    import threading

    thread = threading.Thread(target=task)
    thread.start()
    try:
        meanwhile()
    finally:
        thread.join()


def _settle(changed: int) -> None:
    """Waits until a file that was changed just now would get another time if it were changed again."""
    import time

    since = time.time_ns() - changed
    if 0 <= since < TICK:
        time.sleep((TICK - since) / 1e9)
