"""Files and rooms that a first call of Session.run enters, and where it climbs: python tools/rooms_entered.py MODEL…

A room is a folder of the package. A climb is a call from a file of a lower floor into one of a higher floor: something
that was handed down is called back. Pairs of files count once, however often one calls the other. The second call of
the same session is told beside the first. Files that are only imported do not count, nor does what other threads do.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pocketgraph
from pocketgraph import Session
from pocketgraph.runtime.feeding.default_tensors import default_fetches
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds
from size import floors

PACKAGE = Path(pocketgraph.__file__).parent
LAZY = inspect.CO_GENERATOR | inspect.CO_COROUTINE  # goes on wherever somebody asks for the next item


class Walk:
    """The calls from one file of the package into another.

    Attributes:
        moves: the file that calls, the file that is called, and the function.
    """

    def __init__(self) -> None:
        self.moves: dict[tuple[str, str], str] = {}
        self._names: dict[str, str | None] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or frame.f_code.co_name == "<module>" or frame.f_code.co_flags & LAZY:
            return
        here = self._file(frame)
        if here is None:
            return
        caller = frame.f_back
        while caller is not None and (self._file(caller) is None or caller.f_code.co_flags & LAZY):
            if caller.f_code.co_name == "<module>" and self._file(caller) is not None:
                return
            caller = caller.f_back
        there = self._file(caller) if caller is not None else None
        if there is not None and there != here:
            self.moves.setdefault((there, here), frame.f_code.co_name)

    def _file(self, frame: FrameType) -> str | None:
        """The frame's file, from the package on; None where it is not the package's."""
        name = frame.f_code.co_filename
        if name not in self._names:
            path = Path(name)
            inside = path.is_relative_to(PACKAGE)
            self._names[name] = path.relative_to(PACKAGE).as_posix() if inside else None
        return self._names[name]


def walked(call: Callable[[], Any]) -> Walk:
    walk = Walk()
    sys.setprofile(walk)
    try:
        call()
    finally:
        sys.setprofile(None)
    return walk


def heights() -> dict[str, int]:
    """The height of each package, lowest 0."""
    names = floors(PACKAGE)
    return {name: len(names) - place for place, name in enumerate(names)}


def told(walk: Walk, height: dict[str, int]) -> str:
    files = {file for pair in walk.moves for file in pair}
    rooms = {file.rpartition("/")[0] for file in files}
    return f"{len(files)} files, {len(rooms)} rooms, {len(climbs(walk, height))} climbs"


def climbs(walk: Walk, height: dict[str, int]) -> list[str]:
    floors_of = {file: height[file.partition("/")[0].removesuffix(".py")] for pair in walk.moves for file in pair}
    return [f"{a} calls {b} ({name})" for (a, b), name in walk.moves.items() if floors_of[a] < floors_of[b]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--list", action="store_true", help="the files and the climbs of the first call")
    options = parser.parse_args()
    height = heights()
    for path in options.models:
        graph = pocketgraph.load(path)
        fetches = default_fetches(graph)
        feeds = synthetic_feeds(graph, fetches)
        with tempfile.TemporaryDirectory() as folder, Session(path, threads=1, cache_dir=folder) as session:
            first = walked(lambda: session.run(fetches, feeds))  # noqa: B023
            second = walked(lambda: session.run(fetches, feeds))  # noqa: B023
        print(f"{path.name}: first call {told(first, height)}; second call {told(second, height)}")
        if options.list:
            print(*sorted({file for pair in first.moves for file in pair}), sep="\n")
            print(*climbs(first, height), sep="\n")


if __name__ == "__main__":
    main()
