"""Strings: joined, split, cut, read as numbers, written, hashed, decoded to bytes.

A string tensor is an object array of ``bytes``.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Sequence

import numpy as np

from pocketgraph.budgets import check_memory, timed
from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.kernels.arrays import Array, axis_of, ints, is_float, places_in_rows, strings, widened
from pocketgraph.kernels.number_text import number_of
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.text.printed_values import nested

PART = 96  # bytes that Python needs for a short text and its place


def mapped(function: Callable[[bytes], bytes], x: Array) -> Array:
    """``function`` on every string of ``x``."""
    return strings([function(item) for item in timed(x.ravel().tolist())], x.shape)


def scalar_string(value: Array) -> bytes:
    """The one string of a tensor.

    Raises:
        ValueError: it holds none or several.
    """
    if value.size != 1:
        raise ValueError(f"one string is wanted, not a tensor of shape {list(value.shape)}")
    item = value.reshape(()).item()
    return item if isinstance(item, bytes) else bytes(item)


def text_bytes(texts: Array) -> int:
    """The bytes of all texts of a tensor."""
    return sum(map(len, texts.ravel().tolist()))


@kernel("StringJoin")
def string_join(*inputs: Array, separator: str = "") -> Array:
    """Elements side by side; scalars go with every element."""
    shapes = {value.shape for value in inputs if value.ndim}
    if len(shapes) > 1:
        raise ValueError(f"shapes that do not fit: {', '.join(str(list(s)) for s in shapes)}")
    shape = next(iter(shapes), ())
    count = math.prod(shape)
    check_memory(
        sum(text_bytes(value) * (count if not value.ndim else 1) for value in inputs)
        + count * (len(inputs) - 1) * len(separator.encode()),
        "the joined texts",
    )
    columns = [np.broadcast_to(value, shape).ravel().tolist() for value in inputs]
    return strings([separator.encode().join(row) for row in zip(*columns, strict=True)], shape)


@kernel("StringLower")
def string_lower(input: Array, *, encoding: str = "") -> Array:
    return mapped(_cased(str.lower, bytes.lower, encoding), input)


@kernel("StringUpper")
def string_upper(input: Array, *, encoding: str = "") -> Array:
    return mapped(_cased(str.upper, bytes.upper, encoding), input)


def _cased(text: Callable[[str], str], plain: Callable[[bytes], bytes], encoding: str) -> Callable[[bytes], bytes]:
    if encoding not in ("", "utf-8"):
        raise ValueError(f"only utf-8 or '' (no encoding) is supported, received {encoding}")
    if encoding == "utf-8":
        return lambda item: text(item.partition(b"\0")[0].decode(errors="replace")).encode()  # as C's texts end
    return plain


kernel("StringStrip")(lambda input: mapped(bytes.strip, input))


def _trails(byte: int) -> bool:
    """Whether a byte belongs to a character of UTF-8 that has begun before."""
    return byte & 0xC0 == 0x80


def _character_places(text: bytes) -> list[int]:
    """Where the characters of a text begin, and where the last one ends; bytes that are no UTF-8 count as TensorFlow
    counts them."""
    return [at for at, byte in enumerate(text) if not at or not _trails(byte)] + [len(text)]


@kernel("StringLength")
def string_length(input: Array, *, unit: str = "BYTE") -> Array:
    size = (lambda item: len(item) - sum(map(_trails, item))) if unit == "UTF8_CHAR" else len
    return np.asarray(np.array([size(item) for item in input.ravel().tolist()], dtype=np.int32).reshape(input.shape))


@kernel("Substr")
def substr(input: Array, pos: Array, len: Array, *, unit: str = "BYTE") -> Array:
    """From ``pos`` (negative: from the end), ``len`` bytes or characters; all bytes that follow when it is negative."""
    if pos.shape != len.shape:
        raise ValueError(f"pos and len should have the same shape, got: {list(pos.shape)} vs. {list(len.shape)}")
    items, starts, sizes = np.broadcast_arrays(input, pos, len)
    found = []
    for item, start, size in zip(items.ravel().tolist(), starts.ravel().tolist(), sizes.ravel().tolist(), strict=True):
        places: Sequence[int] = _character_places(item) if unit == "UTF8_CHAR" else range(item.__len__() + 1)
        length = places.__len__() - 1
        if not -length <= start <= length or (unit == "UTF8_CHAR" and start < 0 and size < 0):
            raise ValueError(f"pos {start} out of range for string {item!r}")
        if size < 0:
            size = 0 if unit == "UTF8_CHAR" else length  # bytes are counted by unsigned numbers
        begin = start if start >= 0 else start + length
        found.append(item[places[begin] : places[min(begin + size, length)]])
    return strings(found, items.shape)


def _sparse(rows: Sequence[Sequence[bytes]]) -> tuple[Array, Array, Array]:
    """(indices, values, shape) of rows of different lengths."""
    indices, shape = places_in_rows(rows)
    values = [item for row in rows for item in row]
    return indices, strings(values, (len(values),)), shape


def _check_parts(count: int) -> None:
    check_memory(PART * count, f"{count:,} parts of texts")


@kernel("StringSplit")
def string_split(input: Array, delimiter: Array, *, skip_empty: bool = True) -> tuple[Array, Array, Array]:
    """Each string cut at any of the delimiter's bytes (between all bytes when it is empty), as a sparse tensor."""
    marks = scalar_string(delimiter)
    cuts = (
        sum(item.count(mark) for item in input.ravel().tolist() for mark in set(marks)) if marks else text_bytes(input)
    )
    _check_parts(cuts + input.size)
    rows = []
    for item in timed(input.ravel().tolist()):
        if not item:
            parts = []
        elif not marks:
            parts = [item[i : i + 1] for i in range(len(item))]
        else:
            parts = re.split(b"[" + re.escape(marks) + b"]", item)
        rows.append([part for part in parts if part or not skip_empty])
    return _sparse(rows)


