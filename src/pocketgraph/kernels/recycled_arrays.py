"""Large results whose memory is used again once nobody has them any more.

The system gives large arrays out page by page and takes them back so, which takes longer than filling them. What was
handed out stays here as well; where nobody else knows it any more, the next result of that name goes there. A session
without the pass ``recycled_arrays`` has new memory for each.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Hashable
from typing import Any

import numpy as np

from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.registry import Context

PASS = "recycled_arrays"
LEAST, MOST = 1 << 18, 1 << 27  # bytes of an array that is kept; the allocator keeps smaller ones itself
KEPT_HEAP = 31 << 20  # bytes; glibc takes no threshold above 32 MB from what is freed
_STATE = "recycled arrays"
ALIGNMENT = 64
"""Bytes, of which the place of an aligned array is a multiple: what LiteRT takes without a copy."""


class RecycledArrays:
    """Arrays of one owner, by names of its own.

    Attributes:
        is_on: whether memory is used again; else every array is a new one.
    """

    def __init__(self, *, is_on: bool = True) -> None:
        self.is_on = is_on
        self._kept: dict[Hashable, Array] = {}

    def take(
        self, name: Hashable, shape: tuple[int, ...], dtype: Any, least: int = LEAST, *, is_aligned: bool = False
    ) -> Array:
        """An array with any content, which is the caller's to hand out.

        Args:
            name: tells arrays apart that are in use together.
            shape: its sizes.
            dtype: its NumPy type.
            least: bytes, from which it is kept.
            is_aligned: whether it begins at a multiple of ``ALIGNMENT`` bytes.
        """
        found, counts = _taken_out(self._kept, name)
        if found is None or counts != _ONE_OWNER[is_aligned] or not _fits(found, shape, dtype):
            found = aligned(shape, dtype) if is_aligned else np.empty(shape, dtype)
        if self.is_on and least <= found.nbytes <= MOST:
            self._kept[name] = found
        return found

    def copied(self, name: Hashable, source: Array) -> Array:
        """A copy of an array in such memory; small ones are copied plainly."""
        if source.nbytes < LEAST or not self.is_on:
            return np.array(source)
        made: Array = self.take(name, source.shape, source.dtype, is_aligned=True)  # so that parts take it in place
        made[...] = source
        return made


def recycled(
    context: Context,
    shape: tuple[int, ...],
    dtype: Any,
    *,
    part: Hashable = None,
    least: int = LEAST,
    is_aligned: bool = False,
) -> Array:
    """An array with any content for a large result of a kernel, or a part of it, which lives on in the session (see
    ``take``)."""
    arrays: RecycledArrays = context.state.setdefault(_STATE, RecycledArrays())
    name = context.instance if part is None else (context.instance, part)
    return arrays.take(name, shape, dtype, least, is_aligned=is_aligned)


def switch_off(state: dict[str, Any]) -> None:
    """Has kernels of a session make a new array for each result; ``state`` lives as long as the session."""
    state[_STATE] = RecycledArrays(is_on=False)


def keep_heap() -> None:
    """Has the C library keep what a step frees for the next one, up to 62 MB, for the rest of the process.

    glibc gives the end of the heap back to the system where more than twice the largest block is free that was ever
    freed, so a block that nobody touches is made and freed. Other C libraries, and a glibc whose thresholds
    ``MALLOC_TRIM_THRESHOLD_`` and the like set, do as before.
    """
    with contextlib.suppress(MemoryError):
        np.empty(KEPT_HEAP, np.uint8)


def aligned(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array with any content that begins at a multiple of ``ALIGNMENT`` bytes; another one owns its memory."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    owner = np.empty(size + ALIGNMENT, np.uint8)
    start = -int(owner.__array_interface__["data"][0]) % ALIGNMENT
    made: Array = owner[start : start + size].view(kind).reshape(shape)
    return made


def _taken_out(kept: dict[Hashable, Array], name: Hashable) -> tuple[Array | None, tuple[int, int]]:
    """The array of a name, which the table does not have any more, so that no other thread finds it; and how many
    references Python counts of it, and of whose memory it is."""
    found = kept.pop(name, None)
    owner = None if found is None else found.base
    return found, (sys.getrefcount(found), 0 if owner is None else sys.getrefcount(owner))


def _fits(found: Array, shape: tuple[int, ...], dtype: Any) -> bool:
    """Whether an array is as it was made: who had it may have made it another one, or one that cannot be written."""
    flags = found.flags
    return found.shape == shape and found.dtype == dtype and flags.writeable and flags.c_contiguous


_ONE_OWNER = _taken_out({0: np.empty(0)}, 0)[1], _taken_out({0: aligned((0,), np.uint8)}, 0)[1]
"""What Python counts where only the table knew an array, plain or aligned; a view or a buffer of it counts as one
more."""
