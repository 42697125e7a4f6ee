"""What of a plan has effects, and the order of effects where a pass leaves out the way that kept it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from pocketgraph.graph import Graph
from pocketgraph.graph.dtype import RESOURCE
from pocketgraph.graph.op_traits import ENTER, EXIT, ops_with
from pocketgraph.runtime.engines.compilation_units import Plan
from pocketgraph.runtime.engines.needed import Item, runs_after
from pocketgraph.runtime.engines.reference_arguments import is_reference_output

UNORDERED = ops_with(
    "variable", "reference_variable", "table", "random", "control_flow", "array_read", "array_write"
) | {"TensorArrayV3"}  # fmt: skip
"""Ops that need not wait for others, and others not for them: arrays hand their order on as a value, the flow."""
READS = ops_with("reads_handle", "reference", "passes")


def with_effects_in_order(
    graph: Graph,
    before: Plan,
    find_after: Callable[[], Mapping[str, Item]],
    held: Collection[str],
    conditional: Collection[str],
) -> Graph:
    """The graph with waits where nodes were behind effects, and are no longer; the same graph if there are none.

    A node whose value is known becomes a constant, which has no inputs any more, though these waited for an assignment
    or were one. What has an effect behind it, or is held, waits for that itself then.

    Args:
        graph: the graph after a pass.
        before: its plan before the pass.
        find_after: gives the nodes that are needed after it; asked where there are effects.
        held: nodes that must stay.
        conditional: nodes that did not run in every run; nobody waits for these.
    """
    effects = {
        name: item
        for name, item in before.items.items()
        if item.node.op not in UNORDERED and not before.frames[name].depth and name not in conditional
        and (takes_variable(before, item) or not is_pure(item.node.op))
    }  # fmt: skip
    if all(_only_reads(item.node.op) for item in effects.values()):
        return graph
    after = find_after()
    bits = {name: 1 << number for number, name in enumerate(effects)}
    names = list(effects)
    earlier, seen = _behind(before, before.items, bits), dict[str, int]()
    added: dict[str, list[str]] = {}
    for name in _order(before, after):
        now = seen[name] = _joined(_sources(before, after[name], after), seen, bits)
        if name not in effects and name not in held:
            continue
        waiting = _entry(before, after, name) if after[name].node.op in EXIT else name
        for number in numbers(earlier.get(name, 0) & ~now):
            waited = names[number]
            is_idle = _only_reads(effects[waited].node.op) and (waited not in after or name not in effects)
            if not now >> number & 1 and not is_idle:
                now |= earlier[waited] | bits[waited]
                added.setdefault(waiting, []).append(waited)
        seen[name] = now
    if not added:
        return graph
    return graph.map_nodes(
        lambda node: (
            node.replace(inputs=[*node.inputs, *(f"^{each}" for each in added[node.name])])
            if node.name in added
            else node
        )
    )


def _entry(before: Plan, after: Mapping[str, Item], exit_name: str) -> str:
    """An Enter of the loop that an Exit leaves: what is outside can be waited for there, and not in the loop."""
    depth = before.frames[exit_name].depth + 1
    waiting, seen = [exit_name], {exit_name}
    while waiting:
        name = waiting.pop()
        frame = before.frames.get(name)
        if after[name].node.op in ENTER and frame is not None and frame.depth == depth:
            return name
        fresh = [source for source in _sources(before, after[name], after) if source not in seen]
        seen.update(fresh)
        waiting.extend(fresh)
    return exit_name


def _only_reads(op: str) -> bool:
    """Whether an op that takes a variable changes nothing."""
    from pocketgraph.graph import opdefs

    definition = opdefs.find(op)
    takes_reference = definition is not None and any(arg.is_ref for arg in definition.inputs)
    return op in READS or (is_pure(op) and not takes_reference)


def _behind(plan: Plan, items: Mapping[str, Item], bits: Mapping[str, int]) -> dict[str, int]:
    """By node the effects before it, as bits."""
    found: dict[str, int] = {}
    for name in _order(plan, items):
        found[name] = _joined(_sources(plan, items[name], items), found, bits)
    return found


def _joined(sources: Collection[str], found: Mapping[str, int], bits: Mapping[str, int]) -> int:
    joined = 0
    for source in sources:
        joined |= found[source] | bits.get(source, 0)
    return joined


def _order(plan: Plan, items: Mapping[str, Item]) -> list[str]:
    from graphlib import TopologicalSorter  # which plain nets do without

    return list(TopologicalSorter({name: _sources(plan, item, items) for name, item in items.items()}).static_order())


def _sources(plan: Plan, item: Item, items: Mapping[str, Item]) -> list[str]:
    """The needed nodes that a node is behind; not those of a loop's last round."""
    found = [name for name in runs_after(item, plan.fed) if name in items]
    return [name for name in found if items[name].node.op != "NextIteration"] if item.node.op == "Merge" else found


def numbers(bits: int) -> Iterator[int]:
    """Which bits are set, the highest first: it may have the others before it."""
    while bits:
        number = bits.bit_length() - 1
        bits ^= 1 << number
        yield number


def computed(plan: Plan, item: Item) -> list[str]:
    """The nodes that compute a node's inputs in the run."""
    return [endpoint.node for endpoint in item.data if endpoint not in plan.fed]


def takes_variable(plan: Plan, item: Item) -> bool:
    """Whether a node takes a variable itself, or its handle."""
    from pocketgraph.graph import opdefs

    definition = opdefs.find(item.node.op)
    if definition is not None and definition.stateful and any(arg.dtype is RESOURCE for arg in definition.inputs):
        return True
    return any(
        endpoint not in plan.fed and is_reference_output(plan.items[endpoint.node].node.op, endpoint.port)
        for endpoint in item.data
    )


def is_pure(op: str) -> bool:
    """Whether it makes no difference when a node runs, but for its results."""
    from pocketgraph.graph import opdefs

    definition = opdefs.find(op)
    if definition is None or definition.stateful or op in ("Enter", "Merge", "Assert"):
        return op.startswith("Placeholder")
    return bool(definition.outputs) or op == "NoOp"
