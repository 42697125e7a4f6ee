"""Writes V1 checkpoints that TensorFlow reads: one table of tensor slices, its list of what it holds in front.

Source: tensorflow/core/util/{saved_tensor_slice.proto,tensor_slice_writer.cc}. Elements lie in the typed lists of
TensorProtos that have neither type nor shape, and blocks are not compressed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import FormatError
from pocketgraph.formats.checkpoints import ordered_code, sstable
from pocketgraph.formats.checkpoints.bundle_proto import Extent
from pocketgraph.formats.checkpoints.checkpoint_merge import Saved, encode_extent
from pocketgraph.formats.files import write_atomically
from pocketgraph.formats.tensor_proto import LIST_OF, STRING_VAL, shape_bytes
from pocketgraph.graph import Tensor
from pocketgraph.protobuf import wire

VERSION = 1  # of the format (TF_CHECKPOINT_VERSION)
LARGEST_BLOCK = 1 << 30  # bytes of one slice; TensorFlow refuses messages of 2 GiB

TYPES = frozenset((
    "float", "double", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool", "qint8", "quint8",
    "qint32", "uint16", "complex128", "half",
))  # fmt: skip
"""The element types that TensorFlow's V1 writer and reader take."""


def write_checkpoint_v1(path: str | os.PathLike[str], tensors: Sequence[Saved]) -> None:
    """Writes the checkpoint file, whole or not at all.

    Args:
        path: the file; its directory must exist.
        tensors: whole tensors and slices; several slices of a tensor have the same whole shape and type.

    Raises:
        FormatError: two of the same name and place, slices of unlike tensors, or what the format cannot hold.
        PocketgraphError: the file cannot be written.
    """
    where = os.fspath(path)
    values: dict[bytes, bytes] = {}
    slices: dict[str, list[Saved]] = {}
    for saved in tensors:
        extents = _extents(saved)
        key = ordered_code.slice_key(saved.name, extents)
        if not saved.name or key in values:
            problem = "is saved twice" if saved.name else "has no name"
            raise FormatError(f"tensor '{saved.name}' {problem}", where=where)
        group = slices.setdefault(saved.name, [])
        if group and (group[0].shape, group[0].value.dtype) != (saved.shape, saved.value.dtype):
            raise FormatError(f"the slices of '{saved.name}' have unlike shapes or types", where=where)
        group.append(saved)
        values[key] = _slice(saved, where)
    meta = b"".join(wire.bytes_field(1, _described(group)) for group in slices.values())
    meta += wire.bytes_field(2, wire.number_field(1, VERSION))
    values[b""] = wire.bytes_field(1, meta)
    write_atomically(where, sstable.encode((key, values[key]) for key in sorted(values)))


def _extents(saved: Saved) -> tuple[Extent, ...]:
    return ((0, ordered_code.FULL),) * len(saved.shape) if saved.extents is None else saved.extents


def _slice_bytes(saved: Saved) -> bytes:
    """The TensorSliceProto."""
    return b"".join(wire.bytes_field(1, encode_extent(*extent)) for extent in _extents(saved))


def _described(group: Sequence[Saved]) -> bytes:
    """The SavedSliceMeta of a tensor with these slices."""
    first = group[0]
    head = wire.bytes_field(1, first.name) + wire.bytes_field(2, shape_bytes(first.shape))
    head += wire.number_field(3, first.value.dtype.number)
    return head + b"".join(wire.bytes_field(4, _slice_bytes(saved)) for saved in group)


def _slice(saved: Saved, where: str) -> bytes:
    """The SavedTensorSlices message with the elements of one slice."""
    if saved.value.dtype.name not in TYPES:
        raise FormatError(
            f"a V1 checkpoint cannot hold the {saved.value.dtype.name} tensor '{saved.name}'", where=where
        )
    if saved.value.nbytes > LARGEST_BLOCK:
        raise FormatError(f"tensor '{saved.name}' is too large for a V1 checkpoint", where=where, hint="use SaveV2")
    parts = [wire.bytes_field(1, saved.name), wire.bytes_field(2, _slice_bytes(saved))]
    parts.append(wire.bytes_field(3, b"".join(_elements(saved.value))))
    return wire.bytes_field(2, b"".join(parts))


def _elements(tensor: Tensor) -> Iterator[bytes]:
    """The fields of a TensorProto that hold a tensor's elements."""
    name = tensor.dtype.name
    flat = np.ascontiguousarray(tensor.numpy()).reshape(-1)
    if name == "string":
        for item in flat.tolist():
            yield wire.bytes_field(STRING_VAL, item)
        return
    if not flat.size:
        return
    number = LIST_OF[name]
    if flat.dtype.kind in "fc" and name != "half":
        yield wire.bytes_field(number, flat.astype(flat.dtype.newbyteorder("<")).tobytes())
        return
    codes = flat.view(np.uint16) if name == "half" else flat
    yield wire.bytes_field(number, packed(codes.astype(np.int64)))


def packed(values: np.ndarray[Any, Any]) -> bytes:
    """Integers as varints, one behind the other; negative ones take ten bytes."""
    left = values.astype(np.int64).view(np.uint64)
    digits = np.empty((left.size, 10), np.uint8)
    for place in range(10):
        digits[:, place] = left & np.uint64(0x7F)
        left = left >> np.uint64(7)
    lengths = np.maximum(1, 10 - np.argmax(digits[:, ::-1] != 0, axis=1))
    lengths[~digits.any(axis=1)] = 1
    used = np.arange(10) < lengths[:, None]
    digits[np.arange(10) < lengths[:, None] - 1] |= 0x80
    packed_bytes: bytes = digits[used].tobytes()
    return packed_bytes
