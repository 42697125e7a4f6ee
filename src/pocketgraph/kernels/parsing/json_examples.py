"""DecodeJSONExample: tf.train.Example records written as JSON become encoded ones.

The mapping is protobuf's (https://protobuf.dev/programming-guides/json/): names in either spelling, 64-bit integers as
numbers or texts, bytes in either base64 alphabet. As protobuf's parser does, it takes single quotes, bare keys and a
comma too many.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from pocketgraph.graph.dtype import FLOAT, INT64
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.parsing.example_records import LISTS
from pocketgraph.kernels.registry import kernel
from pocketgraph.protobuf.wire import bytes_field, varint

DEEPEST = 100  # levels of brackets, as protobuf allows
TOKEN = re.compile(
    r"""[ \t\r\n]*(?:(?P<mark>[{}\[\]:,])|(?P<double>"(?:[^"\\]|\\.)*")|(?P<single>'(?:[^'\\]|\\.)*')"""
    r"""|(?P<number>-?[0-9][0-9.eE+-]*)|(?P<word>[A-Za-z_$][A-Za-z0-9_$]*)|(?P<end>$))""",
    re.DOTALL,
)
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
HEXADECIMAL = re.compile(r"[+-]?0[xX][0-9a-fA-F.]+(?:[pP][+-]?[0-9]+)?")
NOT_FINITE = ("nan", "inf", "infinity")
FIELDS = {"bytesList": 1, "bytes_list": 1, "floatList": 2, "float_list": 2, "int64List": 3, "int64_list": 3}


class _JsonNumber(str):
    """A number as it is written."""


class Members(list[tuple[str, Any]]):
    """What an object holds, in the order of the text."""


def parsed(text: str) -> Any:
    """The value of a JSON text: Members, list, str, _JsonNumber, bool or None.

    Raises:
        ValueError: it is none; the message says why.
    """
    tokens: list[tuple[str, str]] = []
    position = depth = 0
    while not tokens or tokens[-1][0] != "end":
        match = TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"unexpected character at {position}")
        kind = str(match.lastgroup)
        tokens.append((kind, match[kind]))
        depth += (match[kind] in ("{", "[")) - (match[kind] in ("}", "]")) if kind == "mark" else 0
        if depth > DEEPEST:
            raise ValueError(f"more than {DEEPEST} objects and lists within each other")
        position = match.end()
    if len(tokens) == 1:
        raise ValueError("unexpected EOF")
    before = [("end", ""), *tokens]
    strict = []
    for (_, last), (kind, token), (_, following) in zip(before, tokens, tokens[1:], strict=False):
        if kind == "single":
            inner = token[1:-1].replace("\\'", "'")
            strict.append(
                '"' + re.sub(r'\\.|"', lambda m: '\\"' if m[0] == '"' else m[0], inner, flags=re.DOTALL) + '"'
            )
        elif kind == "word" and following == ":":
            strict.append(f'"{token}"')
        elif kind == "word" and token not in ("true", "false", "null"):
            raise ValueError(f"unexpected '{token}'")
        elif not (token == "," and following in ("}", "]") and last not in ("{", "[", ",", ":")):
            strict.append(token)
    return json.loads(
        " ".join(strict), object_pairs_hook=Members, parse_int=_JsonNumber, parse_float=_JsonNumber, strict=False
    )


def members(value: Any, where: str) -> Members:
    if not isinstance(value, Members):
        raise ValueError(f"{where}: an object is wanted")
    return value


def encoded_example(value: Any) -> bytes:
    """The encoded Example of a JSON value.

    Raises:
        ValueError: it is not one; the message says where.
    """
    out = b""
    for name, features in members(value, "the record"):
        if name != "features":
            raise ValueError(f"no such field: '{name}'")
        if features is not None:
            out += bytes_field(1, encoded_features(features))
    return out


def encoded_features(value: Any) -> bytes:
    out = []
    for name, entries in members(value, "features"):
        if name != "feature":
            raise ValueError(f"features: no such field: '{name}'")
        seen: set[str] = set()
        for key, feature in members(entries, "features.feature") if entries is not None else ():
            where = f"features.feature[{key!r}]"
            if key in seen:
                raise ValueError(f"{where}: the key comes twice")
            seen.add(key)
            entry = bytes_field(1, key.encode())
            out.append(
                bytes_field(1, entry if feature is None else entry + bytes_field(2, encoded_feature(feature, where)))
            )
    return b"".join(out)


