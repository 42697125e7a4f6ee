"""The table of targets: what reads bytes of strangers, what it is fed to begin with, and which files it covers."""

from __future__ import annotations

import importlib
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from pocketgraph.formats.files import PathLike

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = ("model_readers", "checkpoint_readers", "data_readers", "live_readers", "text_readers", "op_decoders")
"""The modules with targets, in this folder."""

Seeds = Callable[[], Iterable[bytes]]
Mutator = Callable[[bytes, int, int], bytes]
"""Another input from an input, the most bytes it may have, and a seed."""


@dataclass(frozen=True)
class Target:
    """One reader.

    Attributes:
        name: of the target.
        read: reads an input; it may raise errors of pocketgraph.
        seeds: inputs to begin with.
        words: what inputs are made of, for the dictionary.
        covers: the files whose lines are counted, below ``src/pocketgraph``; directories end with a slash.
        mutate: changes an input as its format goes; None for changes of bytes alone.
        longest: bytes of an input.
    """

    name: str
    read: Callable[[bytes], object]
    seeds: Seeds
    words: tuple[bytes, ...]
    covers: tuple[str, ...]
    mutate: Mutator | None
    longest: int


TARGETS: dict[str, Target] = {}
"""The targets by name."""


def target(
    covers: str, seeds: Seeds, words: Iterable[bytes] = (), mutate: Mutator | None = None, longest: int = 2048
) -> Callable[[Callable[[bytes], object]], Callable[[bytes], object]]:
    """Makes a function that takes an input a target of its name; ``covers`` lists files between blanks."""

    def add(read: Callable[[bytes], object]) -> Callable[[bytes], object]:
        name = read.__name__.removeprefix("read_")
        assert name not in TARGETS
        TARGETS[name] = Target(name, read, seeds, tuple(words), tuple(covers.split()), mutate, longest)
        return read

    return add


def all_targets() -> dict[str, Target]:
    """The targets by name, with their modules imported."""
    for room in ROOMS:
        importlib.import_module(f"fuzz.{room}")
    return TARGETS


@lru_cache(maxsize=1)
def folder() -> pathlib.Path:
    """The folder of this process for inputs that are read from files."""
    return pathlib.Path(tempfile.mkdtemp(prefix="inputs-"))


def stored(data: bytes, name: str) -> str:
    """The path of a file of this name that holds the input."""
    path = os.path.join(folder(), name)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.write(handle, data)
    os.ftruncate(handle, len(data))  # afterwards: some file systems wait for the disk when a file is emptied first
    os.close(handle)
    return path


def files(*patterns: str, most: int = 2048, count: int = 64) -> list[bytes]:
    """The content of small files of the tests and, where they are here, of the shared models; the smallest first."""
    shared = pathlib.Path(os.environ.get("POCKETGRAPH_SHARED", ROOT.parent / "shared"))
    found = {}
    for place in (ROOT / "tests" / "fixtures", ROOT / "examples", shared / "models", shared / "findings"):
        for pattern in patterns:
            for path in place.glob(f"**/{pattern}"):
                if path.is_file() and path.stat().st_size <= most:
                    found[path.read_bytes()] = None
    return sorted(found, key=len)[:count]


def relative(path: PathLike) -> str:
    """A path as ``covers`` writes it."""
    return os.path.relpath(path, ROOT / "src" / "pocketgraph").replace(os.sep, "/")
