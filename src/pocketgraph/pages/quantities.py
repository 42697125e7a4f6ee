"""Quantities with the unit that suits them."""

from __future__ import annotations

from collections.abc import Sequence


def duration(seconds: float) -> str:
    """A time with three digits and the unit that suits it: ``201 us``, ``16.8 ms``, ``1.25 s``."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        number = seconds / size
        if number >= 0.9995 or unit == "us":
            return f"{number:.0f} {unit}" if number >= 99.95 else f"{number:.3g} {unit}"
    raise AssertionError


def bytes_text(count: int) -> str:
    """A size for people: ``512 B``, ``1.95 MB`` (decimal units)."""
    if count < 1000:
        return f"{count} B"
    size = float(count)
    unit = "B"
    for unit in ("kB", "MB", "GB"):  # noqa: B007  used after the loop
        size /= 1000
        if size < 1000:
            break
    return f"{size:.2f} {unit}" if size < 100 else f"{size:.1f} {unit}"


def counted(count: int, one: str, many: str = "") -> str:
    """A number of things with its noun: ``1 photo``, ``1,020 photos``, ``3 classes``.

    Args:
        count: how many there are.
        one: the noun for a single one, perhaps with its verb: ``node``, ``node has``.
        many: the words for several, where they are not the noun's regular plural: ``nodes have``.
    """
    if count == 1:
        return f"1 {one}"
    return f"{count:,} {many or one + ('es' if one.endswith(('s', 'x', 'ch', 'sh')) else 's')}"


def listed(things: Sequence[str], most: int = 5, *, quoted: bool = False) -> str:
    """The first of some things, and how many more there are: ``a, b and 1,020 more``.

    Args:
        things: what they are called.
        most: how many to name.
        quoted: whether names stand between quotation marks.
    """
    named = [f"'{thing}'" if quoted else thing for thing in things[:most]]
    return ", ".join(named) + (f" and {len(things) - most:,} more" if len(things) > most else "")
