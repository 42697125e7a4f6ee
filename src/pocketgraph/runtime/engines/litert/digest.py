"""Digests of models: by content, remembered by path, size, time and inode, so that 95 MB are hashed once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pocketgraph.runtime.engines.litert import cache

if TYPE_CHECKING:
    from pocketgraph.graph import Graph

_graphs: WeakKeyDictionary[Graph, str] = WeakKeyDictionary()


def file_digest(path: str | os.PathLike[str], cache_dir: cache.Folder | None = None) -> str:
    """The SHA-256 of a file, taken from the cache directory when the file has not changed since.

    Raises:
        OSError: it cannot be read.
    """
    full = os.path.realpath(path)
    with open(full, "rb") as file:
        status = os.fstat(file.fileno())
        state = [full, status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev]
        folder = cache.directory(cache_dir)
        note = None
        if folder is not None:
            note = os.path.join(folder, f"digest{hashlib.blake2b(full.encode(), digest_size=12).hexdigest()}.json")
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError), open(note, "rb") as remembered:
                known = json.loads(remembered.read())
                if known["state"] == state and len(known["sha256"]) == 64:
                    return str(known["sha256"])
        found = hashlib.sha256()
        if status.st_size:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                found.update(content)
        digest = found.hexdigest()
    if note is not None:
        with contextlib.suppress(OSError):
            cache.write(note, json.dumps({"state": state, "sha256": digest}))
    return digest


def graph_digest(graph: Graph, cache_dir: cache.Folder | None = None) -> str:
    """A digest of everything in a graph that decides what it computes; equal graphs have equal digests.

    Nodes that lie unchanged in a mapped file count by the file's digest and their place, without reading them.
    """
    from pocketgraph.runtime.engines.litert.graph_content import content_digest

    known = _graphs.get(graph)
    if known is None:
        known = _graphs[graph] = content_digest(graph, cache_dir)
    return known
