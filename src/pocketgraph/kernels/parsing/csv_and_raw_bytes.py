"""Texts taken apart into numbers and fields: CSV lines, raw bytes, compressed texts."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.budgets import check_memory, check_time, timed
from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.kernels.arrays import Array, integer, reserve
from pocketgraph.kernels.number_text import number_of
from pocketgraph.kernels.registry import kernel

UNPACKED = 1 << 20  # bytes of one piece


@kernel("DecodePaddedRaw")
def decode_padded_raw(input_bytes: Array, fixed_length: Array, *, out_type: DType, little_endian: bool = True) -> Array:
    """Each text as numbers; texts are cut to ``fixed_length`` bytes or filled up with zeros."""
    length, kind = integer(fixed_length), out_type.numpy
    if length <= 0 or length % kind.itemsize:
        raise RunError(f"fixed_length ({length}) must be a multiple of the size of {out_type.name} ({kind.itemsize})")
    shape = reserve((*input_bytes.shape, length // kind.itemsize), kind)
    data = b"".join(item[:length].ljust(length, b"\0") for item in input_bytes.ravel().tolist())
    values = np.frombuffer(data, kind)
    return np.array((values if little_endian or kind.itemsize == 1 else values.byteswap()).reshape(shape))


@kernel("DecodeCompressed")
def decode_compressed(bytes: Array, *, compression_type: str = "") -> Array:
    """Each text without its ZLIB or GZIP compression."""
    if compression_type not in ("", "ZLIB", "GZIP"):
        raise RunError(f"Only ZLIB, GZIP or NONE are supported compressions, not {compression_type}")
    result = np.empty(bytes.shape, object)
    size = 0
    for place, item in np.ndenumerate(bytes):
        result[place] = _unpacked(item, compression_type, size) if compression_type else item
        size += len(result[place])
    return result


GZIP = b"\x1f\x8b"  # what its data begin with


def _unpacker(kind: str) -> Any:
    return zlib.decompressobj(15 if kind == "ZLIB" else 31)


def _unpacked(data: bytes, kind: str, size: int) -> bytes:
    """A text without its compression, a piece after the other, where ``size`` bytes were unpacked before.

    GZIP data may be several files, one behind the other, and nothing at all is unpacked to nothing.
    """
    pieces: list[bytes] = []
    machine, rest = _unpacker(kind), data
    while rest or (data and not machine.eof):
        try:
            pieces.append(machine.decompress(rest, UNPACKED))
        except zlib.error as error:
            raise RunError(f"the text is no {kind} data: {error}") from error
        if not pieces[-1] and not machine.eof:
            raise RunError(f"the {kind} data are cut short")
        rest = machine.unconsumed_tail
        if machine.eof and kind == "GZIP" and machine.unused_data.startswith(GZIP):
            machine, rest = _unpacker(kind), machine.unused_data
        size += len(pieces[-1])
        check_memory(2 * size, "what is unpacked")  # the pieces, and then the whole
        check_time()
    return b"".join(pieces)


@kernel("DecodeCSV")
def decode_csv(
    records: Array, *record_defaults: Array, OUT_TYPE: Sequence[DType], field_delim: str = ",",
    use_quote_delim: bool = True, na_value: str = "", select_cols: Sequence[int] = (),
) -> tuple[Array, ...]:  # fmt: skip
    """For each column of the lines (RFC 4180) a tensor of the lines' shape; an empty field takes the default."""
    if len(field_delim) != 1:
        raise RunError(f"field_delim should be only 1 char, not '{field_delim}'")
    if any(default.size > 1 for default in record_defaults):
        raise RunError("There should only be 1 default per field")
    columns: list[list[Any]] = [[] for _ in OUT_TYPE]
    for number, line in enumerate(timed(records.ravel().tolist())):
        fields = _fields(line, field_delim.encode(), use_quote_delim)
        if select_cols:
            if max(select_cols) >= len(fields):
                raise RunError(f"Expect {max(select_cols) + 1} fields but have {len(fields)} in record {number}")
            fields = [fields[column] for column in select_cols]
        if len(fields) != len(OUT_TYPE):
            raise RunError(f"Expect {len(OUT_TYPE)} fields but have {len(fields)} in record {number}")
        for place, (field, kind, default) in enumerate(zip(fields, OUT_TYPE, record_defaults, strict=True)):
            if field in (b"", na_value.encode()):
                if not default.size:
                    raise RunError(f"Field {place} is required but missing in record {number}!")
                columns[place].append(default.ravel()[0])
            else:
                columns[place].append(_value(field, kind, place, number))
    results = []
    for column, kind in zip(columns, OUT_TYPE, strict=True):
        made = np.empty(len(column), kind.numpy)
        made[:] = column
        results.append(made.reshape(records.shape))
    return tuple(results)


def _value(field: bytes, kind: DType, place: int, number: int) -> Any:
    if kind.name == "string":
        return field
    try:
        return kind.numpy.type(number_of(field, kind.numpy))
    except ValueError as error:
        shown = field[:50].decode(errors="replace")
        raise RunError(f"Field {place} in record {number} is not a valid {kind.name}: {shown}") from error


def _fields(line: bytes, mark: bytes, quotes: bool) -> list[bytes]:
    """The fields of one line; in quotes a doubled quote is one."""
    found: list[bytes] = []
    place, size = 0, len(line)
    while line:
        if quotes and line[place : place + 1] == b'"':
            end, parts = place + 1, []
            while True:
                stop = line.find(b'"', end)
                if stop < 0:
                    raise RunError("Quoted field has to end with quote followed by delim or end")
                parts.append(line[end:stop])
                if line[stop + 1 : stop + 2] != b'"':
                    break
                parts.append(b'"')
                end = stop + 2
            found.append(b"".join(parts))
            place = stop + 1
            if place < size and line[place : place + 1] != mark:
                raise RunError("Quoted field has to end with quote followed by delim or end")
        else:
            stop = line.find(mark, place)
            stop = size if stop < 0 else stop
            field = line[place:stop]
            if b"\n" in field or b"\r" in field or (quotes and b'"' in field):
                raise RunError("Unquoted fields cannot have quotes/CRLFs inside")
            found.append(field)
            place = stop
        if place >= size:
            break
        place += 1
    return found


@kernel("DecodeRaw")
def decode_raw(bytes: Array, *, out_type: DType, little_endian: bool = True) -> Array:
    """The strings' bytes as numbers, along a new last axis."""
    kind = out_type.numpy
    items = bytes.ravel().tolist()
    sizes = {len(item) for item in items} or {0}
    if len(sizes) > 1:
        raise ValueError(f"DecodeRaw requires input strings to all be the same size, they are {sorted(sizes)[:9]}")
    size = sizes.pop()
    if size % kind.itemsize:
        raise ValueError(f"Input to DecodeRaw has length {size} that is not a multiple of {kind.itemsize}")
    values = np.frombuffer(b"".join(items), dtype=kind)
    if not little_endian and kind.itemsize > 1:
        values = values.byteswap()
    return np.array(values.reshape(*bytes.shape, size // kind.itemsize))
