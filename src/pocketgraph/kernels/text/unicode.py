"""Strings as code points and back, from one encoding to another, and as n-grams of tokens."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from pocketgraph.budgets import check_memory, check_time
from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import INT64
from pocketgraph.kernels.arrays import Array, ints, reserve, strings
from pocketgraph.kernels.registry import kernel

MARK, MORE = "\ud800", "\ud801"
"""Stand for bytes that could not be decoded, the first one and each that follows; no encoding gives halves of surrogate
pairs otherwise."""
HANDLER = "pocketgraph-marks"
REPLACEMENT = 0xFFFD
OUTPUTS = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}


ORDER_MARKS = {
    "utf-16": {"utf-16-be": codecs.BOM_UTF16_BE, "utf-16-le": codecs.BOM_UTF16_LE},
    "utf-32": {"utf-32-be": codecs.BOM_UTF32_BE, "utf-32-le": codecs.BOM_UTF32_LE},
}
"""Of encodings whose order of bytes a mark tells: each order, the one without a mark first."""
C1_FILLED = {f"cp{page}" for page in (1250, 1251, 1252, 1253, 1254, 1255, 1257, 1258)}


def _marked(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return MARK + MORE * (error.end - error.start - 1), error.end


codecs.register_error(HANDLER, _marked)


def _known(encoding: str) -> str:
    try:
        name = codecs.lookup(encoding).name
        "".encode(name)
    except LookupError:
        raise RunError(f"Could not create converter for input encoding: {encoding}") from None
    return name


def _policy(errors: str, replacement: int) -> None:
    if errors not in ("strict", "replace", "ignore"):
        raise RunError(f"errors must be strict, replace or ignore, not '{errors}'")
    if not _is_character(replacement):
        raise RunError(f"replacement_char out of unicode codepoint range: {replacement}")


def _is_character(code: int) -> bool:
    """Whether this is a code point, and no half of a surrogate pair."""
    return 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF


def _in_order(items: Sequence[bytes], encoding: str) -> Iterator[tuple[bytes, str, int]]:
    """(bytes without a mark of their order, encoding with that order, bytes of the mark) of each text.

    As in ICU, whose converters TensorFlow keeps from one text to the next: without a mark the order is big-endian, and
    the first text tells that of UTF-16 for all.
    """
    marks = ORDER_MARKS.get(encoding)
    order = ""
    for item in items:
        if marks is None:
            yield item, encoding, 0
            continue
        found = next((name for name, mark in marks.items() if item.startswith(mark)), "")
        if order and encoding == "utf-16":
            yield item, order, 0
            continue
        size = len(marks[found]) if found else 0
        order = found or next(iter(marks)) if len(item) > 1 else order
        yield item[size:], order or next(iter(marks)), size


def _decoded(item: tuple[bytes, str, int], errors: str, replacement: int, controls: bool) -> Iterator[tuple[int, int]]:
    """(code point, place of its first byte) of each character; the first one's is that of a mark before it."""
    data, encoding, mark = item
    text = data.decode(encoding, HANDLER)
    filled = encoding in C1_FILLED
    if filled:
        text = _with_controls(text, data)
    if errors == "strict" and MARK in text:
        raise RunError("Invalid formatting on input string")
    place = 0
    for character in text:
        code = ord(character)
        if character in (MARK, MORE):
            bad, size = character == MARK, 1
        else:
            bad, size = controls and code < 0x20, 1 if filled else len(character.encode(encoding))
        if not bad and character != MORE:
            yield code, place
        elif bad and errors != "ignore":
            yield replacement, place
        place += size + mark
        mark = 0


def _with_controls(text: str, data: bytes) -> str:
    """Of code pages of a byte a character, bytes that stand for none as the control characters of their numbers."""
    return "".join(chr(byte) if c == MARK and byte < 0xA0 else c for c, byte in zip(text, data, strict=True))


def _register(op: str, outputs: int) -> None:
    """UnicodeDecode gives the first two of these results."""

    @kernel(op)
    def unicode_decode(
        input: Array,
        *,
        input_encoding: str,
        errors: str = "replace",
        replacement_char: int = REPLACEMENT,
        replace_control_characters: bool = False,
        Tsplits: DType = INT64,
    ) -> tuple[Array, ...]:
        """(row splits, code points int32, places of their first bytes int64) of all strings, flat."""
        encoding = _known(input_encoding)
        _policy(errors, replacement_char)
        codes: list[int] = []
        places: list[int] = []
        splits = [0]
        for item in _in_order(input.ravel().tolist(), encoding):
            for code, place in _decoded(item, errors, replacement_char, replace_control_characters):
                codes.append(code)
                places.append(place)
            splits.append(len(codes))
        return (np.array(splits, Tsplits.numpy), np.array(codes, np.int32), np.array(places, np.int64))[:outputs]


