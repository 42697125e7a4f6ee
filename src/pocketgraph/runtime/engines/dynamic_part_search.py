"""Finds the parts of a region that another engine could run if it knew their shapes, which only the run tells.

These are the heavy parts of loop bodies, of branches, of functions, and of what follows a tensor whose size depends on
values. Each becomes one step that is planned when it is first called (see ``units.DynamicPlanner``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pocketgraph.graph import Node
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.groups import DisjointSets
from pocketgraph.graph.op_traits import PASSES
from pocketgraph.runtime.engines.compilation_units import DynamicPlanner, PartCall, Plan, Unit, key_of
from pocketgraph.runtime.engines.grouping import grouped, merged
from pocketgraph.runtime.engines.liveness import LIVE, Atom, Liveness


def dynamic_parts(
    dynamic: DynamicPlanner,
    plan: Plan,
    units: Sequence[tuple[Unit, Sequence[Unit]]],
    node_live: Mapping[str, Liveness],
    live: Mapping[Endpoint, Liveness],
    is_reference: Callable[[Endpoint], bool],
    wanted: Sequence[Endpoint],
) -> list[PartCall]:
    """The parts of one region.

    The kind of a node that is able is the conditions under which it runs, so that a part runs as a whole or not at all
    (see ``grouping.grouped``).

    Args:
        dynamic: judges nodes and makes calls.
        plan: what is compiled.
        units: the region's units with those that each depends on, in order.
        node_live: when each node runs.
        live: when each tensor is live.
        is_reference: whether a tensor is a variable itself.
        wanted: tensors that leave the region besides those that other nodes take.
    """
    fed, awaited = {endpoint.node for endpoint in plan.fed}, {endpoint.node for endpoint in wanted}
    kinds: dict[object, frozenset[Atom] | None] = {}
    depends: dict[object, list[object]] = {}
    waits: dict[object, list[object]] = {}  # of constants, which parts take in: who takes them waits as they do
    for unit, sources in units:
        own: frozenset[Atom] | None = None
        before = [key for source in sources for key in waits.get(key_of(source), [key_of(source)])]
        if isinstance(unit, str):
            item = plan.items[unit]
            if dynamic.is_static(unit, plan):
                waits[unit] = before
                continue
            if item.node.op == "NoOp" and all(kinds.get(source) is None for source in before):
                waits[unit] = before  # a gate, such as that of a body, makes no neighbours of those who wait for it
                continue
            is_plain = unit not in fed and not any(is_reference(e) for e in item.data)
            is_read = item.node.op not in PASSES or bool(plan.taken_from(unit)) or unit in awaited
            if is_plain and is_read and dynamic.is_able(item):
                own = node_live.get(unit, LIVE).atoms
        kinds[key_of(unit)] = own
        depends[key_of(unit)] = before
    group = grouped(depends, kinds)
    heavy = {group[unit] for unit in group if dynamic.is_heavy(plan.items[str(unit)])}
    if len(heavy) < 2:
        parts = [[unit for unit, first in group.items() if first in heavy]] if heavy else []
    else:
        parts = merged(depends, {unit: first for unit, first in group.items() if first in heavy}, kinds)
    found = []
    for part in parts:
        members = _hanging_together([str(name) for name in part], depends, dynamic, plan)
        members = _without_last_copies(_without_first_copies(members, depends, plan), depends, plan)
        made = _part_call(dynamic, plan, members, kinds[part[0]] or frozenset(), live, wanted)
        if dynamic.is_worth_it([plan.items[name] for name in members], plan, len(made.inputs) + len(made.outputs)):
            found.append(made)
    return found


def _without_first_copies(part: Sequence[str], depends: Mapping[object, Sequence[object]], plan: Plan) -> Sequence[str]:
    """The part without what passes its inputs on: elsewhere that costs nothing, here it is one tensor more to give."""
    inside = set(part)
    for name in part:
        if plan.items[name].node.op in PASSES and inside.isdisjoint(map(str, depends[name])):
            inside.discard(name)
    return [name for name in part if name in inside] or part


def _without_last_copies(part: Sequence[str], depends: Mapping[object, Sequence[object]], plan: Plan) -> Sequence[str]:
    """The part without what passes its results on: under one name each, a predicate decides for all who ask it.

    What a node of the part waits for stays in it, also where only a constant waits, that the part takes in.
    """
    inside = set(part)
    needed: set[str] = set()  # by what stays
    for name in reversed(part):
        if plan.items[name].node.op in PASSES and name not in needed and len(inside) > 1:
            inside.remove(name)
        else:
            needed.update(map(str, depends[name]))
    return [name for name in part if name in inside]


def _hanging_together(
    part: Sequence[str], depends: Mapping[object, Sequence[object]], dynamic: DynamicPlanner, plan: Plan
) -> Sequence[str]:
    """The part without what only waits for it: a loop's counter would be computed beside it, not by it.

    Args:
        part: the nodes of a part, in order.
        depends: what each unit of the region depends on, for its data or by waiting.
        dynamic: tells the heavy nodes.
        plan: what is compiled.
    """
    inside = set(part)
    joined = DisjointSets(part)
    for name in part:
        for endpoint in plan.items[name].data:
            if endpoint.node in inside and endpoint not in plan.fed:
                joined.join(name, endpoint.node)
    heavy = {joined.find(name) for name in part if dynamic.is_heavy(plan.items[name])}
    if len(joined.groups()) == len(heavy):
        return part
    kept = {name for name in part if joined.find(name) in heavy}
    before, after = set(kept), set(kept)  # what kept nodes depend on, and what depends on them
    for name in reversed(part):
        if name in before:
            before.update(str(source) for source in depends[name] if source in inside)
    for name in part:
        if not after.isdisjoint(map(str, depends[name])):
            after.add(name)
    return [name for name in part if name in kept or (name in before and name in after)]


def _part_call(
    dynamic: DynamicPlanner,
    plan: Plan,
    part: Sequence[str],
    atoms: frozenset[Atom],
    live: Mapping[Endpoint, Liveness],
    wanted: Sequence[Endpoint],
) -> PartCall:
    inside = set(part)
    inputs: dict[Endpoint, None] = {}
    for name in part:
        for endpoint in plan.items[name].data:
            if endpoint in plan.fed or (endpoint.node not in inside and not dynamic.is_static(endpoint.node, plan)):
                inputs[endpoint] = None
    seen = frozenset().union(*(live[endpoint].atoms for endpoint in inputs if endpoint in live))
    for endpoint in (e for name in part for e in plan.items[name].data if e in live and e.node not in inside):
        if not atoms <= seen and not live[endpoint].atoms <= seen:  # a constant behind a Switch tells whether it runs
            inputs[endpoint] = None
            seen |= live[endpoint].atoms
    outputs: dict[Endpoint, None] = {}
    for name in part:
        for endpoint, consumers in plan.taken_from(name).items():
            if any(consumer not in inside for consumer in consumers):
                outputs[endpoint] = None
    outputs.update((endpoint, None) for endpoint in wanted if endpoint.node in inside)
    call = dynamic.call(plan, part, tuple(inputs), tuple(outputs))
    heaviest = next(name for name in part if dynamic.is_heavy(plan.items[name]))
    stand_in = Node(heaviest, plan.items[heaviest].node.op)
    return PartCall(stand_in, frozenset(inside), tuple(inputs), tuple(outputs), call, is_dynamic=True)
