"""What a docstring says of each argument, for manual pages and the help of options."""

from __future__ import annotations

import re
from collections.abc import Iterable


def meanings(lines: Iterable[str]) -> dict[str, str]:
    """What is said of each argument, by name.

    Args:
        lines: those below ``Args:``, without their common indent; ``name: meaning`` or ``one, other: meaning``, and
            what goes on is indented.
    """
    found: dict[str, str] = {}
    names: list[str] = []
    for line in lines:
        match = re.match(r"(\w+(?:, \w+)*): (.*)", line)
        if match:
            names = match[1].split(", ")
            for name in names:
                found[name] = match[2].strip()
        elif line.strip():
            for name in names:
                found[name] = f"{found[name]} {line.strip()}"
    return found
