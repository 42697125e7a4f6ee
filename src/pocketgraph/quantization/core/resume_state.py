"""What an interrupted quantization has found so far, in a file from which the same call goes on."""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from pocketgraph.errors import GOES_ON
from pocketgraph.formats.files import write_atomically
from pocketgraph.graph.tensor import Array

KEY = "key"
PAUSE = 5.0  # seconds between two writings
PAUSE_RATIO = 20.0  # times as long as the last writing took, that it is at least until the next


class ResumeState:
    """Arrays by name, kept in a file.

    Args:
        path: of the file; None keeps them in memory only.
        key: says of what it is the state; a file with another key, or a damaged one, is taken for none.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, key: str = "") -> None:
        self.path = path
        self.key = key
        self._arrays: dict[str, Array] = {} if path is None else _read(path, key)
        self._saved, self._pause = time.monotonic(), 0.0
        self.resumed = bool(self._arrays)

    def get(self, stage: str) -> dict[str, Array]:
        """The arrays of a stage by their names in it; empty when there are none."""
        start = stage + "/"
        return {name[len(start) :]: array for name, array in self._arrays.items() if name.startswith(start)}

    def put(self, stage: str, arrays: dict[str, Array]) -> None:
        """Sets arrays of a stage; those of the same name are replaced, and now and then the file is written."""
        self._arrays.update({f"{stage}/{name}": np.asarray(array) for name, array in arrays.items()})
        if self.is_due():
            self.save()

    def is_due(self) -> bool:
        """Whether it is time to write the file again."""
        return self.path is not None and time.monotonic() - self._saved > max(PAUSE, self._pause)

    def save(self) -> None:
        """Writes the file, when there is anything to write."""
        if self.path is None or not self._arrays:
            return
        start = time.monotonic()
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {KEY: np.array(self.key), **self._arrays}
        np.savez(buffer, **arrays)
        write_atomically(self.path, buffer.getvalue())
        self._saved = time.monotonic()
        self._pause = PAUSE_RATIO * (self._saved - start)

    @contextlib.contextmanager
    def kept_when_stopped(self) -> Iterator[None]:
        """Writes the file when Ctrl-C or a signal stops what is done meanwhile; the exception tells so by GOES_ON."""
        try:
            yield
        except KeyboardInterrupt as stop:
            self.save()
            vars(stop)[GOES_ON] = self.path is not None and bool(self._arrays)
            raise

    def remove(self) -> None:
        """Deletes the file: the work is done."""
        if self.path is not None and os.path.exists(self.path):
            os.unlink(self.path)


def _read(path: str | os.PathLike[str], key: str) -> dict[str, Array]:
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as loaded:
            if KEY not in loaded.files or str(loaded[KEY]) != key:
                return {}
            return {name: loaded[name] for name in loaded.files if name != KEY}
    except Exception:  # whatever is wrong with the file, the work begins anew
        return {}
