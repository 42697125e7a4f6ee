"""Finds the parts of a region that another engine could run if it knew their shapes, which only the run tells.

These are the heavy parts of loop bodies, of branches, of functions, and of what follows a tensor whose size depends on
values. Each becomes one step that is planned when it is first called (see ``Late``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pocketgraph.graph import Node
from pocketgraph.runtime.engines.grouping import grouped
from pocketgraph.runtime.engines.liveness import LIVE, Atom, Liveness
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.engines.units import Plan, Segment, Unit, key_of
from pocketgraph.runtime.names import Endpoint


class Late(Protocol):
    """Whoever plans parts when they run."""

    def is_able(self, item: Item) -> bool:
        """Whether the node may be in such a part."""

    def is_heavy(self, item: Item) -> bool:
        """Whether the node makes a part worth it."""

    def is_static(self, name: str, plan: Plan) -> bool:
        """Whether the node gives the same in every run, so that parts take it in rather than its value."""

    def quicker(self, node: Node, call: Callable[..., Any]) -> Callable[..., Any]:
        """A call that gives the same as the node's kernel ``call``, with the other engine's help; or ``call``."""

    def call(
        self, plan: Plan, members: Sequence[str], inputs: Sequence[Endpoint], outputs: Sequence[Endpoint]
    ) -> Callable[..., tuple[Any, ...]]:
        """What runs the part: takes the Run and the inputs' values, gives the outputs' values."""


def late_segments(
    late: Late,
    plan: Plan,
    units: Sequence[tuple[Unit, Sequence[Unit]]],
    node_live: Mapping[str, Liveness],
    live: Mapping[Endpoint, Liveness],
    is_reference: Callable[[Endpoint], bool],
    wanted: Sequence[Endpoint],
) -> list[Segment]:
    """The parts of one region.

    The kind of a node that is able is the conditions under which it runs, so that a part runs as a whole or not at all
    (see ``grouping.grouped``).

    Args:
        late: judges nodes and makes calls.
        plan: what is compiled.
        units: the region's units with those that each depends on, in order.
        node_live: when each node runs.
        live: when each tensor is live.
        is_reference: whether a tensor is a variable itself.
        wanted: tensors that leave the region besides those that other nodes take.
    """
    fed = {endpoint.node for endpoint in plan.fed}
    kinds: dict[object, frozenset[Atom] | None] = {}
    depends: dict[object, list[object]] = {}
    for unit, sources in units:
        own: frozenset[Atom] | None = None
        if isinstance(unit, str):
            item = plan.items[unit]
            if late.is_static(unit, plan) and not item.control:
                continue
            is_plain = unit not in fed and not any(is_reference(e) for e in item.data)
            if is_plain and late.is_able(item):
                own = node_live.get(unit, LIVE).atoms
        kinds[key_of(unit)] = own
        depends[key_of(unit)] = [key_of(source) for source in sources]
    group = grouped(depends, kinds)
    heavy = {group[unit] for unit in group if late.is_heavy(plan.items[str(unit)])}
    if len(heavy) < 2:
        parts = [[unit for unit, first in group.items() if first in heavy]] if heavy else []
    else:
        from pocketgraph.runtime.planning.merging import merged

        parts = merged(depends, {unit: first for unit, first in group.items() if first in heavy}, kinds)
    return [
        _segment(late, plan, [str(name) for name in part], kinds[part[0]] or frozenset(), live, wanted)
        for part in parts
    ]


def _segment(
    late: Late,
    plan: Plan,
    part: Sequence[str],
    atoms: frozenset[Atom],
    live: Mapping[Endpoint, Liveness],
    wanted: Sequence[Endpoint],
) -> Segment:
    inside = set(part)
    inputs: dict[Endpoint, None] = {}
    for name in part:
        for endpoint in plan.items[name].data:
            if endpoint in plan.fed or (endpoint.node not in inside and not late.is_static(endpoint.node, plan)):
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
    call = late.call(plan, part, tuple(inputs), tuple(outputs))
    heaviest = next(name for name in part if late.is_heavy(plan.items[name]))
    stand_in = Node(heaviest, plan.items[heaviest].node.op)
    return Segment(stand_in, frozenset(inside), tuple(inputs), tuple(outputs), call, is_late=True)
