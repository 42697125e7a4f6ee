"""C's escapes in the texts of protocol buffers, such as ``\\n``, ``\\303`` and ``\\x41``."""

from __future__ import annotations

import re

_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def unescaped(text: bytes) -> bytes:
    """The bytes that a text stands for; an escape that C does not have stands for its letter."""
    return _ESCAPE.sub(_byte, text)


def _byte(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, letter = match.groups()
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    return bytes([int(hexadecimal, 16)]) if hexadecimal is not None else _LETTERS.get(letter, letter)
