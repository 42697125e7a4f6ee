"""Which parts leave the cache directory when it is full: those that were used longest ago."""

from __future__ import annotations

import contextlib
import os
import re
import time

from pocketgraph.part_files import is_abandoned

LIMIT = 2 << 30  # bytes in the whole directory; the least recently used parts beyond go
MOST_FILES = 8192  # in the whole directory
LEFT_OVER = 3600  # seconds after which a file that nobody finished is removed
OWN = re.compile(r"([0-9a-f]{40}|digest[0-9a-f]{24})[.-]")  # how names begin that the cache gave; group 1 is the part


def surplus(folder: str, keep: str = "", limit: int | None = None) -> list[str]:
    """The names of parts to remove, the longest unused first, until the rest is within ``limit`` bytes and MOST_FILES
    files; old leftovers of writers are removed at once. Files of other names are neither counted nor removed: the
    directory may be one that the user keeps other things in. A time in the future, which a wrong clock left, counts as
    the longest ago.

    Args:
        folder: the cache directory.
        keep: a part that stays in any case.
        limit: ``LIMIT`` by default.
    """
    limit = LIMIT if limit is None else limit
    sizes: dict[str, int] = {}
    counts: dict[str, int] = {}
    used: dict[str, float] = {}
    latest = time.time() + LEFT_OVER  # clocks of machines with the same directory differ
    entries = []
    try:
        with os.scandir(folder) as found:
            for entry in found:
                own = OWN.match(entry.name)
                if own and entry.is_file():
                    status = entry.stat()
                    entries.append((own[1], entry, status, status.st_mtime if status.st_mtime <= latest else 0.0))
    except OSError:
        return []
    newest = max((changed for *_, changed in entries), default=0.0)
    for stem, entry, status, changed in entries:
        if entry.name.endswith(".part") and (newest - changed > LEFT_OVER or is_abandoned(entry.name)):
            with contextlib.suppress(OSError):
                os.unlink(entry.path)
        sizes[stem] = sizes.get(stem, 0) + min(status.st_size, 512 * getattr(status, "st_blocks", status.st_size))
        counts[stem] = counts.get(stem, 0) + 1
        used[stem] = max(used.get(stem, 0.0), changed)
    total, files = sum(sizes.values()), sum(counts.values())
    removed: list[str] = []
    for stem in sorted(used, key=lambda stem: used[stem]):
        if total <= limit and files <= MOST_FILES:
            break
        if stem != keep:
            removed.append(stem)
            total -= sizes[stem]
            files -= counts[stem]
    return removed