@kernel("StringSplitV2")
def string_split_v2(input: Array, sep: Array, *, maxsplit: int = -1) -> tuple[Array, Array, Array]:
    """Each string cut at ``sep``, or at blanks where that is empty, ``maxsplit`` times at most."""
    mark = scalar_string(sep)
    _check_parts(
        input.size + (sum(item.count(mark) for item in input.ravel().tolist()) if mark else text_bytes(input) // 2)
    )
    return _sparse([_split(item, mark, maxsplit) for item in input.ravel().tolist()])


def _split(text: bytes, mark: bytes, most: int) -> list[bytes]:
    """As ``bytes.split``, but a text that is not to be cut stays whole, and behind the last cut at blanks is always a
    part, if only an empty one."""
    if most == 0:
        return [text]
    parts = text.split(mark or None, most)
    return [*parts, b""] if not mark and len(parts) == most else parts


@kernel("StringToNumber")
def string_to_number(string_tensor: Array, *, out_type: DType = FLOAT) -> Array:
    kind = out_type.numpy
    found = []
    for item in timed(string_tensor.ravel().tolist()):
        try:
            found.append(number_of(item, kind))
        except ValueError:
            raise RunError(
                f"StringToNumberOp could not correctly convert string: {item.decode(errors='replace')}"
            ) from None
    return np.asarray(np.array(found, dtype=kind).reshape(string_tensor.shape))


@kernel("AsString")
def as_string(
    input: Array,
    *,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
) -> Array:
    """Numbers in C's notation; texts are cut to ``precision`` bytes and filled up to a ``width`` above 0."""
    check_memory(input.size * (max(width, 0) + max(precision, 0)), "numbers of this width and precision")
    if scientific and shortest:
        raise ValueError("Cannot select both scientific and shortest notation")
    if input.dtype.kind == "O":
        cut = precision if precision >= 0 else None
        put = bytes.ljust if fill == "-" else bytes.rjust
        return strings([put(v[:cut], width) for v in input.ravel().tolist()], input.shape) if width > 0 else input
    if input.dtype.kind == "b":
        if precision >= 0 or scientific or shortest:
            raise ValueError("precision, scientific and shortest are for numbers, not for booleans")
        return strings([b"true" if v else b"false" for v in input.ravel().tolist()], input.shape)
    sign = fill.strip("+ ") if input.dtype.kind == "u" else fill  # as C puts none before unsigned numbers
    flags = sign + (str(width) if width >= 0 else "")
    if is_float(input.dtype):
        form = f"%{flags}{f'.{precision}' if precision >= 0 else ''}{'e' if scientific else 'g' if shortest else 'f'}"
    else:
        if input.dtype.kind != "c" and (precision >= 0 or scientific or shortest):
            raise ValueError(f"precision, scientific and shortest are for floats, not for {input.dtype}")
        form = f"%{flags}d"
    if input.dtype.kind == "c":
        form = f"%{flags}{f'.{precision}' if precision >= 0 else ''}{'e' if scientific else 'g' if shortest else 'f'}"
        spelled = [f"({_written(form, v.real)},{_written(form, v.imag)})" for v in input.ravel().tolist()]
    else:
        spelled = [_written(form, v) for v in widened(input).ravel().tolist()]
    return strings([text.encode() for text in spelled], input.shape)


def _written(form: str, number: float) -> str:
    """A number in C's notation, which puts no zeros before what is not finite."""
    return (form if math.isfinite(number) else form.replace("%0", "%")) % number


@kernel("ReduceJoin")
def reduce_join(inputs: Array, reduction_indices: Array, *, keep_dims: bool = False, separator: str = "") -> Array:
    """The strings along the axes joined, along the first axis given first; without axes nothing is joined."""
    axes = [axis_of(a, inputs.ndim) for a in ints(reduction_indices)]
    if len(set(axes)) != len(axes):
        raise ValueError(f"Duplicate reduction dimension in {axes}")
    kept = [a for a in range(inputs.ndim) if a not in axes]
    length = math.prod(inputs.shape[a] for a in axes)
    check_memory(text_bytes(inputs) + inputs.size * len(separator.encode()), "the joined texts")
    rows = inputs.transpose(kept + axes[::-1]).reshape(math.prod(inputs.shape[a] for a in kept), length)
    joined = [separator.encode().join(row) for row in rows.tolist()]
    shape = (
        [1 if a in axes else s for a, s in enumerate(inputs.shape)] if keep_dims else [inputs.shape[a] for a in kept]
    )
    return strings(joined, shape)


@kernel("EncodeBase64")
def encode_base64(input: Array, *, pad: bool = False) -> Array:
    """Web-safe base64."""
    return mapped(lambda item: base64.urlsafe_b64encode(item).rstrip(b"=" if not pad else b""), input)


@kernel("DecodeBase64")
def decode_base64(input: Array) -> Array:
    def decoded(item: bytes) -> bytes:
        try:
            bare = item.rstrip(b"=")
            if len(item) != len(bare) and (len(item) % 4 or len(item) - len(bare) > 2):
                raise binascii.Error("the padding is of another length")
            if b"+" in item or b"/" in item:
                raise binascii.Error("+ and / are no letters of web-safe base64")
            return base64.b64decode(bare + b"=" * (-len(bare) % 4), b"-_", validate=True)
        except binascii.Error as error:
            raise RunError(f"Invalid character found in base64: {error}") from error

    return mapped(decoded, input)


@kernel("StringFormat")
def string_format(
    *inputs: Array, template: str | bytes = "%s", placeholder: str | bytes = "%s", summarize: int = 3
) -> Array:
    """The template with a text of each input for each placeholder; an empty one stands between any two bytes."""
    whole, mark = (text.encode() if isinstance(text, str) else text for text in (template, placeholder))
    pieces = whole.split(mark) if mark else [whole[i : i + 1] for i in range(len(whole))] or [b""]
    if len(pieces) != len(inputs) + 1:
        raise ValueError(f"num placeholders in template and num inputs must match: {len(pieces) - 1} and {len(inputs)}")
    texts = [nested(value, summarize).encode(errors="surrogateescape") for value in inputs]
    return strings([pieces[0] + b"".join(text + rest for text, rest in zip(texts, pieces[1:], strict=True))], ())
