"""The constants of a library in one piece of memory, which is a C array or a file that is mapped."""

from __future__ import annotations

import hashlib

import numpy as np

from pocketgraph.exporting.arena import aligned
from pocketgraph.exporting.model import Array

MAGIC = b"PGCW"
HEADER = 64  # bytes: the magic, the digest of what follows, zeros
DIGEST = 12  # bytes
SPARE = 64  # bytes at the end: kernels may read whole vectors past a row


class Weights:
    """Collects constants; equal ones are held once."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = HEADER
        self._places: dict[tuple[bytes, int], int] = {}

    def add(self, array: Array, alignment: int = 16) -> int:
        """Where the array lies, from the beginning."""
        content = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        key = hashlib.sha256(content).digest(), alignment
        if key not in self._places:
            start = aligned(self._size, alignment)
            self._pieces += [bytes(start - self._size), content]
            self._size = start + len(content)
            self._places[key] = start
        return self._places[key]

    def content(self) -> bytes:
        """All bytes, little-endian, a multiple of eight of them."""
        body = b"".join(self._pieces)
        body += bytes(aligned(HEADER + len(body) + SPARE, 8) - HEADER - len(body))
        head = MAGIC + hashlib.sha256(body).digest()[:DIGEST]
        return head + bytes(HEADER - len(head)) + body
