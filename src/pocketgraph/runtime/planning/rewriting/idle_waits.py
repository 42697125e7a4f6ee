"""Drops waits that make no difference: control inputs that hold nothing back which has an effect, or is seen.

TensorFlow's gradients wait for all gradients of the same layer: an Identity of each waits for a NoOp that waits for
them. Such an Identity leaves as well. Within ``tf.control_dependencies``, as around a step that updates batch norms,
even constants wait; what has effects waits in their place, so that they are constants again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pocketgraph.graph import Graph
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.runtime.engines.compilation_units import Plan
from pocketgraph.runtime.engines.needed import Item, runs_after
from pocketgraph.runtime.engines.reference_arguments import is_plain
from pocketgraph.runtime.planning.rewriting.effects import computed, is_pure, numbers, takes_variable

MOST_WAITS = 16  # nodes that a NoOp hands on; it stays where it waits for more
BRANCHING = ops_with("control_flow")
ANY_VARIABLES = ops_with("variable", "reference_variable")


def without_idle_waits(graph: Graph, plan: Plan, conditional: Collection[str], held: Collection[str]) -> Graph:
    """The graph without such waits; the same graph if there are none.

    Nodes with an effect, and those that read what effects change, keep their order. A node without one hands its waits
    on to those behind it, but for a wait that may end a run, as for an Assert.

    Args:
        plan: its needed nodes.
        conditional: nodes that do not run in every run; where there are any, all waits stay.
        held: nodes that must stay.
    """
    items = plan.items
    is_looping = any(frame.depth for frame in plan.frames.values())
    if conditional or is_looping:
        return graph
    if waits_for_nothing(items):
        kept: dict[str, list[str]] = {name: [] for name, item in items.items() if item.control}
    else:
        kept = _Waits(plan, held).kept
    changed = {
        name: items[name].node.replace(inputs=[*items[name].node.data_inputs, *(f"^{each}" for each in waits)])
        for name, waits in kept.items()
        if list(items[name].control) != waits
    }
    passed = {
        Endpoint(name, 0): items[name].data[0]
        for name, node in changed.items()
        if node.op == "Identity" and not kept[name] and name not in held and not takes_variable(plan, items[name])
    }
    for name, item in items.items() if passed else ():
        if not passed.keys().isdisjoint(item.data):
            node = changed.get(name, item.node)
            inputs = [*(_source(each, passed) for each in item.data), *node.control_inputs]
            changed[name] = node.replace(inputs=inputs)
    return graph.map_nodes(lambda node: changed.get(node.name, node)) if changed else graph


def waits_for_nothing(items: Mapping[str, Item]) -> bool:
    """Whether none of these nodes has an effect, so that no wait between them makes a difference."""
    return all(is_pure(op) and is_plain(op) for op in {item.node.op for item in items.values()})


def without_waits(graph: Graph, items: Mapping[str, Item]) -> Graph:
    """The graph whose nodes wait for nothing but their inputs; the same graph where effects or branches may be waited
    for."""
    if any(item.node.op in BRANCHING for item in items.values()) or not waits_for_nothing(items):
        return graph
    waiting = {name: item.node.replace(inputs=item.node.data_inputs) for name, item in items.items() if item.control}
    return graph.map_nodes(lambda node: waiting.get(node.name, node))


def _source(endpoint: Endpoint, passed: dict[Endpoint, Endpoint]) -> str:
    while endpoint in passed:
        endpoint = passed[endpoint]
    return str(endpoint)


class _Waits:
    """For whom nodes have to wait. Sets of nodes are bits of a number, by their place in an order in which they run.

    Attributes:
        kept: by each node that waits, or waited, for whom.
    """

    def __init__(self, plan: Plan, held: Collection[str]) -> None:
        from graphlib import TopologicalSorter  # which plain nets do without

        items = plan.items
        sources = {name: runs_after(item, plan.fed) for name, item in items.items()}
        self._order = [name for name in TopologicalSorter(sources).static_order() if name in items]
        self.kept: dict[str, list[str]] = {}
        bits = {name: 1 << number for number, name in enumerate(self._order)}
        ending = 0  # nodes whose effects are not those on variables: they may end a run
        behind_ending = 0  # these, and those behind one
        before: dict[str, int] = {}  # by node: those with effects before it, and itself
        handed_on: dict[str, int] = {}  # by node: whom those behind it wait for
        for name in self._order:
            item = items[name]
            has_variable = takes_variable(plan, item)
            has_effect = has_variable or not is_pure(item.node.op)
            is_ending = has_effect and not has_variable and item.node.op not in ANY_VARIABLES
            seen = waits = chosen = 0
            for source in computed(plan, item):
                seen, waits = seen | before[source], waits | handed_on[source]
            for waited in item.control:
                waits |= bits.get(waited, 0) | handed_on.get(waited, 0)
            stays = has_effect or name in held
            if item.node.op == "NoOp" and waits.bit_count() > MOST_WAITS:
                stays = True  # those behind it wait for one, not each for all
            for number in numbers(waits if stays else waits & behind_ending):
                behind = before[self._order[number]]
                if not behind & ~seen:
                    waits ^= 1 << number
                elif stays or behind & ending:
                    chosen, seen = chosen | 1 << number, seen | behind
            handed_on[name] = waits & ~chosen if not stays else 0
            before[name] = seen | (bits[name] if has_effect else 0)
            ending |= bits[name] if is_ending else 0
            behind_ending |= bits[name] if before[name] & ending else 0
            if chosen or item.control:
                self.kept[name] = [self._order[number] for number in numbers(chosen)]
