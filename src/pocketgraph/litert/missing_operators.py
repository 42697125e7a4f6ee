"""What LiteRT says of operators that a file asks for and that it does not have, in words that help."""

from __future__ import annotations

import re

REGISTERED = "the program that the file is for registers it, as MediaPipe does with operators of its own"
CUSTOM = re.compile(r"unresolved custom op: (\S+?)\.?(\s|$)")


def missing_operator(said: str) -> str:
    """What is missing where LiteRT's message is of a custom operator that nobody registered; "" where it is not.

    >>> missing_operator("Encountered unresolved custom op: Blur.\\nSee instructions: https://…")
    "LiteRT has no operator 'Blur', which the file asks for by name"
    """
    found = CUSTOM.search(said)
    return f"LiteRT has no operator '{found[1]}', which the file asks for by name" if found else ""
