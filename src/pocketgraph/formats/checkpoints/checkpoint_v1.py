"""V1 checkpoints: tables of tensor slices, one file or several, each with its own list of what it holds.

Source: tensorflow/core/util/{saved_tensor_slice.proto,tensor_slice_reader.cc,tensor_slice_writer.cc}. Values lie in
TensorProtos without type and shape, which the list has; blocks of the table carry checksums.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import FormatError
from pocketgraph.formats.checkpoints import checkpoint_base, ordered_code
from pocketgraph.formats.checkpoints.bundle_proto import BundleEntry, Extent, slice_extents
from pocketgraph.formats.checkpoints.checkpoint_base import LARGEST_RANK, elements_of, resolved
from pocketgraph.formats.checkpoints.checkpoint_state import v1_files
from pocketgraph.formats.checkpoints.sstable import SortedTable
from pocketgraph.formats.files import mapped
from pocketgraph.formats.tensor_proto import StoredTensor, dimensions
from pocketgraph.graph import DType, Tensor
from pocketgraph.pages.quantities import counted
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import LEN, VARINT, WireError, damage_told

LARGEST_GROWTH = 64  # elements for each byte of the files; a stored element takes a byte, compressed at most 21 a byte


class CheckpointV1(checkpoint_base.Checkpoint):
    """The tensors of one V1 checkpoint. Opening reads the lists; a block is read, and its checksum checked, when a
    tensor in it is asked for its values.

    Attributes:
        files: the checkpoint's files.
    """

    def __init__(self, prefix: str | os.PathLike[str]) -> None:
        """Raises FormatError when a file is missing or damaged, or two files contradict each other."""
        super().__init__(prefix)
        self.files = v1_files(self.prefix)
        if not self.files:
            raise FormatError("there is no checkpoint of the older V1 form here", where=self.prefix)
        self._index: dict[str, BundleEntry] = {}
        self._places: dict[tuple[str, tuple[Extent, ...]], int] = {}
        self._tables: list[SortedTable] = []
        self._bytes = 0
        for number, file in enumerate(self.files):
            data = memoryview(mapped(file))
            self._bytes += len(data)
            table = SortedTable(data, file)
            self._tables.append(table)
            for name, entry in _held(table, file):
                self._add(name, entry, number)

    def __repr__(self) -> str:
        return f"CheckpointV1({self.prefix!r}: {counted(len(self), 'tensor')} in {counted(len(self.files), 'file')})"

    def _decode(self, value: Any, name: str) -> BundleEntry:
        entry: BundleEntry = value
        return entry

    def _add(self, name: str, entry: BundleEntry, number: int) -> None:
        """Takes what one file says of a tensor together with what the others said."""
        before = self._index.get(name)
        if before is not None and (before.dtype, before.shape) != (entry.dtype, entry.shape):
            raise self._error(f"{self.files[number]} has it with another type or shape than an earlier file", name)
        for extents in entry.slices:
            if (name, extents) in self._places:
                raise self._error(f"the slice {_shown(extents)} is stored twice", name)
            self._places[name, extents] = number
        slices = (() if before is None else before.slices) + entry.slices
        self._index[name] = BundleEntry(entry.dtype, entry.shape, slices=slices)

    def _tensor(self, name: str, entry: BundleEntry) -> Tensor:
        if any(size < 0 for size in entry.shape) or len(entry.shape) > LARGEST_RANK:
            raise self._error("it has no sound shape", name)
        if elements_of(entry.shape) > LARGEST_GROWTH * self._bytes:
            raise self._error(f"the files are too small to hold its {elements_of(entry.shape):,} elements", name)
        if len(entry.slices) == 1 and resolved(entry.slices[0], entry.shape) == [(0, n) for n in entry.shape]:
            return self._slice_tensor(name, entry, entry.slices[0])
        return self._assembled(name, entry)

    def _stored(self, name: str, entry: BundleEntry) -> Tensor:
        return self._tensor(name, entry)

    def _slice_tensor(self, name: str, whole: BundleEntry, extents: Sequence[Extent]) -> Tensor:
        bounds = resolved(extents, whole.shape)
        number = self._places.get((name, tuple(extents)))
        if number is None or bounds is None:
            raise self._error(f"the slice {_shown(extents)} is missing", name)
        dtype = self._dtype(whole, name)
        shape = tuple(length for _, length in bounds)
        place = f"{self.files[number]}: tensor '{name}'"

        def read() -> np.ndarray[Any, Any]:
            value = self._tables[number].get(ordered_code.slice_key(name, extents))
            if value is None:
                raise self._error(f"the slice {_shown(extents)} is listed in {self.files[number]}, but not there", name)
            return _values(bytes(value), dtype, shape, place)

        return Tensor(dtype, shape, read=read)


def _held(table: SortedTable, file: str) -> Iterator[tuple[str, BundleEntry]]:
    """What a file says that it holds: each tensor's name, type, whole shape, and the slices in this file."""
    value = table.get(b"")
    if value is None:
        raise FormatError(
            "Failed to find the saved tensor slices at the beginning of the checkpoint file", where=file,
            hint="the file is damaged or of another kind",
        )  # fmt: skip
    data = bytes(value)
    with damage_told("the list of its tensors is not parseable", where=file):
        for _, number, kind, start, stop in wire.fields(data, 0, len(data)):
            if (number, kind) != (1, LEN):
                continue
            for _, inner, inner_kind, inner_start, inner_stop in wire.fields(data, start, stop):
                if (inner, inner_kind) == (1, LEN):
                    yield _described(data, inner_start, inner_stop, file)


def _described(data: bytes, start: int, stop: int, file: str) -> tuple[str, BundleEntry]:
    """One SavedSliceMeta."""
    name, dtype = "", 0
    shape: list[int] | None = []
    slices: list[tuple[Extent, ...]] = []
    for _, number, kind, value, end in wire.fields(data, start, stop):
        if (number, kind) == (1, LEN):
            name = wire.text(data, value, end)
        elif (number, kind) == (2, LEN):
            shape = dimensions(data, value, end)
        elif (number, kind) == (3, VARINT):
            dtype = wire.int32(value)
        elif (number, kind) == (4, LEN):
            slices.append(slice_extents(data, value, end))
    if not name:
        raise FormatError("a tensor has no name; the file is damaged", where=file)
    return name, BundleEntry(dtype, (-1,) if shape is None else tuple(shape), slices=tuple(slices))


def _values(data: bytes, dtype: DType, shape: tuple[int, ...], place: str) -> np.ndarray[Any, Any]:
    """The elements of one SavedTensorSlices message."""
    count = elements_of(shape)
    spans = [(0, len(data))]
    try:
        for wanted in (2, 3):  # the SavedSlice in the message, and the TensorProto in that
            start, stop = spans[-1]
            spans = wire.spans(data, start, stop, wanted)
            if not spans:
                raise FormatError("its slice has no values; the file is damaged", where=place)
        values = StoredTensor(data, *spans[-1], place, dtype).listed(count)
    except (WireError, KeyError) as error:
        raise FormatError(f"its values are not parseable: {error}", where=place) from None
    if values.size != count:
        raise FormatError(f"it holds {counted(values.size, 'value')} where its shape asks for {count:,}", where=place)
    return values.reshape(shape)


def _shown(extents: Sequence[Extent]) -> str:
    """As TensorFlow writes it, such as ``0,2:-``."""
    return ":".join("-" if length == ordered_code.FULL else f"{start},{length}" for start, length in extents) or "-"
