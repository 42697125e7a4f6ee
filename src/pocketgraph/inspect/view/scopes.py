"""Sorts the nodes of a picture into nested name scopes, and lays out the inside of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pocketgraph.errors import printable
from pocketgraph.inspect.view.layered_layout import layered
from pocketgraph.inspect.view.nodes import Shown
from pocketgraph.inspect.view.repeated_blocks import group_repeats
from pocketgraph.inspect.view.scope import ENTRY, EXIT, NODE, SCOPE, Link, Scope, ScopeItem

DEEPEST = 12  # scopes in each other; what is nested deeper stands in the last
MOST_NODES = 20_000  # in a picture
MOST_ITEMS = 6_000  # beside each other in one scope
LETTERS = 26  # of a label; the whole name is shown on hover
LETTER, MARGIN, NARROWEST = 6.6, 22, 84  # pixels
HEIGHT, BAR = 38, 18  # pixels of a box, and of the bar where arrows enter or leave a scope


def label_of(text: str) -> str:
    """A text cut to what fits on a box."""
    text = printable(text)
    return text if len(text) <= LETTERS else f"{text[: LETTERS // 2]}…{text[-(LETTERS // 2 - 1) :]}"


def flat_scope(shown: Sequence[Shown], edges: Sequence[Link]) -> tuple[list[Scope], int]:
    """One scope with every node, and how many nodes are left out."""
    scope = Scope("", "", -1, [ScopeItem(NODE, number) for number in range(len(shown))], nodes=len(shown))
    count = _cut(scope)
    scope.links = _merged((e.source, e.target, e.control, e.label) for e in edges if max(e.source, e.target) < count)
    scope.layout = layered(
        sizes_of([scope], scope, shown, is_flat=True), [(link.source, link.target) for link in scope.links]
    )
    return [scope], len(shown) - count


def nested_scopes(shown: Sequence[Shown], edges: Sequence[Link]) -> tuple[list[Scope], int]:
    """The scopes of a graph, the outermost first, what repeats grouped; and how many nodes are left out."""
    scopes = _tree(shown)
    _without_wrappers(scopes)
    group_repeats(scopes, shown)
    left_out, hidden = _within_budget(scopes)
    where = {item.number: (at, i) for at, s in enumerate(scopes) for i, item in enumerate(s.items) if item.kind == NODE}
    inner = {item.number: i for s in scopes for i, item in enumerate(s.items) if item.kind == SCOPE}
    where |= {node: (scopes[at].parent, inner[at]) for node, at in hidden.items()}  # arrows lead to the box
    inside = (edge.source in hidden and where[edge.source] == where.get(edge.target) for edge in edges)
    _link(scopes, [edge for edge, is_inside in zip(edges, inside, strict=True) if not is_inside], where, inner)
    for scope in scopes:
        if scope.is_open:
            pairs = [(link.source, link.target) for link in scope.links]
            scope.layout = layered(sizes_of(scopes, scope, shown), pairs)
    return scopes, left_out


def sizes_of(
    scopes: Sequence[Scope], scope: Scope, shown: Sequence[Shown], *, is_flat: bool = False
) -> list[tuple[int, int]]:
    """Width and height of each item's box, in pixels; a flat picture shows the last part of each name only."""
    sizes = []
    for item in scope.items:
        if item.kind in (ENTRY, EXIT):
            sizes.append((NARROWEST, BAR))
            continue
        if item.kind == SCOPE:
            inner = scopes[item.number]
            letters = max(len(label_of(inner.label)) + (4 + len(str(inner.copies)) if inner.copies > 1 else 2), 14)
        else:
            node = shown[item.number].node
            name = node.name.rpartition("/")[2] if is_flat else node.name.removeprefix(f"{scope.path}/")
            letters = max(len(label_of(name)), len(label_of(node.op)))
        sizes.append((max(NARROWEST, round(letters * LETTER) + MARGIN), HEIGHT))
    return sizes


def _tree(shown: Sequence[Shown]) -> list[Scope]:
    scopes = [Scope("", "", -1)]
    numbers = {"": 0}
    for number, one in enumerate(shown):
        at, path = 0, ""
        for part in one.node.name.split("/")[:-1][:DEEPEST]:
            path = f"{path}/{part}" if path else part
            inside = numbers.get(path)
            if inside is None:
                inside = numbers[path] = len(scopes)
                scopes.append(Scope(path, part, at))
                scopes[at].items.append(ScopeItem(SCOPE, inside))
            at = inside
        scopes[at].items.append(ScopeItem(NODE, number))
    for scope in reversed(scopes):
        scope.nodes += sum(item.kind == NODE for item in scope.items)
        if scope.parent >= 0:
            scopes[scope.parent].nodes += scope.nodes
    return scopes


