"""Whether what lies in the cache is what was written there, by whoever runs this process, to the last bit.

Each file of an entry has its size and the CRC-32C of all of its bytes written down beside it; the small text files hold
a digest of themselves. They are looked at before anything of an entry is used, once in a process. A checksum finds
accidents, not attackers: entries that others own or may write to are not used at all.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

import numpy as np

from pocketgraph.budgets import started
from pocketgraph.graph.record import Record

try:
    from _blake2 import blake2b  # hashlib gives the same, and loads OpenSSL besides: a thirtieth of a warm start
except ImportError:
    from hashlib import blake2b

CHUNK = 1 << 18  # bytes read at a time: what the processor's caches hold
PRIVATE = 0o600  # of files; nobody else writes to them
OTHERS = 0o022  # who may write, but for the owner
DIGEST = 16  # bytes of a text's digest
SEAL = "seal"  # the member of a text that holds it

_known: dict[tuple[str, int | None, int, int, int, int], str] = {}
"""The checksums of files that this process has read, by path, inode, size and the times of their last changes."""


class UntrustedError(Exception):
    """A file that somebody else may have written."""


def checksum(path: str, most: int | None = None) -> str:
    """The size and the CRC-32C of all bytes of a file, or of the first ones; read once in a process as long as the file
    does not change.

    Args:
        path: of the file.
        most: how many bytes are read.

    Raises:
        OSError: it cannot be read.
        UntrustedError: others own it, or may write to it.
    """
    with open(path, "rb", buffering=0, opener=_at_once) as file:
        status = os.fstat(file.fileno())
        if not is_own(status):
            raise UntrustedError(path)
        key = path, most, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        found = _known.get(key)
        if found is None:
            mark = _Mark()
            left = status.st_size if most is None else most
            while part := file.read(CHUNK if most is None else min(CHUNK, left)):
                mark.extend(part)
                left -= len(part)
            found = _known[key] = mark.text
    return found


@contextlib.contextmanager
def read_ahead(paths: Sequence[str]) -> Iterator[None]:
    """Finds the checksums of files in another thread, so that they are known at the end."""

    def read() -> None:
        with contextlib.suppress(OSError, UntrustedError):
            for path in paths:
                checksum(path)

    thread = started(read, "checksums")
    try:
        yield
    finally:
        if thread is not None:  # without one they are found when they are needed
            thread.join()


class _Mark:
    """A checksum that is still growing, and the bytes that were counted."""

    def __init__(self) -> None:
        self._kind, self._more = _sum()
        self._value = self._size = 0

    def extend(self, part: Any) -> None:
        """Goes on with these bytes: ``bytes``, or an array of uint8."""
        self._value = self._more(self._value, part)
        self._size += len(part)

    def followed_by(self, other: _Mark) -> _Mark:
        """The mark of the bytes that were counted here, and those that were there behind them."""
        joined = _Mark()
        joined._value = shifted(self._value, other._size, POLYNOMIALS[self._kind]) ^ other._value
        joined._size = self._size + other._size
        return joined

    @property
    def text(self) -> str:
        """As ``checksum`` gives it."""
        return f"{self._size}:{self._kind}{self._value:08x}"


class Section(Record):
    """A part of a file.

    Attributes:
        start: where it begins.
        pieces: its bytes; made in whatever thread asks for them.
    """

    start: int
    pieces: Iterable[bytes | memoryview]


def write_sections(file: IO[bytes], sections: Sequence[Section]) -> str:
    """Writes one section, or two in a thread each, that are a file together, and gives the checksum of all."""
    if len(sections) == 1:
        return write_marked(file, sections[0].pieces)
    from pocketgraph.litert.two_threads import both

    first, second = sections
    one, other = both(lambda: _written_at(file.fileno(), first), lambda: _written_at(file.fileno(), second))
    return one.followed_by(other).text


def _written_at(file: int, section: Section) -> _Mark:
    mark, place = _Mark(), section.start
    for piece in section.pieces:
        for start in range(0, len(piece), CHUNK):
            part = piece[start : start + CHUNK]
            done = 0
            while done < len(part):
                done += os.pwrite(file, part[done:], place + done)
            place += done
            mark.extend(part if isinstance(part, bytes) else np.frombuffer(part, np.uint8))
    return mark


def write_marked(file: IO[bytes], content: Iterable[bytes | memoryview]) -> str:
    """Writes pieces to a file, and gives the checksum of all."""
    mark = _Mark()
    for piece in content:
        for start in range(0, len(piece), CHUNK):
            part = piece[start : start + CHUNK]
            file.write(part)
            mark.extend(part if isinstance(part, bytes) else np.frombuffer(part, np.uint8))
    return mark.text


POLYNOMIALS = {"c": 0x82F63B78, "z": 0xEDB88320}
"""Of the kinds of checksums, the highest power in the lowest bit."""


def shifted(value: int, size: int, polynomial: int) -> int:
    """What so many bytes behind others make of their CRC, beside what is their own: its product with x to the power of
    eight times the size.

    Args:
        value: the CRC.
        size: how many bytes follow.
        polynomial: of the CRC.
    """
    power = 1 << 23  # x to the eighth
    while size:
        if size & 1:
            value = _product(power, value, polynomial)
        power = _product(power, power, polynomial)
        size >>= 1
    return value


def _product(one: int, other: int, polynomial: int) -> int:
    """Of two polynomials, the remainder by a third one."""
    found = 0
    for place in range(31, -1, -1):
        if one >> place & 1:
            found ^= other
        other = other >> 1 ^ polynomial if other & 1 else other >> 1
    return found


def _sum() -> tuple[str, Callable[[int, Any], int]]:
    """How to continue a checksum, and a letter for it: CRC-32C by the processor's own instruction, or else zlib's."""
    import google_crc32c

    if google_crc32c.implementation == "c":
        extend: Callable[[int, Any], int] = google_crc32c.extend
        return "c", extend
    import zlib

    return "z", lambda mark, part: zlib.crc32(part, mark)


def _at_once(path: str, flags: int) -> int:
    """Opens a file; a pipe that somebody put in its place is not waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def is_own(status: os.stat_result) -> bool:
    """Whether it is a file, belongs to whoever runs this process, and nobody else may write to it."""
    if os.name != "posix":
        return True
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & OTHERS


