"""Rules that are not this package's: those that installed packages offer, and what can go wrong in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pocketgraph.errors import PocketgraphError, TransformError
from pocketgraph.graph import Graph

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "pocketgraph.transforms"
"""The entry point group: ``[project.entry-points."pocketgraph.transforms"]`` with ``rule = "package.module:rule"``."""


def installed() -> Mapping[str, EntryPoint]:
    """The rules that installed packages offer, by name; none of their code is run for this."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP)}


def called(function: Callable[..., Any], graph: Graph, arguments: Mapping[str, Any]) -> Graph:
    """What a rule makes of a graph; what goes wrong in somebody's own is one error, that says where.

    Raises:
        TransformError: the rule fails, or gives no graph.
    """
    try:
        made = function(graph, **arguments)
    except PocketgraphError:
        raise
    except Exception as error:  # anything may go wrong in somebody's code
        if is_ours(function):
            raise
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        line = f" ({os.path.basename(place.tb_frame.f_code.co_filename)}, line {place.tb_lineno})" if place else ""
        raise TransformError(
            f"the rule failed: {type(error).__name__}: {error}{line}", hint="POCKETGRAPH_DEBUG=1 shows the traceback"
        ) from error
    if not isinstance(made, Graph):
        raise TransformError(f"the rule gave {type(made).__name__}, not a Graph", hint="end it with return graph")
    return made


def is_ours(function: Callable[..., Any]) -> bool:
    """Whether a rule comes with pocketgraph."""
    return function.__module__.startswith("pocketgraph.")
