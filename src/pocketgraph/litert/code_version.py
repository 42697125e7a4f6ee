"""The version of what is kept on disk: a digest of the code that makes it, so that nobody has to raise a number.

An installed package brings its version in a file, which the build hook (``hatch_build.py``) makes of the contents of
the sources. In a checkout it follows from the path, size and time of change of each source: about a millisecond, once a
process. Either way a change of any file below the runtime's ceiling gives another one.
"""

from __future__ import annotations

import os
from functools import lru_cache

try:
    from _blake2 import blake2b  # hashlib gives the same, and loads OpenSSL besides: a thirtieth of a warm start
except ImportError:
    from hashlib import blake2b

BUILT = "code_version.txt"
"""The file beside this one that holds the version of an installed package."""
ABOVE = frozenset((
    "apps", "cli", "datasets", "differentiation", "exporting", "inspect", "quantization", "transforms",
))  # fmt: skip
"""Folders that the runtime does not stand on: nothing that is kept on disk depends on them."""


def short_digest(content: bytes, size: int) -> str:
    """A digest of ``size`` bytes, in hexadecimal digits."""
    return blake2b(content, digest_size=size).hexdigest()


@lru_cache(maxsize=1)
def code_version() -> str:
    """The version of this package's code, as text."""
    place = os.path.dirname(__file__)
    try:
        return _built(place) or checkout_version(os.path.dirname(place))
    except OSError:  # neither the file nor the sources can be seen: nothing of another process is taken for this one's
        return os.urandom(12).hex()


def _built(place: str) -> str:
    """What the build hook wrote; "" in a checkout. The loader reads it, so that a package in an archive has it too."""
    try:
        data: bytes = __loader__.get_data(os.path.join(place, BUILT))  # type: ignore[name-defined]
    except OSError:
        return ""
    return data.decode().strip()


def checkout_version(package: str) -> str:
    """A digest of path, size and time of change of each source of the package in this folder.

    Raises:
        OSError: the folder cannot be read.
    """
    found = [(name, (status := entry.stat()).st_size, status.st_mtime_ns) for name, entry in _sources(package)]
    return blake2b(repr(sorted(found)).encode(), digest_size=12).hexdigest()


def content_version(package: str) -> str:
    """A digest of path and content of each source of the package in this folder.

    Raises:
        OSError: a source cannot be read.
    """
    total = blake2b(digest_size=12)
    for name, entry in sorted(_sources(package)):
        with open(entry.path, "rb") as file:
            content = file.read()
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


def _sources(package: str) -> list[tuple[str, os.DirEntry[str]]]:
    """The sources in and below a package's folder, with their paths from there."""
    found = []
    waiting = [(package, "")]
    while waiting:
        folder, inside = waiting.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(".py"):
                    found.append((inside + name, entry))
                elif entry.is_dir():
                    if name != "__pycache__" and name[0] != "." and (inside or name not in ABOVE):
                        waiting.append((entry.path, f"{inside}{name}/"))
                elif name != BUILT and not name.endswith((".pyc", ".part")):
                    found.append((inside + name, entry))
    return found
