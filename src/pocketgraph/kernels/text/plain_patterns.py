"""Patterns in which a backtracking matcher never goes back far, for Python's own, which replaces all matches at once.

Such a pattern is a choice of characters in a row; the last may be repeated. A place of the text where it does not match
costs at most the pattern's length. Nearly all patterns that models hold are such.
"""

from __future__ import annotations

import re

LONGEST, MOST_WAYS, MOST_REPEATS = 1_000, 64, 100  # characters, alternatives, of one character
BEYOND_ASCII = rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
"""A character of several bytes, as RE2 knows them."""
ASCII = frozenset(range(128))
DIGITS = frozenset(b"0123456789")
WORDS = DIGITS | frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
PUNCTUATION = frozenset(range(33, 127)) - WORDS | frozenset(b"_")
CLASSES = {"d": DIGITS, "s": frozenset(b"\t\n\f\r "), "w": WORDS, "punct": PUNCTUATION, "digit": DIGITS}
CLASSES |= {
    "alnum": WORDS - frozenset(b"_"),
    "alpha": WORDS - DIGITS - frozenset(b"_"),
    "space": frozenset(b"\t\n\v\f\r "),
}
CONTROLS = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
CHARACTER = r"[^\\]|\\[afnrtv]|\\x[0-7][0-9A-Fa-f]|\\[^\w\s\x00-\x1f\x7f-\U0010ffff]"
TOKEN = re.compile(
    r"(?P<edge>\^|\$|\\b)|(?P<way>\|)"
    r"|(?:(?P<any>\.)|\\(?P<kind>[dswDSW])"
    rf"|\[(?P<not>\^?)(?P<items>\]?(?:\[:[a-z]+:\]|(?!\[:|\\[^dswafnrtvx\W]|\\_)(?:\\.|[^\\\]]))*)\]"
    rf"|(?P<one>(?![()\[{{*+?]){CHARACTER}))(?P<repeat>[*+?]\??|\{{\d+(?:,\d*)?\}}\??)?",
    re.DOTALL,
)
ITEM = re.compile(
    rf"\\(?P<kind>[dsw])|\[:(?P<posix>[a-z]+):\]|(?P<low>{CHARACTER})(?:-(?P<high>(?!-){CHARACTER}))?", re.DOTALL
)
EDGES = {"^": rb"\A", "$": rb"\Z", "\\b": rb"\b"}
REPEATED = re.compile(r"[*+?{]")


def plain_pattern(pattern: bytes) -> re.Pattern[bytes] | None:
    """A pattern of RE2's that matches no empty text, in Python's syntax, over bytes; None where it may not be plain."""
    try:
        text = pattern.decode()
    except UnicodeDecodeError:
        return None
    is_group = len(text) > 1 and text[0] == "(" and text[-1] == ")" and text[1] != "?"
    ways = _ways(text[1:-1] if is_group else text) if len(text) <= LONGEST else None
    if ways is None or len(ways) > MOST_WAYS:
        return None
    return re.compile((b"(%s)" if is_group else b"%s") % b"|".join(ways))


def _ways(text: str) -> list[bytes] | None:
    """The alternatives of a plain pattern."""
    ways, row, is_empty, is_over, at = [], b"", True, False, 0
    while at < len(text):
        token = TOKEN.match(text, at)
        if token is None:
            return None
        at = token.end()
        if token["way"]:
            if is_empty:
                return None
            ways.append(row)
            row, is_empty, is_over = b"", True, False
        elif is_over:
            return None
        elif token["edge"]:
            if REPEATED.match(text, at):
                return None
            row += EDGES[token["edge"]]
        else:
            spelled, repeat = _characters(token), token["repeat"]
            if spelled is None or (repeat and (REPEATED.match(text, at) or _too_often(repeat))):
                return None
            row += spelled + (repeat or "").encode()
            is_over = repeat is not None
            is_empty = is_empty and is_over and (repeat[0] in "*?" or repeat.startswith("{0"))
    return None if is_empty else [*ways, row]


def _too_often(repeat: str) -> bool:
    """Whether RE2 may refuse to repeat so often."""
    numbers = [int(number) for number in re.findall(r"\d+", repeat)]
    return bool(numbers) and (numbers[-1] < numbers[0] or max(numbers) > MOST_REPEATS)


def _characters(token: re.Match[str]) -> bytes | None:
    """One character of a token's, in Python's syntax."""
    if token["any"]:
        return _one_of(ASCII - {10}, BEYOND_ASCII)
    if token["kind"]:
        held = CLASSES[token["kind"].lower()]
        return _one_of(held) if token["kind"].islower() else _one_of(ASCII - held, BEYOND_ASCII)
    if token["one"]:
        point = _point(token["one"])
        return _one_of({point}) if point < 128 else b"(?:%s)" % re.escape(chr(point).encode())
    single: set[int] = set()
    wide: list[bytes] = []
    items, at = token["items"], 0
    while at < len(items):
        item = ITEM.match(items, at)
        if item is None:
            return None
        if name := item["kind"] or item["posix"]:
            if name not in CLASSES:
                return None
            single |= CLASSES[name]
        elif (low := _point(item["low"])) >= 128 and not item["high"]:
            wide.append(re.escape(chr(low).encode()))
        else:
            high = _point(item["high"] or item["low"])
            if high < low or high >= 128 or (item["low"] == "-" and 0 < at < len(items) - 1):
                return None
            single.update(range(low, high + 1))
        at = item.end()
    if not items or (token["not"] and wide):
        return None
    return _one_of(single, *wide) if not token["not"] else _one_of(ASCII - single, BEYOND_ASCII)


def _point(spelled: str) -> int:
    """The code point of a character, which may be escaped."""
    if len(spelled) == 1:
        return ord(spelled)
    return int(spelled[2:], 16) if spelled[1] == "x" else CONTROLS.get(spelled[1], ord(spelled[1]))


def _one_of(points: set[int] | frozenset[int], *wide: bytes) -> bytes:
    single = [b"[%s]" % b"".join(b"\\x%02x" % point for point in sorted(points))] if points else []
    ways = [*single, *wide]
    return b"(?:%s)" % b"|".join(ways) if wide else ways[0]
