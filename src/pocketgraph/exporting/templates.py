"""Templates: texts with ``@word@`` in the places where something goes."""

from __future__ import annotations

import re
from collections.abc import Mapping


def filled(text: str, words: Mapping[str, str]) -> str:
    """A template with words in their places, all at once: what is put in is not looked through again."""
    if not words:
        return text
    places = re.compile("@(" + "|".join(map(re.escape, words)) + ")@")
    return places.sub(lambda found: words[found[1]], text)