def _without_wrappers(scopes: list[Scope]) -> None:
    """Takes a scope's only item out of it: a box around one box says nothing."""
    spot = {item.number: at for scope in scopes for at, item in enumerate(scope.items) if item.kind == SCOPE}
    for number in range(len(scopes) - 1, 0, -1):
        scope = scopes[number]
        if len(scope.items) != 1:
            continue
        (only,) = scope.items
        scopes[scope.parent].items[spot[number]] = only
        if only.kind == SCOPE:
            spot[only.number] = spot[number]
            scopes[only.number].parent = scope.parent
            scopes[only.number].label = f"{scope.label}/{scopes[only.number].label}"
        scope.items, scope.is_open = [], False


def _within_budget(scopes: list[Scope]) -> tuple[int, dict[int, int]]:
    """Closes scopes for good, the inner ones first, until the picture is not too large.

    Returns:
        How many nodes are left out, and in which scope, closed or cut, each of them stands; those of the outermost one,
        which has no box, in none.
    """
    left_out, seen = 0, 0
    hidden: dict[int, int] = {}

    def leave_out(items: list[ScopeItem], at: int) -> int:
        count = 0
        for item in items:
            if item.kind == NODE:
                count += 1
                if at:
                    hidden[item.number] = at
            else:
                count += leave_out(scopes[item.number].items, at)
                scopes[item.number].items, scopes[item.number].is_open = [], False
        return count

    waiting = [0]
    for at in waiting:  # grows: the outer scopes come first
        scope = scopes[at]
        here = sum(item.kind == NODE for item in scope.items)
        if at and seen + min(here, MOST_ITEMS) > MOST_NODES:
            left_out += leave_out(scope.items, at)
            scope.items, scope.is_open = [], False
            continue
        left_out += leave_out(scope.items[MOST_ITEMS:], at)
        _cut(scope)
        seen += sum(item.kind == NODE for item in scope.items)
        waiting.extend(item.number for item in scope.items if item.kind == SCOPE)
    return left_out, hidden


def _cut(scope: Scope) -> int:
    del scope.items[MOST_ITEMS:]
    return len(scope.items)


def _link(scopes: list[Scope], edges: Sequence[Link], where: dict[int, tuple[int, int]], inner: dict[int, int]) -> None:
    """Draws each edge where its ends meet, and from there inwards to both, by way of entries and exits."""
    found: list[list[tuple[int, int, bool, str]]] = [[] for _ in scopes]
    bars: dict[tuple[int, int], int] = {}

    def chain(place: tuple[int, int]) -> list[tuple[int, int]]:
        steps = [place]
        while scopes[steps[-1][0]].parent >= 0:
            at = steps[-1][0]
            steps.append((scopes[at].parent, inner[at]))
        return steps[::-1]

    def bar(at: int, kind: int) -> int:
        if (at, kind) not in bars:
            bars[at, kind] = len(scopes[at].items)
            scopes[at].items.append(ScopeItem(kind))
        return bars[at, kind]

    for edge in edges:
        a, b = where.get(edge.source), where.get(edge.target)
        if a is None or b is None:
            continue
        up, down = chain(a), chain(b)
        shared = 0
        while shared + 1 < min(len(up), len(down)) and up[shared] == down[shared]:
            shared += 1
        if up[shared] != down[shared]:  # else one end is left out, and stands for the box that the other is in
            found[up[shared][0]].append((up[shared][1], down[shared][1], edge.control, edge.label))
        for at, item in up[shared + 1 :]:
            found[at].append((item, bar(at, EXIT), edge.control, edge.label))
        for at, item in down[shared + 1 :]:
            found[at].append((bar(at, ENTRY), item, edge.control, edge.label))
    for scope, links in zip(scopes, found, strict=True):
        scope.links = _merged(links)


def _merged(links: Iterable[tuple[int, int, bool, str]]) -> list[Link]:
    """One arrow for all that go the same way; it is a control arrow when all of them are."""
    made: dict[tuple[int, int], Link] = {}
    for source, target, control, label in links:
        known = made.get((source, target))
        if known is None:
            made[source, target] = Link(source, target, control, label)
        elif not control:
            if known.control:
                known.control, known.label, known.count = False, label, 1
            else:
                known.count += 1
    return list(made.values())
