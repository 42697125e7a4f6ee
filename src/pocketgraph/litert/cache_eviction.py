"""Which parts leave the cache directory when it is full: those that were used longest ago."""

from __future__ import annotations

import contextlib
import os

from pocketgraph.part_files import is_abandoned

LIMIT = 2 << 30  # bytes in the whole directory; the least recently used parts beyond go
MOST_FILES = 8192  # in the whole directory
LEFT_OVER = 3600  # seconds after which a file that nobody finished is removed


def surplus(folder: str, keep: str = "", limit: int | None = None) -> list[str]:
    """The names of parts to remove, the longest unused first, until the rest is within ``limit`` bytes and MOST_FILES
    files; old leftovers of writers are removed at once.

    Args:
        folder: the cache directory.
        keep: a part that stays in any case.
        limit: ``LIMIT`` by default.
    """
    limit = LIMIT if limit is None else limit
    sizes: dict[str, int] = {}
    counts: dict[str, int] = {}
    used: dict[str, float] = {}
    try:
        with os.scandir(folder) as found:
            entries = [(entry.name, entry.stat()) for entry in found if entry.is_file()]
    except OSError:
        return []
    newest = max((status.st_mtime for _, status in entries), default=0.0)
    for name, status in entries:
        if name.endswith(".part") and (newest - status.st_mtime > LEFT_OVER or is_abandoned(name)):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))
        stem = name.partition(".")[0].partition("-")[0]
        sizes[stem] = sizes.get(stem, 0) + min(status.st_size, 512 * getattr(status, "st_blocks", status.st_size))
        counts[stem] = counts.get(stem, 0) + 1
        used[stem] = max(used.get(stem, 0.0), status.st_mtime)
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
