"""Finds names that are the same but for their numbers: the steps of an unrolled loop, the blocks of a deep network."""

from __future__ import annotations

import re
from collections.abc import Sequence

NUMBERS = re.compile(r"\d+")
FEWEST = 4  # names that make a group


def alike(names: Sequence[str], fewest: int = FEWEST) -> list[list[int]]:
    """The places of names that differ in numbers only, each group where its first stands; others alone.

    >>> alike(["x", "step_1/mul", "step_2/mul", "y", "step_3/mul", "step_4/mul"])
    [[0], [1, 2, 4, 5], [3]]
    """
    groups: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        groups.setdefault(NUMBERS.sub("#", name), []).append(at)
    found = []
    for at, name in enumerate(names):
        group = groups[NUMBERS.sub("#", name)]
        if len(group) < fewest:
            found.append([at])
        elif group[0] == at:
            found.append(group)
    return found
