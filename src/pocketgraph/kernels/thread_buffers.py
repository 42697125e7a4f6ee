"""Work arrays that a thread keeps from one call of a kernel to the next.

Arrays of more than some 100 kB come from the system each time and are given back to it when they go, page by page.
For a kernel that is called a hundred times a second that takes longer than its arithmetic.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from pocketgraph.kernels.arrays import Array

LARGEST = 1 << 20  # bytes of a work array that is kept; larger ones live for one call

_own = threading.local()


def scratch(name: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """An array with any content, for use until the same thread asks for the same name again; not to be handed out.

    Args:
        name: tells the work arrays of a thread apart.
        shape: its sizes.
        dtype: its NumPy type, always the same for one name.
    """
    size = 1
    for count in shape:
        size *= count
    kept: dict[str, Array] = _own.__dict__
    found = kept.get(name)
    if found is None or found.size < size:
        found = np.empty(size, dtype)
        if found.nbytes <= LARGEST:
            kept[name] = found
    return found[:size].reshape(shape)
