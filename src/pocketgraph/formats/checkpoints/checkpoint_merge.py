"""V2 checkpoints as a graph's own save ops write them: in parts, with slices of partitioned variables, then merged.

A part is a checkpoint of one data file. Merging renames the data files and writes one index; where several parts hold
slices of the same tensor, the merged entry lists all of them (tensorflow/core/util/tensor_bundle, MergeBundles).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from pocketgraph.errors import FormatError, PocketgraphError
from pocketgraph.formats.checkpoints import bundle_tensor, ordered_code, sstable
from pocketgraph.formats.checkpoints.bundle_proto import BundleEntry, Extent, Header
from pocketgraph.formats.files import mapped, write_atomically
from pocketgraph.graph import DType, Tensor
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import Chunk


class Saved(NamedTuple):
    """A tensor to save, or a slice of one.

    Attributes:
        name: the whole tensor's name.
        shape: the whole tensor's shape.
        extents: (start, length) a dimension of the slice; None for the whole tensor.
        value: the elements.
    """

    name: str
    shape: tuple[int, ...]
    extents: tuple[Extent, ...] | None
    value: Tensor


def parse_slice(text: str, where: str = "") -> tuple[tuple[int, ...], tuple[Extent, ...]]:
    """A save op's "shape and slice", as in ``100 20 0,50:-`` for the first 50 of 100 rows of 20.

    Raises:
        FormatError: it is not of that form, or the slice lies outside of the shape.
    """
    try:
        *sizes, extents = text.split()
        shape = tuple(int(size) for size in sizes)
        found: list[Extent] = []
        for part, size in zip(extents.split(":"), shape, strict=True):
            start, length = (0, size) if part == "-" else (int(number) for number in part.split(","))
            if start < 0 or length < 0 or start + length > size:
                raise ValueError
            found.append((start, ordered_code.FULL if part == "-" else length))
    except ValueError:
        raise FormatError(f"'{text}' is no shape and slice", where=where) from None
    return shape, tuple(found)


def write_part(prefix: str, tensors: Sequence[Saved]) -> None:
    """Writes a checkpoint of one data file.

    Raises:
        FormatError: two entries are the same tensor.
        PocketgraphError: a file cannot be written.
    """
    entries: dict[bytes, BundleEntry] = {}
    ordered = sorted(tensors, key=lambda saved: (saved.name.encode(), saved.extents or ()))
    for index, saved in enumerate(ordered):
        if index and (saved.name, saved.extents) == (ordered[index - 1].name, ordered[index - 1].extents):
            raise FormatError(f"tensor '{saved.name}' is saved twice", where=prefix)
    write_atomically(f"{prefix}.data-00000-of-00001", _contents(ordered, entries))
    _write_index(prefix, 1, entries)


def merge(prefixes: Sequence[str], destination: str, *, allow_missing: bool = False) -> None:
    """Makes one checkpoint out of several, whose data files are moved to it.

    Raises:
        FormatError: a part is missing or damaged, or two hold the same tensor.
        PocketgraphError: a file cannot be moved or written.
    """
    if allow_missing:
        prefixes = [prefix for prefix in prefixes if os.path.exists(prefix + ".index")]
    parts = [(prefix, *_read_index(prefix)) for prefix in dict.fromkeys(prefixes)]
    total = sum(shards for _, shards, _ in parts)
    merged: dict[bytes, BundleEntry] = {}
    moves: list[tuple[str, str]] = []
    for prefix, shards, entries in parts:
        first = len(moves)
        for key, entry in entries.items():
            known = merged.get(key)
            if known is None:
                merged[key] = entry if entry.slices else replace(entry, shard=entry.shard + first)
            elif known.slices and entry.slices and (known.dtype, known.shape) == (entry.dtype, entry.shape):
                merged[key] = replace(known, slices=tuple(dict.fromkeys(known.slices + entry.slices)))
            else:
                raise FormatError(f"two parts hold the tensor {key!r}", where=prefix)
        for shard in range(shards):
            source = f"{prefix}.data-{shard:05d}-of-{shards:05d}"
            if not os.path.isfile(source):
                raise FormatError("a data file of the checkpoint is missing", where=source)
            moves.append((source, f"{destination}.data-{len(moves):05d}-of-{total:05d}"))
    try:
        for source, target in moves:
            os.replace(source, target)
    except OSError as error:
        raise PocketgraphError(f"a data file cannot be moved: {error.strerror}", where=destination) from None
    _write_index(destination, total, merged)
    for prefix, _, _ in parts:
        if prefix != destination:
            os.unlink(prefix + ".index")


def _contents(tensors: Sequence[Saved], entries: dict[bytes, BundleEntry]) -> Iterator[Chunk]:
    """The data file's bytes, tensor after tensor; notes in ``entries`` where each lies."""
    offset = 0
    for name, shape, extents, value in tensors:
        data, checksum = bundle_tensor.encode(value.numpy(), value.dtype)
        entry = BundleEntry(value.dtype.number, value.shape, 0, offset, len(data), checksum)
        if extents is None:
            entries[name.encode()] = entry
        else:
            whole = entries.get(name.encode(), BundleEntry(value.dtype.number, shape))
            entries[name.encode()] = replace(whole, slices=(*whole.slices, extents))
            entries[ordered_code.slice_key(name, extents)] = entry
        offset += len(data)
        yield data if isinstance(data, bytes) else data.data


def _write_index(prefix: str, shards: int, entries: dict[bytes, BundleEntry]) -> None:
    table = [(b"", Header(shards).encode()), *((key, _encoded(entries[key])) for key in sorted(entries))]
    write_atomically(prefix + ".index", sstable.encode(table))


def _encoded(entry: BundleEntry) -> bytes:
    out = replace(entry, slices=()).encode()
    for extents in entry.slices:
        out += wire.bytes_field(7, b"".join(wire.bytes_field(1, encode_extent(*extent)) for extent in extents))
    return out


def encode_extent(start: int, length: int) -> bytes:
    """A TensorSliceProto.Extent; a whole dimension is an empty one."""
    if length == ordered_code.FULL:
        return b""
    return (wire.number_field(1, start) if start else b"") + wire.number_field(2, length)


def _read_index(prefix: str) -> tuple[int, dict[bytes, BundleEntry]]:
    path = prefix + ".index"
    table = sstable.SortedTable(memoryview(mapped(path)), path)
    shards, entries = 0, dict[bytes, BundleEntry]()
    for key, value in table:
        try:
            if key:
                entries[bytes(key)] = BundleEntry.decode(bytes(value))
                DType.of(entries[bytes(key)].dtype)
            else:
                shards = Header.decode(bytes(value)).num_shards
        except wire.WireError as error:
            raise FormatError(f"the index is damaged: {error}", where=path) from None
    return shards, entries