_register("UnicodeDecodeWithOffsets", 3)
_register("UnicodeDecode", 2)


def _output(encoding: str) -> str:
    if encoding not in OUTPUTS:
        raise RunError(f"the output encoding is one of {', '.join(OUTPUTS)}, not '{encoding}'")
    return OUTPUTS[encoding]


@kernel("UnicodeTranscode")
def unicode_transcode(
    input: Array,
    *,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = REPLACEMENT,
    replace_control_characters: bool = False,
) -> Array:
    """Each string in another encoding."""
    source, target = _known(input_encoding), _output(output_encoding)
    _policy(errors, replacement_char)
    result = []
    for item in _in_order(input.ravel().tolist(), source):
        found = _decoded(item, errors, replacement_char, replace_control_characters)
        result.append("".join(chr(code) for code, _ in found).encode(target))
    return strings(result, input.shape)


def _rows(data: Array, splits: Array) -> Iterator[Array]:
    """The rows of a ragged tensor."""
    ends = ints(splits)
    if ends and (ends[0] != 0 or ends[-1] != data.size or any(a > b for a, b in pairwise(ends))):
        raise RunError(f"splits {list(ends)[:9]} do not cut {data.size} values: they rise from 0 to that number")
    return (data[a:b] for a, b in pairwise(ends))


@kernel("UnicodeEncode")
def unicode_encode(
    input_values: Array,
    input_splits: Array,
    *,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = REPLACEMENT,
) -> Array:
    """A string of the code points of each row."""
    target = _output(output_encoding)
    _policy(errors, replacement_char)
    if not input_splits.size:
        raise RunError("input_splits has no elements; it begins with 0")
    result = []
    for row in _rows(input_values.ravel(), input_splits):
        codes = row.tolist()
        if errors == "strict" and not all(_is_character(code) for code in codes):
            raise RunError("Code point is out of range for Unicode, or half of a surrogate pair.")
        filler = chr(replacement_char) if errors == "replace" else ""
        result.append("".join(chr(code) if _is_character(code) else filler for code in codes).encode(target))
    return strings(result, (len(result),))


@kernel("StringNGrams")
def string_n_grams(
    data: Array,
    data_splits: Array,
    *,
    separator: str,
    ngram_widths: Sequence[int],
    left_pad: str,
    right_pad: str,
    pad_width: int,
    preserve_short_sequences: bool,
) -> tuple[Array, Array]:
    """(n-grams, row splits): of each row the runs of ``ngram_widths`` tokens, joined by ``separator``.

    A row is padded on both sides by at most ``pad_width`` tokens (-1: as many as give every token every place). A row
    too short for any n-gram gives one of all it has when ``preserve_short_sequences``.
    """
    joint, before, after = (t.encode() if isinstance(t, str) else t for t in (separator, left_pad, right_pad))
    if any(width < 1 for width in ngram_widths):
        raise RunError(f"ngram_widths must be 1 or more, got {list(ngram_widths)}")
    if not data.size or not data_splits.size:  # not even of padding
        return strings([b""] * data.size, data.shape), np.zeros_like(data_splits)
    found: list[bytes] = []
    size = 0
    splits = [0]
    for row in _rows(data.ravel(), data_splits):
        tokens: list[bytes] = row.tolist()
        start = len(found)
        for width in ngram_widths:
            pad = width - 1 if pad_width < 0 else min(pad_width, width - 1)
            count = len(tokens) + 2 * pad - width + 1
            reserve([max(count, 0), width], np.int64)
            whole = [before] * pad + tokens + [after] * pad
            sizes = np.cumsum([0, *(len(token) for token in whole)])
            size += int((sizes[width:] - sizes[:-width]).sum()) + max(count, 0) * (width - 1) * len(joint)
            check_memory(size, "the n-grams")
            check_time()
            found += [joint.join(whole[i : i + width]) for i in range(count)]
        if preserve_short_sequences and tokens and len(found) == start:
            pad = max(pad_width, 0)
            found.append(joint.join([before] * pad + tokens + [after] * pad))
        splits.append(len(found))
    return strings(found, (len(found),)), np.array(splits, dtype=data_splits.dtype).reshape(data_splits.shape)
