"""Writes down a compiled part that was found wrong, for a report: its graph and what was fed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph.tensor import Array
from pocketgraph.litert import cache
from pocketgraph.litert.cache_integrity import created
from pocketgraph.litert.code_version import short_digest
from pocketgraph.part_files import written_whole
from pocketgraph.runtime.certificates.part_reference import PartReference

FOLDER = "reproductions"  # in the cache directory
MOST = 16  # that are kept; the oldest go
LARGEST = 64 << 20  # bytes of graph and feeds; what is larger is not written


def write_reproduction(reference: PartReference, feeds: Sequence[Array], cache_dir: str | None) -> str:
    """Writes ``NAME.pb`` and ``NAME.npz`` (feeds by placeholder) into the cache directory.

    Args:
        reference: the part.
        feeds: its inputs.
        cache_dir: as for Session.

    Returns:
        The path without its ending; "" where nothing was written: there is no cache directory, the disk is full, the
        graph is sealed, or it is too large.
    """
    folder = cache.directory(cache_dir)
    if folder is None or reference.graph.secret:
        return ""
    from pocketgraph.formats import to_bytes

    try:
        graph, named = reference.as_graph(feeds)
        data = to_bytes(graph)
    except PocketgraphError:
        return ""
    if len(data) + sum(array.nbytes for array in feeds) > LARGEST:
        return ""
    place = os.path.join(folder, FOLDER)
    stem = os.path.join(place, f"part-{short_digest(data, 8)}")
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        with written_whole(f"{stem}.npz") as part, created(part) as file:
            np.savez(file, **named)  # type: ignore[arg-type]
        with written_whole(f"{stem}.pb") as part, created(part) as file:
            file.write(data)
        _trim(place)
    except OSError:
        return ""
    return stem


def _trim(place: str) -> None:
    with os.scandir(place) as found:
        stems = sorted((entry.stat().st_mtime, entry.path[:-3]) for entry in found if entry.name.endswith(".pb"))
    for _, stem in stems[:-MOST]:
        for ending in (".pb", ".npz"):
            with contextlib.suppress(OSError):
                os.unlink(stem + ending)
