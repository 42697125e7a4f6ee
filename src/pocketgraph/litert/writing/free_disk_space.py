"""Whether a file may be written at all: XNNPACK ends the process where its file of packed weights does not fit."""

from __future__ import annotations

import contextlib
import errno
import os

SPARE = 16 << 20  # bytes beside twice the weights: packing pads channels to whole vectors


def room_for(path: str, size: int, spare: int = SPARE) -> str:
    """Why a file of ``2 * size + spare`` bytes cannot be written at ``path``; empty when it can.

    Looked at are the limit on the size of files, the free space, and, where the file system can reserve space at once,
    whether it does so (quotas show there only).
    """
    needed = 2 * size + spare
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        if 0 <= limit < needed:
            return f"files are limited to {limit / 1e6:.0f} MB"
    try:
        found = os.statvfs(os.path.dirname(path))
    except (OSError, AttributeError) as error:
        return str(error) if isinstance(error, OSError) else ""
    free = found.f_bavail * found.f_frsize
    if free < needed:
        return f"{free / 1e6:.0f} MB are free on the disk, and {needed / 1e6:.0f} may be needed"
    return _reserved(path, needed)


def _reserved(path: str, size: int) -> str:
    """Reserves space and gives it back; why that failed, or empty."""
    try:
        import ctypes

        reserve = ctypes.CDLL(None, use_errno=True).fallocate  # unlike posix_fallocate it never writes zeros instead
        reserve.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    except (ImportError, OSError, AttributeError, TypeError):
        return ""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        return str(error)
    try:
        if reserve(handle, 0, 0, size):
            number = ctypes.get_errno()
            if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                return os.strerror(number)
    finally:
        os.close(handle)
        with contextlib.suppress(OSError):
            os.unlink(path)
    return ""
