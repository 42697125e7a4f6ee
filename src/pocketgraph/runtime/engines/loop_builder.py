"""Compiles loops: what goes in and out, and whether one condition rules all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ENTER, EXIT
from pocketgraph.runtime.engines import frames as loops
from pocketgraph.runtime.engines.frames import Loop
from pocketgraph.runtime.engines.liveness import LIVE, Liveness, together
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.engines.region import LoopRegion
from pocketgraph.runtime.engines.region_draft import RegionDraft, Unstructured
from pocketgraph.runtime.engines.step_calls import dereferenced
from pocketgraph.runtime.engines.steps import RUN


def add_loop(outer: RegionDraft, loop: Loop) -> None:
    """Compiles a loop into one step of the region around it."""
    items, frames = outer.plan.items, outer.plan.frames
    members = [items[name] for name in loop.members]
    enters = [i for i in members if i.node.op in ENTER and frames[i.node.name] == loop.frame]
    exits = [i for i in members if i.node.op in EXIT and frames[i.node.name] == outer.within]
    alive = [
        together(
            [outer.live_of(i.data[0]), *(outer.node_live.get(c, LIVE) for c in i.control)], outer.condition
        )
        for i in enters
    ]  # fmt: skip
    # what stays the same in a loop may be live where the loop does not run; it runs when its variables are live
    varying = [live for live, i in zip(alive, enters, strict=True) if not i.node.attr("is_constant", False)] or alive
    uniform = len({live.atoms for live in varying}) == 1 and all(live.atoms <= varying[0].atoms for live in alive)
    body = [i.node.name for i in members if i not in enters and i not in exits]
    compiled = partial(compiled_loop, enters=enters, exits=exits, body=body)
    try:
        if not uniform:
            raise Unstructured
        call, references = loop_call(outer, loop, compiled, structured=True)
    except Unstructured:
        call, references = loop_call(outer, loop, compiled, structured=False)
    if uniform:
        inputs = [outer.slot(i.data[0]) for i in enters]
        guard = varying[0]
    else:
        inputs, guard = [], LIVE
        for item, live in zip(enters, alive, strict=True):
            entering = Endpoint(item.node.name, -1)  # the value outside of the loop, dead when its waits are
            outer.slots[entering], outer.live[entering] = outer.slot(item.data[0]), live
            inputs.append(outer.materialized(entering))
    certain = call.condition is not None and uniform
    outputs = []
    for index, item in enumerate(exits):
        slot = outer.new_slot()
        outputs.append((index, slot))
        endpoint = Endpoint(item.node.name, 0)
        atoms = guard.atoms if certain else guard.atoms | {(f"exit {item.node.name}", True)}
        outer.live[endpoint] = Liveness(atoms, (slot,)) if atoms else LIVE
        outer.node_live[item.node.name] = outer.live[endpoint]
        if endpoint not in outer.plan.fed:
            outer.slots[endpoint] = slot
        if index in references:
            outer.references.add(slot)
    stand_in = enters[0].node.replace(name=loop.frame.name, op="While")
    wants_reference = {index for index, item in enumerate(enters) if item.node.op == "RefEnter"}
    positions = tuple(1 + i for i, slot in enumerate(inputs) if slot in outer.references and i not in wants_reference)
    final: Callable[..., Any] = call
    if positions:
        final = dereferenced(call, positions)
    outer.add_step(stand_in, final, [RUN, *inputs], tuple(outputs), guard)


def loop_call(
    outer: RegionDraft, loop: Loop, compiled: Callable[..., tuple[LoopRegion, set[int]]], *, structured: bool
) -> tuple[LoopRegion, set[int]]:
    """Compiles the inside of a loop, once however often the region around it is tried.

    Raises:
        Unstructured: its variables do not all hang on one condition.
    """
    made = outer.plan.loops
    key = (loop.frame, loop.members[0], structured)
    if key not in made:
        try:
            made[key] = compiled(outer, loop, structured=structured)
        except Unstructured:
            made[key] = None
    found: tuple[LoopRegion, set[int]] | None = made[key]
    if found is None:
        raise Unstructured
    return found


def compiled_loop(
    outer: RegionDraft, loop: Loop, *, enters: Sequence[Item], exits: Sequence[Item], body: Sequence[str],
    structured: bool,
) -> tuple[LoopRegion, set[int]]:  # fmt: skip
    """What ``loop_call`` gives, made anew.

    Raises:
        Unstructured: as there.
    """
    items = outer.plan.items
    inside = outer.inside(loop.frame, structured=structured)
    for item in enters:
        _bind(inside, item, "enter")
        inside.node_live[item.node.name] = inside.live[Endpoint(item.node.name, 0)]
        if item.node.op == "RefEnter" and outer.slot(item.data[0]) in outer.references:
            inside.references.add(inside.slots[Endpoint(item.node.name, 0)])
    heads = [items[name] for name in body if loops.is_loop_head(items[name], items)]
    heads = [item for item in heads if outer.plan.frames[item.node.name] == loop.frame]
    for item in heads:
        _bind(inside, item, "variable")
    inside.build(body, [item.data[0] for item in exits])
    rounds = [loops.first_and_next(item, items) for item in heads]
    leaving = [(item, _live_at_exit(inside, item)) for item in exits]
    if structured:
        _check_structure(inside, rounds, [live for _, live in leaving])
    slot_of = inside.slot if structured else inside.materialized
    slots = [inside.slots[Endpoint(item.node.name, 0)] for item in heads]
    variables = tuple((s, slot_of(first), slot_of(back)) for s, (first, back) in zip(slots, rounds, strict=True))
    if structured:
        out_slots = tuple(inside.slot(item.data[0]) for item in exits)
    else:
        out_slots = tuple(leaving_slot(inside, item, live) for item, live in leaving)
    inside.kept.update(slot for triple in variables for slot in triple)
    inside.kept.update(out_slots)
    references = {index for index, slot in enumerate(out_slots) if slot in inside.references}
    entering = tuple(inside.slots[Endpoint(i.node.name, 0)] for i in enters)
    hoists = structured and outer.plan.dynamic is not None and outer.plan.uses("loop_invariants")
    steps = inside.parted(entering if hoists else ())
    condition = inside.condition if structured else None
    call = LoopRegion(loop.frame.name, inside.region(), entering, variables, out_slots, condition, steps)
    return call, references


def _bind(inside: RegionDraft, item: Item, what: str) -> None:
    """A slot for what comes in at a node; where there is no one condition, it is live by itself."""
    endpoint = Endpoint(item.node.name, 0)
    slot = inside.bind(endpoint)
    if not inside.structured:
        inside.live[endpoint] = Liveness(frozenset({(f"{what} {item.node.name}", True)}), (slot,))


def _live_at_exit(inside: RegionDraft, item: Item) -> Liveness:
    waits = [inside.node_live.get(name, LIVE) for name in item.control]
    return together([inside.live_of(item.data[0]), *waits])


def _check_structure(
    inside: RegionDraft, rounds: Sequence[tuple[Endpoint, Endpoint]], leaving: Sequence[Liveness]
) -> None:
    """Raises Unstructured where the variables do not all hang on one condition."""
    condition = inside.condition
    if condition is None or not rounds:
        raise Unstructured
    true, false = frozenset({(condition, True)}), frozenset({(condition, False)})
    if any(inside.live_of(back).atoms != true for _, back in rounds):
        raise Unstructured
    if any(live.atoms != false for live in leaving):
        raise Unstructured
    if any(inside.live_of(first).atoms for first, _ in rounds):
        raise Unstructured


def leaving_slot(inside: RegionDraft, item: Item, live: Liveness) -> int:
    """A slot that holds what an Exit passes on, DEAD while it does not."""
    key = Endpoint(item.node.name, -2)
    inside.slots[key], inside.live[key] = inside.slot(item.data[0]), live
    return inside.materialized(key)