def may_hold_entries(folder: str) -> bool:
    """Whether nobody else can exchange files of this directory, which is one's own or the system's."""
    if os.name != "posix":
        return True
    status = os.stat(folder)
    is_sticky = bool(status.st_mode & 0o1000)
    return status.st_uid in (os.geteuid(), 0) and (is_sticky or not status.st_mode & 0o002)


@contextlib.contextmanager
def created(path: str) -> Iterator[IO[bytes]]:
    """A new file that nobody else may read or write, to be written to."""
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, PRIVATE)) as file:
        yield file


def sealed_text(about: dict[str, Any], indent: int | None = None) -> str:
    """A JSON object, not an empty one, whose last member is a digest of the rest."""
    text = json.dumps(about, indent=indent)
    return text[:-1] + _seal(text.encode())


def unsealed(path: str) -> dict[str, Any]:
    """What ``sealed_text`` made text of, with its seal.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged.
        UntrustedError: others own it, or may write to it.
    """
    with open(path, "rb", opener=_at_once) as file:
        if not is_own(os.fstat(file.fileno())):
            raise UntrustedError(path)
        return unsealed_text(file.read(), path)


def unsealed_text(content: bytes, path: str) -> dict[str, Any]:
    """The same, of what was read from a file.

    Raises:
        ValueError: it is damaged.
    """
    seal = content[-SEALED:]
    if seal != _seal(content[:-SEALED] + b"}").encode():
        raise ValueError(f"{path} is damaged")
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError(f"{path} is damaged")
    return found


def _seal(text: bytes) -> str:
    """What comes in the place of a JSON object's closing brace."""
    return f', "{SEAL}": "{blake2b(text, digest_size=DIGEST).hexdigest()}"}}'


SEALED = len(_seal(b""))
