"""When a tensor is live: under which branch conditions, and which slots tell so at run time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from pocketgraph.graph.record import Record

Atom: TypeAlias = "tuple[object, bool]"
"""(what decides, the value it must have): the slot of a Switch's predicate, or a Merge that may be dead."""


class Way(Record):
    """One of the ways of a switch of many: what decides is the number in a slot.

    Attributes:
        slot: of the number.
        port: which way.
        ways: how many there are; always one of them is taken.
    """

    slot: int
    port: int
    ways: int


class Liveness:
    """The conditions under which a value is live.

    Attributes:
        atoms: all of these must hold; none: always live.
        witnesses: slots that are all live exactly when the value is.
    """

    def __init__(self, atoms: frozenset[Atom], witnesses: tuple[int, ...]) -> None:
        self.atoms = atoms
        self.witnesses = witnesses


LIVE = Liveness(frozenset(), ())


def together(parts: Iterable[Liveness], known: object = None) -> Liveness:
    """When all of these are live, with few witnesses.

    Args:
        parts: what is needed.
        known: a predicate whose atoms hold wherever this is asked, so that they need no witness.
    """
    conditional = [part for part in parts if part.atoms]
    if not conditional:
        return LIVE
    first = conditional[0]
    if all(part.atoms == first.atoms for part in conditional):  # as nearly always: one of them stands for all
        if known is not None and all(atom[0] == known for atom in first.atoms):
            return Liveness(first.atoms, ()) if first.witnesses else first
        return min(conditional, key=lambda part: len(part.witnesses))
    atoms = frozenset().union(*(part.atoms for part in conditional))
    missing = {atom for atom in atoms if atom[0] != known} if known is not None else set(atoms)
    witnesses: list[int] = []
    for part in sorted(conditional, key=lambda p: (-len(p.atoms), len(p.witnesses))):
        if missing & part.atoms:
            missing -= part.atoms
            witnesses += [slot for slot in part.witnesses if slot not in witnesses]
    return Liveness(atoms, tuple(witnesses))


def either(parts: Sequence[Liveness]) -> frozenset[Atom] | None:
    """The conditions under which at least one of these is live, or None when that is no conjunction.

    Two branches of one Switch come together to what held before it, and so do all ways of a switch of many.
    """
    if any(not part.atoms for part in parts):
        return frozenset()
    if len(parts) == 1:
        return parts[0].atoms
    if len(parts) == 2:
        a, b = parts[0].atoms, parts[1].atoms
        if a == b:
            return a
        only_a, only_b = a - b, b - a
        if len(only_a) == 1 and len(only_b) == 1:
            ((decides_a, value_a),), ((decides_b, value_b),) = only_a, only_b
            if decides_a == decides_b and value_a != value_b:
                return a & b
    shared = frozenset.intersection(*(part.atoms for part in parts))
    own = [part.atoms - shared for part in parts]
    ways = {way for atoms in own for way, _ in atoms if isinstance(way, Way)}
    if len(ways) == len(parts) and all(len(atoms) == 1 for atoms in own):
        first = next(iter(ways))
        if ways == {Way(first.slot, port, first.ways) for port in range(first.ways)}:
            return shared
    return None
