"""Cuts a graph into the largest parts that one engine can hold, without a circle between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod

from pocketgraph.graph import Shape
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import HEAVY
from pocketgraph.graph.record import Record
from pocketgraph.litert.cost_model import LEAST_PART_NODES, LEAST_SMALL_PART_NODES, SMALL_TENSOR
from pocketgraph.runtime.engines.compilation_units import Plan, key_of, ordered_units
from pocketgraph.runtime.engines.frames import ROOT, split
from pocketgraph.runtime.planning.call_times import FREE


class CutPart(Record):
    """One part of the graph to be run as a whole.

    Attributes:
        nodes: its nodes, each after those it depends on.
        inputs: the tensors that come from outside and differ from run to run.
        outputs: the tensors that somebody outside takes.
    """

    nodes: tuple[str, ...]
    inputs: tuple[Endpoint, ...]
    outputs: tuple[Endpoint, ...]


def partition(
    plan: Plan, able: Collection[str], static: Collection[str], fetched: Collection[Endpoint]
) -> list[CutPart]:
    """The parts, in an order in which they can run.

    Able nodes that hang together, by values or by waiting, make one part (see ``grouping.grouped``).

    Args:
        plan: the needed nodes; its parts are not looked at.
        able: nodes of the root region that the other engine can run.
        static: nodes whose values are known before the run; they belong to no part and every part may use them.
        fetched: tensors that the caller takes.
    """
    own, inner = split(plan.items, ROOT, plan.items, plan.frames)
    own = [name for name in own if name not in static]  # which wait for nothing but each other
    kinds: dict[object, bool | None] = {}
    depends: dict[object, list[object]] = {}
    for unit, sources in ordered_units(own, inner, plan):
        kinds[key_of(unit)] = True if isinstance(unit, str) and unit in able else None
        depends[key_of(unit)] = [key_of(source) for source in sources]
    if None in kinds.values():
        from pocketgraph.runtime.engines.grouping import grouped, merged

        parts = [[str(name) for name in part] for part in merged(depends, grouped(depends, kinds))]
    else:  # all of it: nothing can lie between
        parts = [[str(name) for name in depends]] if depends else []
    home = {name: index for index, part in enumerate(parts) for name in part}
    leaving: dict[str, set[int]] = {}
    for endpoint in fetched:
        leaving.setdefault(endpoint.node, set()).add(endpoint.port)
    for name, item in plan.items.items():
        for endpoint in item.data:
            if endpoint.node in home and home[endpoint.node] != home.get(name):
                leaving.setdefault(endpoint.node, set()).add(endpoint.port)
    return [_bounded(part, plan, static, leaving) for part in parts]


def _bounded(part: Sequence[str], plan: Plan, static: Collection[str], leaving: Mapping[str, set[int]]) -> CutPart:
    inside = set(part)
    inputs: dict[Endpoint, None] = {}
    for name in part:
        for endpoint in plan.items[name].data:
            if endpoint in plan.fed or (endpoint.node not in inside and endpoint.node not in static):
                inputs[endpoint] = None
    outputs = [Endpoint(name, port) for name in part for port in sorted(leaving.get(name, ()))]
    return CutPart(tuple(part), tuple(inputs), tuple(e for e in outputs if e not in plan.fed))


def is_worth_it(part: CutPart, plan: Plan, shape_of: Callable[[str], Shape]) -> bool:
    """Whether the part has work enough to pay for the call; ``shape_of`` tells a tensor's shape."""
    ops = [plan.items[name].node.op for name in part.nodes]
    if not HEAVY.isdisjoint(ops):
        return True
    work = sum(op not in FREE for op in ops)
    if not LEAST_PART_NODES <= work < LEAST_SMALL_PART_NODES:
        return work >= LEAST_PART_NODES
    shapes = [shape_of(str(e)) for e in (*part.inputs, *(Endpoint(name, 0) for name in part.nodes))]
    return any(not shape.is_known or prod(shape.known) > SMALL_TENSOR for shape in shapes)
