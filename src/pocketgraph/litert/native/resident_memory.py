"""How much of a file the system holds in memory, which says what of it has been read."""

from __future__ import annotations

import ctypes
import mmap
import os

import numpy as np

PAGE = 1 << 16
"""Bytes: what pages of memory have at most."""


def resident_bytes(path: str, start: int) -> int:
    """The bytes of a file from ``start`` on, a multiple of the page size, that are in memory, in whole pages.

    Raises:
        OSError: the file cannot be read, or the system does not tell.
    """
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as content:
        size = len(content) - start
        pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        first = ctypes.c_char.from_buffer(content, start)
        try:
            ask = ctypes.CDLL(None, use_errno=True).mincore
            ask.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
            if ask(ctypes.addressof(first), size, ctypes.addressof(pages)) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
        except AttributeError as error:
            raise OSError(f"the system does not tell what of {path} is in memory") from error
        finally:
            del first
    return int(np.count_nonzero(np.frombuffer(bytes(pages), np.uint8) & 1)) * mmap.PAGESIZE
