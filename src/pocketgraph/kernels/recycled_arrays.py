"""Large results whose memory is used again once nobody has them any more.

The system gives large arrays out page by page and takes them back so, which takes longer than filling them. What was
handed out stays here as well; where nobody else knows it any more, the next result of that name goes there.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import Any

import numpy as np

from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.registry import Context

LEAST, MOST = 1 << 18, 1 << 27  # bytes of an array that is kept; the allocator keeps smaller ones itself


class RecycledArrays:
    """Arrays of one owner, by names of its own; not for several threads at once."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Array] = {}

    def take(self, name: Hashable, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array with any content, which is the caller's to hand out.

        Args:
            name: tells arrays apart that are in use together.
            shape: its sizes.
            dtype: its NumPy type.
        """
        kept = self._kept
        if name in kept and _references(kept, name) == _ONE_OWNER:
            found = kept[name]
            if found.shape == shape and found.dtype == dtype:
                return found
        made = np.empty(shape, dtype)
        if LEAST <= made.nbytes <= MOST:
            kept[name] = made
        else:
            kept.pop(name, None)
        return made

    def copied(self, name: Hashable, source: Array) -> Array:
        """A copy of an array in such memory; small ones are copied plainly."""
        if source.nbytes < LEAST:
            return np.array(source)
        made: Array = self.take(name, source.shape, source.dtype)
        made[...] = source
        return made


def recycled(context: Context, shape: tuple[int, ...], dtype: Any) -> Array:
    """An array with any content for a large result of a kernel, which lives on in the session (see ``take``)."""
    arrays: RecycledArrays = context.state.setdefault("recycled arrays", RecycledArrays())
    return arrays.take(context.instance, shape, dtype)


def _references(kept: dict[Hashable, Array], name: Hashable) -> int:
    return sys.getrefcount(kept[name])


_ONE_OWNER = _references({0: np.empty(0)}, 0)
"""What Python counts where only the table knows an array; a view of it, or a buffer, counts as one more."""
