"""Names that C takes, from names that it does not."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pocketgraph.errors import UsageError, option

KEYWORDS = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    alignas alignof and asm bool catch class compl concept constexpr decltype delete explicit export false friend
    mutable namespace new noexcept not nullptr operator or private protected public requires template this throw
    true try typeid typename using virtual xor main""".split()  # noqa: SIM905  (a list of a hundred strings is no clearer)
)
"""Words of C and, since the header is for both, of C++."""
TAKEN = frozenset(
    """A W arena weights digest it mean deviation classes class_names put score show compare set_up read_file
    read_number read_picture is_picture neighbours tolerance normalized_channels errno assert NULL EOF index rindex
    stdin stdout stderr abs acos asin atan atan2 atof atoi atol bsearch cabs calloc ceil clock close cos cosh ctime
    div erf exit exp expf fabs fabsf floor floorf fmod fmodf fopen fputc fputs fread free frexp fstat fwrite getc
    getenv gets gmtime hypot isnan isfinite ldexp lgamma log log10 logf malloc memchr memcmp memcpy memmove memset
    mktime mmap modf munmap open perror pow powf printf putc puts qsort raise rand read realloc remove rename rewind
    rint rintf round scanf signal sin sinf sinh sprintf sqrt sqrtf srand stat strcat strchr strcmp strcpy strlen
    strtok system tan tanf tanh tanhf time tmpfile write y0 y1 yn j0 j1 jn""".split()  # noqa: SIM905
)
"""Names of the C library and of what the library's own files define."""
LONGEST = 40  # characters; C99 compilers tell at least 31 of an external name apart


def checked_name(name: str) -> str:
    """The name that a person chose for the library.

    Raises:
        UsageError: C does not take it.
    """
    if name in KEYWORDS:
        why = "a word of C or C++"
    elif name in TAKEN or name.startswith(("pg_", "PG_")) or re.fullmatch(r"u?int(_\w+)?\d+_t", name):
        why = "taken already"
    elif not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        why = "not a name in C"
    elif len(name) > LONGEST:
        why = f"longer than {LONGEST} characters"
    else:
        return name
    better = re.sub(r"^(pg_|\d+)+", "", identifiers([name])[0], flags=re.IGNORECASE).rstrip("_")[: LONGEST - 6] or "my"
    raise UsageError(
        f"the library cannot be called '{name}': that is {why}", hint=f"try {option('prefix')}={better}_model"
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
