"""V2 checkpoints (TensorBundle): a table ``PREFIX.index`` and data files ``PREFIX.data-00000-of-00001`` …

Source: tensorflow/core/util/tensor_bundle/tensor_bundle.cc.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pocketgraph.errors import FormatError
from pocketgraph.formats.checkpoints import bundle_tensor, checkpoint_base, ordered_code
from pocketgraph.formats.checkpoints.bundle_proto import BundleEntry, Extent, Header
from pocketgraph.formats.checkpoints.checkpoint_base import LARGEST_RANK, elements_of, resolved
from pocketgraph.formats.checkpoints.sstable import SortedTable
from pocketgraph.formats.files import check_length, mapped
from pocketgraph.graph import Tensor
from pocketgraph.pages.quantities import counted
from pocketgraph.protobuf.wire import WireError

LARGEST_INDEX = 1 << 30  # bytes; an index holds about 40 bytes a tensor
MAPPED_AT_ONCE = 16  # data files, each of which takes one of the files that a process may have open
TRIES = 10  # to read index and data files between two writings
READS_VERSION = 1  # the bundle format version that this reader knows


class CheckpointV2(checkpoint_base.Checkpoint):
    """The tensors of one V2 checkpoint. Checksums are checked when bytes are read.

    The first data files are mapped at once, so that a checkpoint that is written anew meanwhile stays the one that was
    opened; what cannot be had of that one any more is an error that says so.

    Looking a tensor up raises KeyError for an unknown name, and FormatError when its entry contradicts itself or its
    data file is missing or too short; ``tensor.numpy()`` raises FormatError when a byte is not what was saved.

    Attributes:
        prefix: the path without ``.index``.
        num_shards: how many data files the index speaks of.
    """

    def __init__(self, prefix: str | os.PathLike[str]) -> None:
        super().__init__(prefix)
        for _ in range(TRIES):
            self._read_index()
            if self._is_current():
                return
        raise FormatError("the checkpoint is written again and again while it is read", where=self.prefix)

    def _read_index(self) -> None:
        index = self.prefix + ".index"
        header: Header | None = None
        self._index: dict[str, bytes] = {}
        self._slices: dict[bytes, bytes] = {}
        self._opened = _state_of(index)
        for key, view in SortedTable(memoryview(_content_of(index)), index):
            value = bytes(view)
            if not key:
                header = self._header(value)
            elif key.startswith(b"\0"):
                self._slices[key] = value
            else:
                self._index[_decoded(key, index)] = value
        if header is None:
            raise FormatError("the checkpoint has no header entry; the file is of another kind", where=index)
        self.num_shards = header.num_shards
        self._big_endian = header.big_endian
        self._shards: dict[int, memoryview] = {}
        for shard in range(min(self.num_shards, MAPPED_AT_ONCE)):
            with contextlib.suppress(FormatError):  # whoever needs it will say so
                self._shards[shard] = memoryview(mapped(self._shard_path(shard)))

    def _is_current(self) -> bool:
        """Whether the index is the one that was opened."""
        return _state_of(self.prefix + ".index") == self._opened

    def _check_current(self) -> None:
        """Raises FormatError where the index is another one."""
        if not self._is_current():
            raise FormatError(
                "the checkpoint was written anew since it was opened", where=self.prefix, hint="open it again"
            )

    def __repr__(self) -> str:
        return f"CheckpointV2({self.prefix!r}: {counted(len(self), 'tensor')} in {self.num_shards} shards)"

    def _header(self, value: bytes) -> Header:
        index = self.prefix + ".index"
        try:
            header = Header.decode(value)
        except WireError:
            raise FormatError("unable to parse header; the file is damaged or of another kind", where=index) from None
        if header.num_shards < 1:
            raise FormatError(f"the header speaks of {header.num_shards} data files", where=index)
        if header.min_consumer > READS_VERSION:
            raise FormatError(
                f"the checkpoint asks for a reader of format version {header.min_consumer}, this one knows "
                f"{READS_VERSION}", where=index,
            )  # fmt: skip
        return header

    def _decode(self, value: bytes, name: str) -> BundleEntry:
        try:
            entry = BundleEntry.decode(value)
        except WireError:
            raise self._error("its index entry is not parseable", name) from None
        if any(size < 0 for size in entry.shape) or len(entry.shape) > LARGEST_RANK:
            raise self._error("its index entry has no sound shape", name)
        return entry

    def _stored(self, name: str, entry: BundleEntry) -> Tensor:
        dtype = self._dtype(entry, name)
        shape = entry.shape
        elements = elements_of(shape)
        if dtype.name in ("resource", "variant"):
            raise self._error(f"tensors of type {dtype.name} cannot be read from a checkpoint", name)
        if dtype.size and entry.size != elements * dtype.size:
            raise self._error(
                f"invalid size in bundle entry: stored size {entry.size}; expected size {elements * dtype.size} for "
                f"{dtype.name}{list(shape)}", name,
            )  # fmt: skip
        if not dtype.size and elements and entry.size < elements + 4:
            raise self._error(f"{entry.size} bytes cannot hold {elements} strings", name)
        if not 0 <= entry.shard < self.num_shards:
            raise self._error(f"it lies in shard {entry.shard}, but there are {self.num_shards}", name)
        data = self._shard(entry.shard, name)
        if entry.offset < 0 or entry.size < 0 or entry.offset + entry.size > len(data):
            raise self._error(
                f"it lies at bytes {entry.offset} to {entry.offset + entry.size} of {self._shard_path(entry.shard)}, "
                f"which has only {len(data)}; the file was cut off, copy it again", name,
            )  # fmt: skip
        part = data[entry.offset : entry.offset + entry.size]
        place = f"{self._shard_path(entry.shard)}: tensor '{name}' at offset {entry.offset}"

        def read() -> np.ndarray[Any, Any]:
            check_length(data.obj, entry.offset + entry.size, place)
            try:
                return bundle_tensor.decode(part, dtype, shape, entry.crc32c, self._big_endian, place)
            except FormatError:
                self._check_current()
                raise

        return Tensor(dtype, shape, read=read)

    def _slice_tensor(self, name: str, whole: BundleEntry, extents: Sequence[Extent]) -> Tensor:
        raw = self._slices.get(ordered_code.slice_key(name, extents))
        bounds = resolved(extents, whole.shape)
        if raw is None or bounds is None:
            raise self._error(f"the slice {list(extents)} of the partitioned tensor is missing", name)
        entry = self._decode(raw, name)
        if entry.dtype != whole.dtype or entry.shape != tuple(length for _, length in bounds) or entry.slices:
            raise self._error(f"the slice {list(extents)} contradicts the whole tensor's entry", name)
        return self._stored(name, entry)

    def _shard_path(self, shard: int) -> str:
        return f"{self.prefix}.data-{shard:05d}-of-{self.num_shards:05d}"

    def _shard(self, shard: int, name: str) -> memoryview:
        """The bytes of one data file, mapped."""
        view = self._shards.get(shard)
        if view is None:
            path = self._shard_path(shard)
            if not os.path.exists(path):
                self._check_current()
                raise FormatError(
                    f"the data file is missing, it holds '{name}'; of the checkpoint's {self.num_shards} data files "
                    f"{self._shards_here()} exist", where=path, hint="copy the missing ones too",
                )  # fmt: skip
            view = memoryview(mapped(path))
            self._check_current()
            self._shards[shard] = view
        return view

    def _shards_here(self) -> int:
        prefix = Path(self.prefix)
        pattern = re.compile(re.escape(prefix.name) + rf"\.data-\d{{5,}}-of-{self.num_shards:05d}")
        try:
            return sum(1 for name in os.listdir(prefix.parent) if pattern.fullmatch(name))
        except OSError:
            return 0


def _decoded(key: bytes, where: str) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise FormatError(f"a tensor's name is not UTF-8: {key!r}", where=where) from None


def _state_of(path: str) -> tuple[int, ...]:
    """What is another for a file that was replaced."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_ino, status.st_dev, status.st_size, status.st_mtime_ns


def _content_of(path: str) -> bytes:
    data = mapped(path)
    if len(data) > LARGEST_INDEX:
        raise FormatError(f"an index of {len(data)} bytes is not believable", where=path)
    return bytes(data)
