"""Sizes that files of samples agree on, for models that leave theirs open: pixels of pictures, lengths of sound."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from pocketgraph.datasets import file_lists, image_loading
from pocketgraph.datasets.named_arrays import IN_MEMORY, SampleSource, are_arrays
from pocketgraph.datasets.recordings import sample_count
from pocketgraph.errors import PocketgraphError

MOST_PIXELS = 1 << 20  # of pictures that are fed in their own size: photos of cameras are larger than networks take


def files_of(source: SampleSource) -> Sequence[str]:
    """The pictures or recordings that samples are read from; none where they come from elsewhere.

    Raises:
        PocketgraphError: a folder or a list has none.
    """
    name = os.fspath(source) if isinstance(source, (str, os.PathLike)) else IN_MEMORY
    if are_arrays(source) or name == IN_MEMORY:
        return []
    if os.path.isdir(name):
        return file_lists.of_folder(name, without_strays=True)[0]
    if file_lists.is_picture(name) or file_lists.is_recording(name):
        return [name]
    return file_lists.of_list(name)[0] if name.lower().endswith(".txt") else []


def are_pictures(source: SampleSource) -> bool:
    """Whether samples are files of pictures, in a folder or a list."""
    try:
        files = files_of(source)
    except PocketgraphError:  # a folder of texts
        return False
    return bool(files) and file_lists.is_picture(files[0])


def common_side(files: Sequence[str]) -> tuple[int, int] | None:
    """Height and width of pictures, in pixels, where all have the same and it is not too much for a network.

    Only the files' headers are read; those that are no pictures do not count.
    """
    found: set[tuple[int, int]] = set()
    for path in files:
        size = image_loading.size_of(path)
        found |= {size} if size is not None else set()
        if len(found) > 1:
            return None
    return next((size for size in found if math.prod(size) <= MOST_PIXELS), None)


def usual_length(files: Sequence[str], rate: int) -> int | None:
    """The samples, ``rate`` a second, that half of recordings have at most; None where no header tells."""
    found = sorted(count for path in files if (count := sample_count(path, rate)))
    return found[len(found) // 2] if found else None