def encoded_feature(value: Any, where: str) -> bytes:
    found = [(name, inner) for name, inner in members(value, where) if name not in FIELDS or inner is not None]
    for name, _ in found:
        if name not in FIELDS:
            raise ValueError(f"{where}: no such field: '{name}'")
    if len(found) > 1:
        raise ValueError(f"{where}: '{found[1][0]}' is set, but '{found[0][0]}' is too; a feature is one list")
    return b"".join(
        bytes_field(FIELDS[name], encoded_list(FIELDS[name], inner, f"{where}.{name}")) for name, inner in found
    )


def encoded_list(number: int, value: Any, where: str) -> bytes:
    out = []
    for name, elements in members(value, where):
        if name != "value":
            raise ValueError(f"{where}: no such field: '{name}'")
        if elements is None:
            continue
        out += [encoded_element(number, element, where) for element in flat(elements)]
    return b"".join(out)


def flat(value: Any) -> Iterator[Any]:
    """A value that is no list stands for a list of it, and lists in lists for one."""
    if isinstance(value, list) and not isinstance(value, Members):
        for element in value:
            yield from flat(element)
    else:
        yield value


def encoded_element(number: int, element: Any, where: str) -> bytes:
    """One value of a list with its tag, not packed, as protobuf's JSON parser writes it."""
    try:
        if element is not None and not isinstance(element, str):
            raise ValueError("another kind of value is wanted")
        if LISTS[number] is INT64:
            return b"\x08" + varint(integer(element or ("0" if element is None else "")))
        if LISTS[number] is FLOAT:
            return b"\x0d" + single(real(element or ("0" if element is None else "")))
        if isinstance(element, _JsonNumber):
            raise ValueError("a text in base64 is wanted")
        return bytes_field(1, decoded(element or ""))
    except ValueError as error:
        raise ValueError(f"{where}.value: {error}") from None


def integer(text: str) -> int:
    """Raises ValueError: it is no whole number of 64 bits."""
    hexadecimal = HEXADECIMAL.fullmatch(text) is not None and not isinstance(text, _JsonNumber)
    if not hexadecimal and NUMBER.fullmatch(text) is None:
        raise ValueError("an integer is wanted")
    try:
        value = int(text, 16 if hexadecimal else 10)
    except ValueError:
        whole = float.fromhex(text) if hexadecimal else float(text)
        if not whole.is_integer():
            raise ValueError("an integer is wanted") from None
        value = int(whole)
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError("the integer does not fit 64 bits")
    return value


def real(text: str) -> float:
    """Raises ValueError: it is no number, or a finite one beyond those of 32 bits."""
    bare = text if isinstance(text, _JsonNumber) else text.strip(" \t\r\n\v\f")
    if bare[bare[:1] in ("+", "-") :].lower() in NOT_FINITE:
        return float(bare)
    if HEXADECIMAL.fullmatch(bare):
        value = float.fromhex(bare)
    elif NUMBER.fullmatch(bare):
        value = float(bare)
    else:
        raise ValueError("a number is wanted")
    if value in (math.inf, -math.inf):
        raise ValueError("the number does not fit a float of 32 bits")
    return value


def single(value: float) -> bytes:
    """Raises ValueError: it is finite, and not as a float of 32 bits."""
    try:
        return struct.pack("<f", value)
    except OverflowError:
        raise ValueError("the number does not fit a float of 32 bits") from None


def decoded(text: str) -> bytes:
    """The bytes of a base64 text in either alphabet; what fills it up at the end is there or not.

    Raises:
        ValueError: it is none.
    """
    bare = text.translate(str.maketrans("-_", "+/")).rstrip("=")
    if text[len(bare) :] not in ("", "=" * (-len(bare) % 4)):
        raise ValueError("a text in base64 is wanted")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a text in base64 is wanted") from None


@kernel("DecodeJSONExample")
def decode_json_example(json_examples: Array) -> Array:
    """The encoded Example of each JSON text; the shape stays."""
    result = np.empty(json_examples.shape, object)
    for index, text in enumerate(json_examples.reshape(-1).tolist()):
        try:
            result.reshape(-1)[index] = encoded_example(parsed(text.decode()))
        except UnicodeError:
            raise ValueError("Error while parsing JSON: invalid UTF-8 in a text") from None
        except ValueError as error:
            raise ValueError(f"Error while parsing JSON: invalid JSON in tensorflow.Example: {error}") from None
    return result
