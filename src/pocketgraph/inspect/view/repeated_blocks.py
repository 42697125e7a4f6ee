"""Groups what repeats in a picture: blocks of a deep network, steps of an unrolled loop, become one box each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.inspect.view.nodes import Shown
from pocketgraph.inspect.view.scope import NODE, SCOPE, Scope, ScopeItem
from pocketgraph.pages.parts import NUMBERS

FEWEST = 3  # copies that make a group
LEAST = 12  # nodes that a group has to hold together
LONGEST = 64  # items of a copy


def group_repeats(scopes: list[Scope], shown: Sequence[Shown]) -> None:
    """Puts copies that follow each other in a scope into a scope of their own, which opens on a click.

    Items are alike when their names differ in numbers only and what is in them is alike; a copy may be several of them.
    """
    kinds = _kinds(scopes, shown)
    for at in range(len(scopes)):
        scope = scopes[at]
        if len(scope.items) >= FEWEST:
            scope.items = _grouped(scopes, at, [kinds[item.kind, item.number] for item in scope.items], shown)


def _kinds(scopes: Sequence[Scope], shown: Sequence[Shown]) -> dict[tuple[int, int], int]:
    """A number for each node and scope; those of alike ones are equal."""
    known: dict[object, int] = {}
    found: dict[tuple[int, int], int] = {}
    for number in range(len(scopes) - 1, -1, -1):  # the inner scopes come last
        scope = scopes[number]
        inside = []
        for item in scope.items:
            if item.kind == NODE:
                node = shown[item.number].node
                what = (NUMBERS.sub("#", node.name.removeprefix(f"{scope.path}/")), node.op)
                found[NODE, item.number] = known.setdefault(what, len(known))
            inside.append(found[item.kind, item.number])
        found[SCOPE, number] = known.setdefault((NUMBERS.sub("#", scope.label), tuple(inside)), len(known))
    return found


def _grouped(scopes: list[Scope], at: int, kinds: Sequence[int], shown: Sequence[Shown]) -> list[ScopeItem]:
    scope = scopes[at]
    items, place = [], 0
    for start, length, copies in _runs(np.array(kinds)):
        inside = scope.items[start : start + length * copies]
        if sum(scopes[item.number].nodes if item.kind == SCOPE else 1 for item in inside) < LEAST:
            continue
        items += scope.items[place:start]
        place = start + len(inside)
        names = [_name(scopes, scope, item, shown) for item in inside]
        label = _label([names[number : number + length] for number in range(0, len(names), length)])
        group = _within(scopes, at, label, inside)
        scopes[group].copies = copies
        if length > 1:
            steps = [
                _within(scopes, group, f"{number + 1}", inside[number * length : (number + 1) * length])
                for number in range(copies)
            ]
            scopes[group].items = [ScopeItem(SCOPE, step) for step in steps]
        items.append(ScopeItem(SCOPE, group))
    return items + scope.items[place:]


def _within(scopes: list[Scope], parent: int, label: str, items: list[ScopeItem]) -> int:
    """A new scope around items."""
    number = len(scopes)
    scopes.append(Scope(scopes[parent].path, label, parent, list(items)))
    for item in items:
        if item.kind == SCOPE:
            scopes[item.number].parent = number
    scopes[number].nodes = sum(scopes[item.number].nodes if item.kind == SCOPE else 1 for item in items)
    return number


def _runs(kinds: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[tuple[int, int, int]]:
    """Where something repeats: start, length of a copy, and how many; the longest first found, then sorted, apart."""
    found = []
    for length in range(1, min(LONGEST, len(kinds) // FEWEST) + 1):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], kinds[:-length] == kinds[length:], [0]])))
        for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            copies = (end - start) // length + 1
            if copies >= FEWEST:
                found.append((start, length, copies))
    found.sort(key=lambda run: (-run[1] * run[2], run[1], run[0]))
    taken = np.zeros(len(kinds), bool)
    kept = []
    for start, length, copies in found:
        end = start + length * copies
        if not taken[start:end].any():
            taken[start:end] = True
            kept.append((start, length, copies))
    return sorted(kept)


def _name(scopes: Sequence[Scope], scope: Scope, item: ScopeItem, shown: Sequence[Shown]) -> str:
    if item.kind == SCOPE:
        return scopes[item.number].label
    return shown[item.number].node.name.removeprefix(f"{scope.path}/")


def _label(copies: Sequence[Sequence[str]]) -> str:
    """A name for copies: what their items have in common, else the first and the last of them.

    >>> _label([["a_1/mul", "a_1/add"], ["a_2/mul", "a_2/add"]]), _label([["conv2d_7"], ["conv2d_8"]])
    ('a_#', 'conv2d_#')
    """
    patterns = [_pattern([copy[at] for copy in copies]) for at in range(len(copies[0]))]
    first, last = min(patterns), max(patterns)
    differ = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    if first == last or differ > 2:
        return first[:differ].rstrip("_/")
    return f"{patterns[0]} … {patterns[-1]}"


def _pattern(names: Sequence[str]) -> str:
    """Names that are alike, with a sign for the numbers in which they differ."""
    apart = [NUMBERS.findall(name) for name in names]
    rows = iter(zip(*apart, strict=True))
    return NUMBERS.sub(lambda match: match[0] if len(set(next(rows))) == 1 else "#", names[0])
