"""Whether anybody has read the holes of a file: the system knows which of a file's pages are in memory."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
from typing import Any

import numpy as np

from pocketgraph.part_files import part_name

PAGE = 1 << 16
"""Bytes: what pages of memory have at most."""


class WatchedHoles:
    """The holes of a file, watched from now on.

    The file's last ``PAGE`` bytes are a witness, which is read here: a system that does not hold it in memory
    afterwards (some keep files in memory at all times, or let all go) would not tell of holes that were read either.

    Args:
        path: of the file, at least ``PAGE`` bytes.
        start: where the holes begin, a multiple of ``PAGE``.

    Raises:
        OSError: the file cannot be read.
    """

    def __init__(self, path: str, start: int) -> None:
        self._path, self._start = path, start
        with open(path, "rb") as file:
            self._status = os.fstat(file.fileno())
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._content.madvise(mmap.MADV_RANDOM)  # nothing beside the witness is read ahead
        self.read_witness()

    def read_witness(self) -> None:
        """Reads the witness once more: what is read from now on is not let go before it."""
        self._content[-1]

    def are_read(self) -> bool:
        """Whether a page of the holes is in memory.

        Raises:
            OSError: the system does not tell, or another file has taken the place of this one.
        """
        with open(self._path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if not os.path.samestat(os.fstat(file.fileno()), self._status):
                raise OSError(f"{self._path} was written anew meanwhile")
            pages = _resident(content)  # as a mapping through which nobody has read sees it
        if not pages[-1]:
            raise OSError(f"the system does not tell what of {self._path} is in memory")
        return bool(pages[self._start // mmap.PAGESIZE : -(PAGE // mmap.PAGESIZE)].any())


def tells(folder: str) -> bool:
    """Whether the system tells when holes of files of this folder are read, by trying it with a small one.

    In memory a hole that is read takes room, and the process ends where there is none: there must be room for it.
    """
    path = part_name(os.path.join(folder, "holes"))
    try:
        with open(path, "xb") as file:
            file.truncate(2 * PAGE)
        watched = WatchedHoles(path, 0)
        if watched.are_read():
            return False
        with open(path, "rb") as holes, mmap.mmap(holes.fileno(), 0, access=mmap.ACCESS_READ) as content:
            content[0]
        return watched.are_read()
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _resident(content: mmap.mmap) -> Any:
    """Whether each page of a mapped file is in memory.

    Raises:
        OSError: the system does not tell.
    """
    pages = np.zeros(-(-len(content) // mmap.PAGESIZE), np.uint8)
    ask = getattr(ctypes.CDLL(None, use_errno=True), "mincore", None)
    if ask is None:
        raise OSError("the system does not tell what of a file is in memory")
    ask.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
    start = np.frombuffer(content, np.uint8).__array_interface__["data"][0]
    if ask(start, len(content), pages.ctypes.data) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return pages & 1
