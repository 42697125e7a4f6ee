"""CRC-32C as checkpoint files hold it: "masked", so that a checksum over checksums stays strong."""

from __future__ import annotations

from typing import Any

import numpy as np

_MASK_DELTA = 0xA282EAD8  # added after the rotation by 15 bits; leveldb's table format, doc/table_format.md


def masked(checksum: int) -> int:
    """The form in which files store a checksum."""
    return (((checksum >> 15) | (checksum << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def checksum(data: Any, start: int = 0) -> int:
    """The unmasked CRC-32C of a bytes-like object, continued from ``start``; nothing is copied."""
    import google_crc32c

    if not len(data):
        return start
    # The library takes read-only buffers; an array over the same memory is one, a memoryview is not always.
    view = np.frombuffer(data, np.uint8)
    view.flags.writeable = False
    return int(google_crc32c.extend(start, view))
