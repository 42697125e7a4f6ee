"""Compiles switches: each marks which of its ways are dead, and passes its input on."""

from __future__ import annotations

from functools import partial

from pocketgraph.graph import Node
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.engines.liveness import Liveness, Way, together
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.engines.region_draft import RegionDraft
from pocketgraph.runtime.engines.step_calls import branch_marks, case_marks, dereferenced, same


def add_switch(builder: RegionDraft, item: Item, live: Liveness) -> None:
    """A Switch costs one step for all Switches on the same predicate: it marks which branch is dead."""
    data, predicate = item.data
    decides = builder.slot(predicate)
    passes_reference = item.node.op == "RefSwitch"
    if builder.slot(data) in builder.references and not passes_reference:
        out = builder.new_slot()
        builder.add_step(item.node, dereferenced(same, (0,)), (builder.slot(data),), ((0, out),), live)
        source = out
    else:
        source = builder.slot(data)
    for port, value in ((0, False), (1, True)):
        endpoint = Endpoint(item.node.name, port)
        if endpoint in builder.plan.fed:
            continue
        builder.slots[endpoint] = source
        branch = Liveness(frozenset({(decides, value)}), ())
        if decides != builder.condition:
            branch = Liveness(branch.atoms, (_marker(builder, item.node, decides, value, builder.live_of(predicate)),))
        builder.live[endpoint] = together([live, branch], builder.condition)


def add_switch_of_many(builder: RegionDraft, item: Item, live: Liveness) -> None:
    """A switch with a way for each number: one step for all of them on the same number marks the ways not taken."""
    data, number = (builder.slot(endpoint) for endpoint in item.data)
    count = int(item.node.attr("num_outs", 1))
    marks = builder.ways.get((number, count))
    if marks is None:
        marks = builder.ways[number, count] = [builder.new_slot() for _ in range(count)]
        call = partial(case_marks, count)
        plain = dereferenced(call, (0,)) if number in builder.references else call
        builder.add_step(item.node, plain, (number,), tuple(enumerate(marks)), builder.live_of(item.data[1]))
    for port, mark in enumerate(marks):
        endpoint = Endpoint(item.node.name, port)
        if endpoint not in builder.plan.fed:
            branch = Liveness(frozenset({(Way(number, port, count), True)}), (mark,))
            builder.slots[endpoint] = data
            builder.live[endpoint] = together([live, branch], builder.condition)


def _marker(builder: RegionDraft, node: Node, decides: int, value: bool, live: Liveness) -> int:
    """A slot that is DEAD when the predicate in slot ``decides`` is not ``value``."""
    if (decides, True) not in builder.markers:
        false, true = builder.new_slot(), builder.new_slot()
        builder.markers[decides, False], builder.markers[decides, True] = false, true
        call = dereferenced(branch_marks, (0,)) if decides in builder.references else branch_marks
        builder.add_step(node, call, (decides,), ((0, false), (1, true)), live)
    return builder.markers[decides, value]
