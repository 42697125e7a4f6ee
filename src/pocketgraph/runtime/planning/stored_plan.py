"""Finds what an earlier process planned for a call, so that this one need not plan again.

A plan is found by the model's digest and the key of a call, so that the model itself need not be read; what only
planning needs is not imported, and where nothing is found neither is what a plan needs (``stored_plan_content``).
"""

from __future__ import annotations

from collections.abc import Callable

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph
from pocketgraph.graph.garbage_collection import collector_paused
from pocketgraph.litert import cache
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan, Request, Runnable


def name_of(request: Request) -> str:
    """The name in the cache; the order of the feeds does not matter."""
    return cache.entry_name(request.call.of_call(request.key), f"plan of {request.call.wanted}")


def is_kept(request: Request) -> bool:
    """Whether plans of such requests are kept at all."""
    return bool(request.key) and request.engine in (None, "auto") and not request.call.is_traced


def find(request: Request, graph: Callable[[], Graph]) -> ExecutionPlan | None:
    """The plan of an earlier process, when it and all its parts are there and whole.

    Args:
        request: what is to be run; its graph is not looked at.
        graph: gives the graph, when parts are to be compared that were not yet.
    """
    folder = cache.directory(request.cache_dir)
    entry = cache.find(folder, name_of(request)) if folder is not None else None
    if entry is None:
        return None
    from pocketgraph.runtime.planning.stored_plan_content import reopened

    opened: list[Runnable] = []
    try:
        with collector_paused():
            return reopened(request, entry, opened, graph)
    except (PocketgraphError, OSError, LookupError, TypeError, ValueError, AttributeError):
        for executable in opened:
            executable.close()
        return None
