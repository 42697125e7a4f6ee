"""Rows that are done, kept beside the cache while a call on a cluster runs, so that the next one goes on from them."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.cache import directory

HEAD = struct.Struct("<QI")
"""Of a shard: its bytes, and their checksum."""


class Journal:
    """A file of shards, each a length, a checksum and an ``.npz``. What a killed writer left unfinished is cut off.

    Each shard says which row it begins with: of several calls of one key at a time, those rows count that follow on.

    Args:
        key: of the call; "" keeps nothing, as does a cache that cannot be written.
    """

    def __init__(self, key: str) -> None:
        folder = directory() if key else None
        self._path = os.path.join(folder, "cluster", f"{key}.journal") if folder else ""
        self._file: IO[bytes] | None = None
        self._count = 0  # rows so far

    def rows(self) -> Iterator[Mapping[str, Array]]:
        """The rows of the shards that are whole; new ones are appended behind them."""
        if not self._path:
            return
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        self._file = open(self._path, "ab+")  # noqa: SIM115 (open while the call runs)
        self._file.seek(0)
        end = 0
        while (shard := self._next()) is not None:
            end = self._file.tell()
            first, found = shard
            if first == self._count:
                self._count += len(found)
                yield from found
        self._file.truncate(end)

    def append(self, rows: Sequence[Mapping[str, Array]]) -> None:
        """Keeps a shard's rows."""
        if self._file is None or not rows:
            return
        content = io.BytesIO()
        arrays = {f"{number}/{name}": array for number, row in enumerate(rows) for name, array in row.items()}
        np.savez(content, first=np.array(self._count), count=np.array(len(rows)), **arrays)  # type: ignore[arg-type]
        self._count += len(rows)
        data = content.getvalue()
        self._file.write(HEAD.pack(len(data), zlib.crc32(data)) + data)
        self._file.flush()

    def close(self) -> None:
        """Ends, and leaves the file for the next call."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Deletes the file: the work is done."""
        self.close()
        if self._path:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)

    def _next(self) -> tuple[int, list[dict[str, Array]]] | None:
        """The number of the next shard's first row, and its rows; None where there is no whole one."""
        assert self._file is not None
        head = self._file.read(HEAD.size)
        if len(head) < HEAD.size:
            return None
        size, checksum = HEAD.unpack(head)
        left = os.fstat(self._file.fileno()).st_size - self._file.tell()
        data = self._file.read(size) if size <= left else b""
        if len(data) < size or zlib.crc32(data) != checksum:
            return None
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                first, found = int(arrays["first"]), [dict[str, Array]() for _ in range(int(arrays["count"]))]
                for name in arrays.files:
                    number, _, rest = name.partition("/")
                    if rest:
                        found[int(number)][rest] = arrays[name]
        except Exception:  # whatever is wrong with the file, the work goes on before it
            return None
        return first, found
