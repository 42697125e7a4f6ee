"""Names that C takes, from names that it does not."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pocketgraph.errors import UsageError

KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long "
    "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
    # C++'s, since model.h is for both
    "alignas alignof and asm bool catch class compl concept constexpr decltype delete explicit export false friend "
    "mutable namespace new noexcept not nullptr operator or private protected public requires template this throw "
    "true try typeid typename using virtual xor main".split()
)
LONGEST = 40  # characters; C99 compilers tell at least 31 of an external name apart


def checked_name(name: str) -> str:
    """The name that a person chose for the library.

    Raises:
        UsageError: C does not take it.
    """
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) and name not in KEYWORDS and len(name) <= LONGEST:
        return name
    if name.startswith(("pg_", "PG_")) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in KEYWORDS:
        why = "a word of C or C++" if name in KEYWORDS else "not a name in C"
    else:
        why = f"longer than {LONGEST} characters"
    raise UsageError(
        f"the library cannot be called '{name}': that is {why}", hint=f"try --name={identifiers([name])[0] or 'model'}"
    )


def identifiers(names: Iterable[str]) -> list[str]:
    """An identifier for each name, all different.

    >>> identifiers(["input", "import/conv 1", "import/conv-1", "2x", "int"])
    ['input', 'import_conv_1', 'import_conv_1_2', 'x2x', 'int_']
    """
    taken: set[str] = set()
    made = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[-LONGEST:].strip("_") or "x"
        if plain[0].isdigit():
            plain = f"x{plain}"
        if plain in KEYWORDS:
            plain = f"{plain}_"
        chosen, number = plain, 2
        while chosen.lower() in taken:
            chosen = f"{plain}_{number}"
            number += 1
        taken.add(chosen.lower())
        made.append(chosen)
    return made


def literal(text: str) -> str:
    """A string literal of any text."""
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\?' else f"\\{byte:03o}" for byte in text.encode()
    )
    return f'"{plain}"'


def comment(text: str) -> str:
    """A comment of any text."""
    plain = "".join(letter if letter.isprintable() and letter.isascii() else "?" for letter in text)
    return f"/* {plain.replace('*/', '* /').replace('/*', '/ *')} */"
