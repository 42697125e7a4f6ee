"""A pass: a change with a name, by which it can be left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Pass(NamedTuple):
    """A row in a list of passes.

    Attributes:
        name: what it is switched off by.
        does: what it does, in a few words.
        run: changes what the list's passes are for: the state of a graph (runtime/planning/graph_passes.py), or a
            program of LiteRT operators.
    """

    name: str
    does: str
    run: Callable[[Any], None]
