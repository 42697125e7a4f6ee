"""What a loop's counters, conditions and indices are in the rounds to come, without writing these rounds out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import MERGE
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels import registry
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.unrolling.symbolic_values import (
    COUNTED,
    PASSED,
    CannotUnrollError,
    DeadValue,
    KnownValue,
    Value,
)


class TripCount(NamedTuple):
    """The rounds to come that take the same branches as the last one.

    Attributes:
        rounds: how many there are.
        series: for each tensor that is known and changes, its value in each of these rounds.
        after: the loop variables that are known, as the round after these finds them.
        moving: the nodes that give such tensors.
    """

    rounds: int
    series: Mapping[Endpoint, Sequence[Array]]
    after: Mapping[str, Array]
    moving: frozenset[str]


class _Counting(NamedTuple):
    """One node that counts: what it takes, where its result goes, and how it is computed (None: it passes it on)."""

    sources: tuple[Endpoint, ...]
    results: tuple[Endpoint, ...]
    call: Callable[..., Any] | None


@np.errstate(all="ignore")  # as where a kernel runs
def count_trips(
    order: Sequence[Item],
    condition: Item,
    back: Mapping[str, Endpoint],
    before: Mapping[Endpoint, Value],
    start: Mapping[str, Value],
    most: int,
) -> TripCount:
    """Counts the rounds ahead.

    Args:
        order: the loop's nodes, each after those it takes from; what the condition needs comes first.
        condition: the LoopCond among them.
        back: for each loop variable (its Merge), what it is in the next round.
        before: what every tensor was in the round that was just written out.
        start: what each loop variable is in the first of the rounds to come.
        most: rounds to look at.

    Raises:
        CannotUnrollError: what counts is computed in a way that cannot be told ahead.
    """
    now: dict[Endpoint, Array] = {}
    for name, value in start.items():
        if isinstance(value, KnownValue) != isinstance(before[Endpoint(name, 0)], KnownValue):
            raise CannotUnrollError("its variables are not known in the same way in every round")
        if isinstance(value, KnownValue):
            now[Endpoint(name, 0)] = value.array
    moving = set(now)
    steps: list[_Counting] = []
    predicates: dict[Endpoint, Array] = {}
    for item in order:
        made = _counting(item, before, moving)
        if made is not None:
            steps.append(made)
            moving.update(made.results)
        if item.node.op in ("Switch", "_SwitchN") and item.data[1] in moving:
            known = before[item.data[1]]
            assert isinstance(known, KnownValue)
            predicates[item.data[1]] = known.array
    constants = {e: v.array for e, v in before.items() if isinstance(v, KnownValue) and e not in moving}
    series: dict[Endpoint, list[Array]] = {endpoint: [] for endpoint in moving}
    known_back = {name: source for name, source in back.items() if Endpoint(name, 0) in now}
    rounds = 0
    while rounds < most:
        for sources, results, call in steps:
            given = [now[e] if e in now else constants[e] for e in sources]
            if call is None:
                for endpoint in results:
                    now[endpoint] = given[0]
            else:
                found = call(*given)
                for endpoint, value in zip(results, found if isinstance(found, tuple) else (found,), strict=False):
                    now[endpoint] = np.asarray(value)
        going = now.get(condition.data[0])
        if going is None or not bool(going):
            break
        if any(not np.array_equal(now[endpoint], value) for endpoint, value in predicates.items()):
            break
        for endpoint, values in series.items():
            values.append(now[endpoint])
        rounds += 1
        following = {name: now[e] if e in now else constants[e] for name, e in known_back.items()}
        now.update((Endpoint(name, 0), array) for name, array in following.items())
    after = {name: now[Endpoint(name, 0)] for name in known_back}
    return TripCount(rounds, series, after, frozenset(endpoint.node for endpoint in moving))


def _counting(item: Item, before: Mapping[Endpoint, Value], moving: set[Endpoint]) -> _Counting | None:
    """How a node counts; None when it does not, or gives the same in every round."""
    node, op = item.node, item.node.op
    if not any(e in moving for e in item.data) or (op in MERGE and Endpoint(node.name, 0) in moving):
        return None
    known: list[Endpoint] = []
    while isinstance(before.get(Endpoint(node.name, len(known))), (KnownValue, DeadValue)):
        known.append(Endpoint(node.name, len(known)))
    live = tuple(endpoint for endpoint in known if isinstance(before[endpoint], KnownValue))
    if not live:
        return None
    if op in PASSED:
        return _Counting(item.data[:1], live, None)
    if op in ("Switch", "_SwitchN"):
        return _Counting(item.data[:1], live, None) if item.data[0] in moving else None
    if op in MERGE:
        source = next(e for e in item.data if not isinstance(before[e], DeadValue))
        return _Counting((source,), live[:1], None) if source in moving else None
    found = registry.KERNELS.row(op)
    if op not in COUNTED or found is None or found.takes_context or len(live) != len(known):
        raise CannotUnrollError(f"the {op} counts in its own way")
    keywords = registry.arguments(found, node)
    return _Counting(item.data, live, partial(found.function, **keywords) if keywords else found.function)
