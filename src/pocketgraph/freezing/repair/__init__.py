"""Repairs what training left in a graph, each kind by its own rule, and says what was done line by line."""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import import_module

from pocketgraph.errors import UsageError, did_you_mean
from pocketgraph.graph import Graph

Repair = Callable[[Graph], tuple[Graph, dict[str, str]]]

REPAIRS = {
    "flags": "is_training and the like, bool placeholders that choose training, become false",
    "batch_norms": "batch norms built for training take the moving averages that training kept",
    "inputs": "queues, readers and iterators in front of the true input become placeholders",
    "augmentation": "random changes of the inputs (flips, rotations, noise, …) are taken out",
    "updates": "assignments to variables (moving averages, counters, initial values) are dropped",
    "references": "RefSwitch, RefMerge … become Switch, Merge …, and float_ref becomes float",
    "dropout": "dropout, and noise that training adds to layers, are taken out, whatever their rate",
}
"""Every repair in the order in which they are done, with what it does; the module of its name has ``repaired``."""


def chosen(repair: bool | str | Collection[str]) -> tuple[str, ...]:
    """The repairs that an argument means: all for True or "all", none for False, else those named, with commas or in a
    list.

    Raises:
        UsageError: there is no repair of a name.
    """
    if isinstance(repair, bool):
        return tuple(REPAIRS) if repair else ()
    names = [name.strip() for name in (repair.split(",") if isinstance(repair, str) else repair)]
    if names == ["all"]:
        return tuple(REPAIRS)
    for name in names:
        if name not in REPAIRS:
            hint = did_you_mean(name, REPAIRS) or f"there are {', '.join(REPAIRS)}, and all"
            raise UsageError(f"there is no repair called '{name}'", hint=hint)
    return tuple(name for name in REPAIRS if name in names)


def repaired(graph: Graph, name: str) -> tuple[Graph, dict[str, str]]:
    """The graph after one repair, and what was done, a line by the name of each node that was repaired.

    Args:
        graph: with its ``outputs``; what they do not need may be there or not.
        name: one of REPAIRS.
    """
    rule: Repair = import_module(f"pocketgraph.freezing.repair.{name}").repaired
    return rule(graph)
