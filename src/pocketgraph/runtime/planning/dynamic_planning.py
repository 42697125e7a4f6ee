"""How parts are planned that only the run knows the shapes of: like any graph, when they run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.graph import Graph
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.planning.dynamic_part import DynamicPart, Planned, Reordered
from pocketgraph.runtime.planning.dynamic_parts import DynamicParts, KeptPart
from pocketgraph.runtime.planning.prepared import Request
from pocketgraph.runtime.warm_start import Executable, from_cache, with_switches

Array = np.ndarray[Any, Any]
NO_GRAPH = Graph(())
"""Stands for the part's until that is needed: a plan of an earlier process is found without."""


def dynamic_parts(
    request: Request,
    graph: Graph,
    able: Collection[str],
    static: Collection[str],
    opened: list[Executable],
    *,
    parts: Sequence[KeptPart] | None = None,
) -> DynamicParts:
    """Plans what only the run knows the shapes of (see DynamicParts); what it compiles is added to ``opened``.

    ``parts`` are those of an earlier process.
    """

    def plan(
        part: DynamicPart, feeds: Mapping[Endpoint, Any], fetches: tuple[Endpoint, ...], key: str, by_steps: bool
    ) -> Planned:
        planner = request.planner
        assert planner is not None
        asked = Request(
            NO_GRAPH, feeds, fetches, (), {}, request.threads, request.cache_dir, key, None, by_steps, exact=True,
            planner=planner,
        )  # fmt: skip
        found = planner(asked, lambda: part.graph)
        opened.extend(found.executables)
        order = found.whole_inputs == tuple(range(len(feeds)))
        if found.whole is not None and not by_steps and not order:  # the executable takes them by name
            whole, places = found.whole, found.whole_inputs
            return Reordered(whole, places), found.program
        return found.whole, found.program

    def kept(key: str, arrays: Mapping[str, Array], fetches: Sequence[str]) -> Executable | None:
        found = from_cache(key, arrays, fetches, request.threads, request.cache_dir, by_values=False)
        if found is None:
            return None
        opened.append(found[0])
        return Reordered(*found)

    given = sorted((str(e), str(dtype), shape) for e, (dtype, shape) in request.feeds.items())
    key = with_switches(f"{request.key} {given}", request.values) if request.key else ""
    return DynamicParts(graph, plan, key, able, static, kept, parts=parts)
