"""A near miss: a place that a rule left alone although it looks as if it were for the rule.

A rule's file may have a function ``near_misses(graph, arguments)``, which gives them for the graph that the rule made.
"""

from __future__ import annotations

from typing import NamedTuple

from pocketgraph.graph.groups import by_key


class Miss(NamedTuple):
    """A place that a rule left alone.

    Attributes:
        node: its head.
        why: the reason.
        remedy: what to run first, or "".
    """

    node: str
    why: str
    remedy: str = ""


def remedies(misses: list[Miss]) -> dict[str, list[Miss]]:
    """The near misses that another rule would help, by that rule."""
    return by_key((miss.remedy, miss) for miss in misses if miss.remedy)
