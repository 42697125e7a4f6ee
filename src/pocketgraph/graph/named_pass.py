"""A pass: a change with a name, by which it can be left out."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple


class Pass(NamedTuple):
    """A row in a list of passes.

    Attributes:
        name: what it is switched off by.
        does: what it does, in a few words.
        run: changes what the list's passes are for: the state of a graph (runtime/planning/graph_passes.py), or a
            program of LiteRT operators.
        applies: whether there may be anything to do; False without importing what ``run`` takes.
    """

    name: str
    does: str
    run: Callable[[Any], None]
    applies: Callable[[Any], bool] = lambda _: True


def imported(module: str, function: str) -> Callable[[Any], None]:
    """A pass of a module that is imported when the pass runs: many a model needs few of them."""

    def run(what: Any) -> None:
        getattr(import_module(module), function)(what)

    return run
