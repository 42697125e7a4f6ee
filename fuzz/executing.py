"""Executes one input of a target and says what is wrong about it.

A find is any exception that is no error of pocketgraph, more than ten seconds of computing, memory beyond a gibibyte, a
file left behind, an error of several lines, or files that stay open.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import pathlib
import resource
import time
import traceback

from fuzz.targets import Target, folder
from pocketgraph.errors import PocketgraphError

MOST_SECONDS = 10.0  # of computing, for an input of some kilobytes
MOST_MEMORY = 1 << 30  # bytes of addresses beyond those that the process has when it begins
MOST_OPEN = 64  # files that may be open before they are counted as forgotten
LOOKED_AT = 4096  # executions between two counts of the open files


class Execution:
    """A target with the folder to which finds go.

    Attributes:
        count: how many inputs were executed.
    """

    def __init__(self, target: Target, finds: pathlib.Path) -> None:
        self.count = 0
        self._target = target
        self._finds = finds
        self._expected: set[str] = set()
        self._limited = False

    def __call__(self, data: bytes) -> None:
        """Executes an input; what is found is written to the folder, once for each place in the code."""
        if not self._limited:
            self._limit()
        self.count += 1
        begun = time.thread_time()
        try:
            self._target.read(data)
        except PocketgraphError as error:
            if "\n" in str(error):
                self._keep("lines", data, f"an error of several lines: {error!r}")
        except Exception as error:
            self._keep(_place(error), data, traceback.format_exc())
        if time.thread_time() - begun > MOST_SECONDS:
            self._keep("slow", data, f"{time.thread_time() - begun:.1f} s")
        found = set(os.listdir(folder()))
        if self.count < 3:
            self._expected |= {name for name in found if not name.endswith(".part")}
        elif not found <= self._expected:
            self._keep("left", data, f"left behind: {sorted(found - self._expected)}")
            for name in found - self._expected:
                with contextlib.suppress(OSError):
                    os.unlink(folder() / name)
        if self.count % LOOKED_AT == 0:
            gc.collect()
            if (count := len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0) > MOST_OPEN:
                self._keep("open", data, f"{count} files are open")

    def _limit(self) -> None:
        """Bounds the memory; what the process has by now is its own."""
        self._limited = True
        with contextlib.suppress(OSError, ValueError), open("/proc/self/statm") as status:
            own = int(status.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (own + MOST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))

    def _keep(self, place: str, data: bytes, said: str) -> None:
        self._finds.mkdir(parents=True, exist_ok=True)
        path = self._finds / f"{self._target.name}-{place}"
        if not path.exists():
            path.write_bytes(data)
            path.with_name(path.name + ".txt").write_text(said)


def _place(error: Exception) -> str:
    """A name for where an exception comes from: its type and the innermost line of ours."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "pocketgraph" in f.filename]
    last = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
    where = f"{pathlib.Path(last.filename).stem}.{last.name}"
    mark = hashlib.sha256(f"{type(error).__name__} {where} {last.line}".encode()).hexdigest()[:6]
    return f"{type(error).__name__}-{where}-{mark}".replace("<", "").replace(">", "")
