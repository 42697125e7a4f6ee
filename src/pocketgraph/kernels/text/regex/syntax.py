"""RE2's syntax: what a pattern says, and what is wrong with one, in RE2's words.

Source: the syntax page of RE2's documentation. Backreferences and assertions that look ahead or behind are not part of
it: nothing matches them in linear time.
"""

from __future__ import annotations

from typing import NamedTuple

from pocketgraph.kernels.text.regex.character_classes import (
    LAST,
    PERL,
    POSIX,
    Ranges,
    complement,
    folded,
    unicode_class,
    union,
)
from pocketgraph.kernels.text.regex.syntax_tree import (
    AnyByte,
    Assertion,
    Characters,
    Choice,
    Expression,
    Group,
    Repeat,
    Sequence,
)

MOST_REPEATS = 1000  # of one expression, as in RE2
DEEPEST = 200  # groups in groups
LETTER_ESCAPES = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
OCTAL = "01234567"


class PatternError(ValueError):
    """A pattern that RE2 does not take; the message is RE2's."""


class _Flags(NamedTuple):
    """Which of ``(?imsU)`` are on."""

    i: bool = False
    m: bool = False
    s: bool = False
    U: bool = False


class Parser:
    """Reads one pattern.

    Args:
        text: the pattern.

    Attributes:
        at: how far it was read.
        groups: how many groups have begun that count.
        depth: in how many groups it is.
        flags: what is on.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = self.groups = self.depth = 0
        self.flags = _Flags()

    def whole(self) -> Expression:
        """The whole pattern.

        Raises:
            PatternError: it is none.
        """
        found = self.choice()
        if self.at < len(self.text):
            raise PatternError(f"unexpected ): {self.text}")
        return found

    def peek(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def choice(self) -> Expression:
        flags = self.flags  # a change of them ends with the group that it is in
        ways = [self.sequence()]
        while self.peek("|"):
            self.at += 1
            ways.append(self.sequence())
        self.flags = flags
        return ways[0] if len(ways) == 1 else Choice(tuple(ways))

    def sequence(self) -> Expression:
        parts: list[Expression] = []
        repeated_from = -1  # where the repeat began that ended just here
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            start = self.at
            bounds = self.bounds()
            if bounds is None:
                found = self.part()
                if found is not None:
                    parts += found
                repeated_from = -1
                continue
            least, most = bounds
            is_greedy = not self.flags.U
            if self.peek("?"):
                self.at, is_greedy = self.at + 1, not is_greedy
            if repeated_from >= 0:
                raise PatternError(f"bad repetition operator: {self.text[repeated_from : self.at]}")
            if not parts:
                raise PatternError(f"no argument for repetition operator: {self.text[start : self.at]}")
            parts.append(Repeat(parts.pop(), least, most, is_greedy))
            if self.text[start] == "{" and _most_repeats(parts[-1]) > MOST_REPEATS:
                raise PatternError(f"invalid repetition size: {self.text[start : self.at]}")
            repeated_from = start
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def bounds(self) -> tuple[int, int | None] | None:
        """How often what stands before is repeated; None when no repeat stands here."""
        start, sign = self.at, self.text[self.at]
        if sign in "*+?":
            self.at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        if sign != "{":
            return None
        self.at += 1
        least = self.number()
        most: int | None = least
        if least is not None and self.peek(","):
            self.at += 1
            most = None if self.peek("}") else self.number()
            if most is None and not self.peek("}"):
                least = None
        if least is None or not self.peek("}"):
            self.at = start
            return None
        self.at += 1
        if least > MOST_REPEATS or (most is not None and (most > MOST_REPEATS or most < least)):
            raise PatternError(f"invalid repetition size: {self.text[start : self.at]}")
        return least, most

    def number(self) -> int | None:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in "0123456789":
            self.at += 1
        digits = self.text[start : self.at]
        if not digits or (len(digits) > 1 and digits[0] == "0"):
            return None
        return int(digits) if len(digits) < 9 else MOST_REPEATS + 1

    def part(self) -> list[Expression] | None:
        """What one sign, class, escape or group says; None when it only sets flags."""
        sign = self.text[self.at]
        if sign == "(":
            found = self.group()
            return None if found is None else [found]
        if sign == "[":
            return [self.characters_in_brackets()]
        if sign == "\\":
            return self.escape()
        self.at += 1
        if sign == "^":
            return [Assertion("line begin" if self.flags.m else "begin")]
        if sign == "$":
            return [Assertion("line end" if self.flags.m else "end")]
        if sign == ".":
            return [Characters(((0, LAST),) if self.flags.s else complement(((10, 10),)))]
        return [self.letter(ord(sign))]

    def letter(self, point: int) -> Characters:
        return Characters(self.cased(((point, point),)))

    def cased(self, ranges: Ranges) -> Ranges:
        return folded(ranges) if self.flags.i else ranges

    # Groups

    def group(self) -> Expression | None:
        start = self.at
        number = 0
        outer = self.flags
        if self.peek("(?P<") or (self.peek("(?<") and not self.peek("(?<=") and not self.peek("(?<!")):
            self.name(start)
            number = self.groups = self.groups + 1
        elif self.peek("(?"):
            if not self.read_flags(start):
                return None
        else:
            self.at += 1
            number = self.groups = self.groups + 1
        self.depth += 1
        if self.depth > DEEPEST:
            raise PatternError("expression nests too deeply")
        inside = self.choice()
        self.depth -= 1
        if not self.peek(")"):
            raise PatternError(f"missing ): {self.text}")
        self.at += 1
        self.flags = outer
        return Group(inside, number) if number else inside

    def name(self, start: int) -> None:
        begin = self.text.index("<", start) + 1
        end = self.text.find(">", begin)
        if end < 0:
            raise PatternError(f"invalid named capture group: {self.text[start:]}")
        name = self.text[begin:end]
        if not name or not all(c == "_" or c.isalnum() for c in name):
            raise PatternError(f"invalid named capture group: {self.text[start : end + 1]}")
        self.at = end + 1

    def read_flags(self, start: int) -> bool:
        """Reads ``(?flags)`` or ``(?flags:``; whether a group begins."""
        for sign in ("(?=", "(?!", "(?<=", "(?<!"):
            if self.peek(sign):
                raise PatternError(f"invalid perl operator: {sign}")
        self.at += 2
        flags, value, has_sign, is_any = self.flags, True, False, False
        while self.at < len(self.text):
            sign = self.text[self.at]
            self.at += 1
            if sign in "imsU":
                flags, is_any = flags._replace(**{sign: value}), True
            elif sign == "-" and not has_sign:
                value, has_sign, is_any = False, True, False
            elif sign in ":)" and (is_any or not has_sign):
                self.flags = flags
                return sign == ":"
            else:
                raise PatternError(f"invalid perl operator: {self.text[start : self.at]}")
        raise PatternError(f"invalid perl operator: {self.text[start:]}")

    # Escapes and classes

    def escape(self) -> list[Expression]:
        sign = self.text[self.at + 1 : self.at + 2]
        if sign in ("A", "z", "b", "B", "C", "Q"):
            self.at += 2
            if sign == "C":
                return [AnyByte()]
            if sign == "Q":
                end = self.text.find("\\E", self.at)
                quoted = self.text[self.at : end if end >= 0 else None]
                self.at += len(quoted) + 2 * (end >= 0)
                return [self.letter(ord(letter)) for letter in quoted]
            return [Assertion({"A": "begin", "z": "end", "b": "border", "B": "no border"}[sign])]
        if sign == "E":  # of a quotation that nothing began
            self.at += 2
            return []
        ranges = self.escaped_class()
        return [Characters(ranges)] if ranges is not None else [self.letter(self.escaped_letter())]

    def escaped_class(self) -> Ranges | None:
        """A class that an escape stands for: ``\\d``, ``\\pL``, ``\\P{Greek}``; None when it is a letter."""
        start, sign = self.at, self.text[self.at + 1 : self.at + 2]
        if sign.lower() in PERL:
            self.at += 2
            found = self.cased(PERL[sign.lower()])
            return complement(found) if sign.isupper() else found
        if sign not in ("p", "P"):
            return None
        name = self.text[self.at + 2 : self.at + 3]
        self.at += 3
        if name == "{":
            end = self.text.find("}", self.at)
            if end < 0:
                raise PatternError(f"invalid character class range: {self.text[start:]}")
            name, self.at = self.text[self.at : end], end + 1
        is_negated = (sign == "P") != name.startswith("^")
        known = unicode_class(name.removeprefix("^"))
        if known is None:
            raise PatternError(f"invalid character class range: {self.text[start : self.at]}")
        found = self.cased(known)
        return complement(found) if is_negated else found

    def escaped_letter(self) -> int:
        start = self.at
        if start + 1 >= len(self.text):
            raise PatternError("trailing \\")
        sign = self.text[start + 1]
        self.at += 2
        if sign in LETTER_ESCAPES:
            return LETTER_ESCAPES[sign]
        if sign == "0" or (sign in OCTAL and self.text[self.at : self.at + 1] in tuple(OCTAL)):
            digits = sign
            while len(digits) < 3 and self.text[self.at : self.at + 1] in tuple(OCTAL):
                digits, self.at = digits + self.text[self.at], self.at + 1
            return int(digits, 8)
        if sign == "x":
            return self.hexadecimal(start)
        if sign.isascii() and not sign.isalnum():
            return ord(sign)
        raise PatternError(f"invalid escape sequence: {self.text[start : self.at]}")

    def hexadecimal(self, start: int) -> int:
        """The code point of ``\\x41`` or ``\\x{1F600}``, of which the first two signs are read."""
        is_in_braces = self.peek("{")
        self.at += is_in_braces
        point, digits = 0, 0
        while point <= LAST and (is_in_braces or digits < 2):
            sign = self.text[self.at : self.at + 1]
            self.at += len(sign)
            if is_in_braces and sign == "}" and digits:
                return point
            if not sign or sign not in "0123456789abcdefABCDEF":
                point = LAST + 1
            else:
                point, digits = 16 * point + int(sign, 16), digits + 1
        if point > LAST:
            raise PatternError(f"invalid escape sequence: {self.text[start : self.at]}")
        return point

    def characters_in_brackets(self) -> Expression:
        start = self.at
        self.at += 1
        is_negated = self.peek("^")
        self.at += is_negated
        found: list[tuple[int, int]] = []
        is_first = True
        while is_first or not self.peek("]"):
            if self.at >= len(self.text):
                raise PatternError(f"missing ]: {self.text[start:]}")
            is_first = False
            found += self.class_in_brackets(start)
        self.at += 1
        ranges = union(found)
        return Characters(complement(ranges) if is_negated else ranges)

    def class_in_brackets(self, start: int) -> Ranges:
        """One range or class inside of brackets."""
        if self.peek("[:"):
            end = self.text.find(":]", self.at + 2)
            if end >= 0:
                whole = self.text[self.at : end + 2]
                name = whole[2:-2].removeprefix("^")
                if name not in POSIX:
                    raise PatternError(f"invalid character class range: {whole}")
                self.at = end + 2
                found = self.cased(POSIX[name])
                return complement(found) if whole[2] == "^" else found
        if self.peek("\\"):
            escaped = self.escaped_class()
            if escaped is not None:
                return escaped
        begin = self.at
        first = last = self.point_in_brackets(start)
        if self.peek("-") and not self.peek("-]") and self.at + 1 < len(self.text):
            self.at += 1
            last = self.point_in_brackets(start)
            if last < first:
                raise PatternError(f"invalid character class range: {self.text[begin : self.at]}")
        return self.cased(((first, last),))

    def point_in_brackets(self, start: int) -> int:
        if self.at >= len(self.text):
            raise PatternError(f"missing ]: {self.text[start:]}")
        if self.peek("\\"):
            return self.escaped_letter()
        self.at += 1
        return ord(self.text[self.at - 1])


def _most_repeats(part: Expression) -> int:
    """How often repeats inside of each other repeat one thing at most."""
    if isinstance(part, Repeat):
        times = part.most if part.most is not None else part.least
        return max(times, 1) * _most_repeats(part.part)
    if isinstance(part, Group):
        return _most_repeats(part.part)
    if isinstance(part, (Sequence, Choice)):
        return max(map(_most_repeats, part.parts), default=1)
    return 1


def parse(pattern: bytes) -> tuple[Expression, int]:
    """What a pattern says, and how many groups it has.

    Raises:
        PatternError: RE2 does not take it; the message is RE2's.
    """
    try:
        text = pattern.decode()
    except UnicodeDecodeError:
        raise PatternError("invalid UTF-8") from None
    parser = Parser(text)
    return parser.whole(), parser.groups
