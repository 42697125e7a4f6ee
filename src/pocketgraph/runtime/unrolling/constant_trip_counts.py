"""How often a loop turns, whatever is fed: variables that count, and conditions that hold them below a limit."""

from __future__ import annotations

from collections.abc import Mapping

from pocketgraph.errors import RunError
from pocketgraph.graph import Graph
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ENTER, PLACEHOLDERS, SUMS
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.runtime.engines import frames as loops
from pocketgraph.runtime.engines.needed import PASSES, Item, behind, needed


def counts(items: Mapping[str, Item], inferred: Inferred, name: str, first: Endpoint, last: Endpoint) -> bool:
    """Whether a variable goes 0, 1, 2 …"""
    start = inferred.value(str(outside(items, first)))
    item = items.get(behind(items, last).node)
    if start is None or start.size != 1 or int(start.reshape(-1)[0]) != 0 or start.dtype.kind not in "iu":
        return False
    if item is None or item.node.op not in SUMS:
        return False
    sources = [behind(items, endpoint) for endpoint in item.data]
    for one, other in (sources, sources[::-1]):
        step = inferred.value(str(outside(items, other)))
        if one.node == name and step is not None and step.size == 1 and int(step.reshape(-1)[0]) == 1:
            return True
    return False


def outside(items: Mapping[str, Item], endpoint: Endpoint) -> Endpoint:
    """What a tensor is outside of the loop."""
    return behind(items, endpoint, (*PASSES, *ENTER))


def trip_count(
    items: Mapping[str, Item],
    inferred: Inferred,
    members: Mapping[str, Item],
    heads: Mapping[str, tuple[Endpoint, Endpoint]],
) -> int | None:
    """How often a loop turns: its condition holds counters below constants; None for any other loop."""
    conditions = [item for item in members.values() if item.node.op == "LoopCond"]
    if len(conditions) != 1:
        return None
    limits: list[int] = []
    waiting = [conditions[0].data[0]]
    while waiting:
        item = items.get(behind(items, waiting.pop()).node)
        if item is None or item.node.op not in ("LogicalAnd", "Less"):
            return None
        if item.node.op == "LogicalAnd":
            waiting.extend(item.data)
            continue
        counter = behind(items, item.data[0]).node
        limit = inferred.value(str(outside(items, item.data[1])))
        if (
            counter not in heads
            or limit is None
            or limit.size != 1
            or not counts(items, inferred, counter, *heads[counter])
        ):
            return None
        limits.append(int(limit.reshape(-1)[0]))
    return max(0, min(limits)) if limits else None


def heads_of(items: Mapping[str, Item], members: Mapping[str, Item]) -> dict[str, tuple[Endpoint, Endpoint]]:
    """The variables of a loop by their Merge: what each begins as, and what it is in the next round."""
    found: dict[str, tuple[Endpoint, Endpoint]] = {}
    for name, item in members.items():
        if loops.is_loop_head(item, items):
            first, again = loops.first_and_next(item, items)
            found[name] = first, items[again.node].data[0]
    return found


def constant_trip_counts(graph: Graph) -> dict[str, int]:
    """How often each loop of a graph turns that turns as often in every run, by its LoopCond."""
    conditions = [node.name for node in graph if node.op == "LoopCond"]
    fed = [Endpoint(node.name, 0) for node in graph if node.op in PLACEHOLDERS]
    found: dict[str, int] = {}
    if not conditions:
        return found
    try:
        items = needed(graph, fed, (), conditions)
        frames = loops.frames_of(items, fed)
        inferred = infer(graph)
        for condition in conditions:
            members = {name: item for name, item in items.items() if frames[name] == frames[condition]}
            rounds = trip_count(items, inferred, members, heads_of(items, members))
            if rounds is not None:
                found[condition] = rounds
    except RunError:
        return found  # a damaged loop
    return found
