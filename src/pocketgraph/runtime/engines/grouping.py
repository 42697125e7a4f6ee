"""Groups what hangs together and is of one kind, so that no way leads out of a group and back into it.

Neighbouring groups are merged as long as that still holds.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

from pocketgraph.graph.groups import DisjointSets, finishing

MOST_MERGES = 64  # each looks once at everything that depends on each other: milliseconds in graphs of thousands

Key = TypeVar("Key", bound=Hashable)


def grouped(sources: Mapping[Key, Sequence[Key]], kinds: Mapping[Key, Hashable | None]) -> dict[Key, Key]:
    """The group of each unit that has a kind, as one unit that stands for the group.

    A unit's level counts how often the kind changes on the longest way to it. Units of one level and kind that hang
    together make a group. A way out of a group and back would pass another level, and levels never fall, or only units
    of the same level and kind, and these are in the group.

    Args:
        sources: what each unit depends on, units in an order in which they can run; who is no key does not count.
        kinds: the kind of each unit; None: it belongs to no group.
    """
    level: dict[Key, int] = {}
    joined: DisjointSets[Key] = DisjointSets()
    for unit, given in sources.items():
        kind = kinds[unit]
        level[unit] = max((level[s] + (kinds[s] != kind) for s in given if s in level), default=0)
        if kind is None:
            continue
        joined.add(unit)
        for source in given:
            if source in joined and kinds[source] == kind and level[source] == level[unit]:
                joined.join(unit, source)
    return {unit: joined.find(unit) for unit in joined}


def merged(
    sources: Mapping[Key, Sequence[Key]], group: Mapping[Key, Key], kinds: Mapping[Key, Hashable | None] | None = None
) -> list[list[Key]]:
    """The groups, neighbours merged, in an order in which they can run.

    Cutting by levels keeps apart what first meets late, such as a net and the random numbers of its last dropout; two
    such groups can be one when whatever the first gives to others does not come back into the second.

    Args:
        sources: what each unit depends on, units in an order in which they can run.
        group: a group's representative for each unit that belongs to one; no way leads out of a group and back.
        kinds: the kind of each unit, the same within a group; only groups of one kind are merged. None: all are alike.
    """
    home: dict[Key, Key] = {unit: group.get(unit, unit) for unit in sources}
    edges: dict[Key, set[Key]] = {}
    for unit, given in sources.items():
        edges.setdefault(home[unit], set()).update(home[s] for s in given if s in home and home[s] != home[unit])
    groups = dict.fromkeys(home[unit] for unit in sources if unit in group)
    into: dict[Key, Key] = {}
    for _ in range(MOST_MERGES):
        pair = _mergeable(edges, groups, kinds or {})
        if pair is None:
            break
        first, second = pair
        into[first] = second
        del groups[first]
        edges[second] = (edges[second] | edges.pop(first)) - {first, second}
        for given_to in edges.values():
            if first in given_to:
                given_to.remove(first)
                given_to.add(second)
    parts: dict[Key, list[Key]] = {}
    for unit in sources:
        if unit in group:
            own = home[unit]
            while own in into:
                own = into[own]
            parts.setdefault(own, []).append(unit)
    return [parts[own] for own in _sorted(edges) if own in parts]


def _sorted(edges: Mapping[Key, Collection[Key]]) -> list[Key]:
    """Everything after what it depends on."""
    return list(finishing(edges, lambda own: reversed([*edges[own]])))


def _mergeable(
    edges: Mapping[Key, Collection[Key]], groups: Collection[Key], kinds: Mapping[Key, Hashable | None]
) -> tuple[Key, Key] | None:
    """Two groups of one kind, the second taking from the first, with no other way between them, if there are any."""
    if not any(source in groups for own in groups for source in edges[own]):
        return None
    bit = {own: 1 << place for place, own in enumerate(groups)}
    above: dict[Key, int] = {}  # the groups that each depends on, however far
    for own in _sorted(edges):
        above[own] = 0
        for source in edges[own]:
            above[own] |= above[source] | bit.get(source, 0)
    for second in groups:
        for first in edges[second]:
            if first not in groups or kinds.get(first) != kinds.get(second):
                continue
            if not any(above[s] & bit[first] for s in edges[second] if s != first):
                return first, second
    return None
