"""Drops assignments that no answer depends on: those that count a served model's steps, those to what is constant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pocketgraph.freezing.repair.updates import is_update, updated_variable
from pocketgraph.freezing.run_state import without_statistics
from pocketgraph.freezing.subgraph import extract_sub_graph
from pocketgraph.graph import Graph, Node, node_name, opdefs
from pocketgraph.graph.edit import free_name
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.order import reachable

_VALUES = {
    "AssignVariableOp": ("", "dtype"),
    "AssignAddVariableOp": ("AddV2", "dtype"),
    "AssignSubVariableOp": ("Sub", "dtype"),
    "ResourceScatterNdUpdate": ("TensorScatterUpdate", "T"),
    "ResourceScatterNdAdd": ("TensorScatterAdd", "T"),
    "ResourceScatterNdSub": ("TensorScatterSub", "T"),
    "ResourceStridedSliceAssign": ("TensorStridedSliceUpdate", "T"),
}
"""Not a trait: assignments, what computes their variable's new value ("" where it is the operand), and the attribute
that tells its type."""


def without_dead_updates(graph: Graph, outputs: Iterable[str]) -> tuple[Graph, dict[str, str]]:
    """The graph without the assignments whose result no answer is computed with, and after which none reads the
    variable, itself or for another assignment that stays; and a line for each, by its name.

    ::

        count = AssignAddVariableOp(steps, one)
        y = Relu(x, ^count)                        ->   y = Relu(x)

    Any other assignment stays: the answer would be another without it.
    """
    names = list(outputs)
    updates = {node.name: variable for node in graph if is_update(node) and (variable := updated_variable(graph, node))}
    if not updates:
        return graph, {}
    live = _live_updates(graph, names, updates)
    dead = {name: variable for name, variable in updates.items() if name not in live}
    if not dead:
        return graph, {}
    waits = {f"^{name}" for name in dead}
    kept = [_without(node, waits) for node in graph if node.name not in dead]
    lines = {name: f"'{name}' ({graph[name].op} to '{variable}') is dropped" for name, variable in dead.items()}
    return extract_sub_graph(graph.replace(kept), names), lines


def _live_updates(graph: Graph, outputs: Collection[str], updates: Mapping[str, str]) -> set[str]:
    """Those of the assignments that outputs depend on; Keras 3's layers count their seed, one on top of the other."""
    live: set[str] = set()
    computed_with = reachable(graph, outputs, data_only=True, missing_ok=True)
    while True:
        found = {
            name
            for name in updates.keys() - live
            if name in computed_with or _is_read_after(graph, name, updates[name], computed_with)
        }
        if not found:
            return live
        live |= found
        computed_with |= reachable(graph, sorted(found), data_only=True)


def _is_read_after(graph: Graph, update: str, variable: str, computed_with: Collection[str]) -> bool:
    """Whether one of these nodes takes the variable when an assignment has been made."""
    return any(
        user.name != update and user.name in computed_with and update in reachable(graph, list(user.inputs))
        for user in graph.consumers.get(variable, ())
    )


def updates_of_constants(graph: Graph) -> dict[str, str]:
    """The assignments to constants, as a graph has that was frozen with its updates, and what each would change."""
    found = {node.name: updated_variable(graph, node) for node in graph if is_update(node)}
    return {name: constant for name, constant in found.items() if constant and graph[constant].op == "Const"}


def without_waits_for(graph: Graph, updates: Mapping[str, str], outputs: Iterable[str]) -> Graph:
    """The graph in which nothing waits for assignments to constants that no output is computed with.

    ::

        mean = Const(float 0.5)
        average = AssignSub(mean, change)
        y = Relu(x, ^average)                      ->   y = Relu(x)

    One whose result an output takes, or that changes what an output reads behind it, is waited for.

    Args:
        updates: of ``updates_of_constants``.
    """
    needed = reachable(graph, list(outputs), data_only=True, missing_ok=True)
    readers = {user.name for constant in updates.values() for user in graph.consumers[constant]}
    needed |= reachable(graph, sorted(readers & needed), missing_ok=True)
    waits = {f"^{name}" for name in updates if name not in needed}
    return graph.map_nodes(lambda node: _without(node, waits) if not waits.isdisjoint(node.inputs) else node)


def with_assigned_values(graph: Graph, outputs: Collection[str]) -> Graph:
    """The graph in which what reads a variable after an assignment of the same run takes what was assigned.

    ::

        write = AssignVariableOp(window, frames)
        now = ReadVariableOp(window, ^write)       ->   now = Identity(frames, ^write)

        count = AssignAddVariableOp(steps, one)
        now = ReadVariableOp(steps, ^count)        ->   count/before = ReadVariableOp(steps)
                                                        count/value = AddV2(count/before, one)
                                                        now = Identity(count/value, ^count)

    A frozen graph has the stored value for all reads. One stays whose variable some other node may change before it, or
    that no output is computed with but for a batch norm's statistics or the range of a fake quantization.
    """
    updates_before: dict[str, list[Node]] = {}
    handles = (graph.find_producer(node.data_inputs[0], ("Identity",)) for node in graph if node.op in _VALUES)
    for variable in {handle.name for handle in handles if handle is not None}:
        users = _users(graph, variable)
        updates = [user for user in users if is_update(user)]
        reads = [user.name for user in users if user.op == "ReadVariableOp"]
        if len(updates) + len(reads) == len(users):  # and no call is given it, which might assign
            updates_before |= dict.fromkeys(reads, updates)
    assigned: dict[str, str] = {}
    made: dict[str, list[Node]] = {}
    waiting = [node_name(name) for name in outputs] if updates_before else []
    seen = set(waiting)
    while waiting:
        node = graph[waiting.pop()]
        writes = _assigned(graph, node, updates_before.get(node.name, ()))
        if writes:
            assigned[node.name] = _value(graph, writes, made)
        refs = (
            [ref for write in writes for ref in write.data_inputs[1:]]
            if writes
            else without_statistics(node).data_inputs
        )
        names = {node_name(ref) for ref in refs} - seen
        seen |= names
        waiting += sorted(names)
    if not assigned:
        return graph
    nodes: list[Node] = []
    for node in graph:
        first, *rest = made.get(node.name, [None])
        if first is not None:
            nodes += [first, *rest]
            if first.op == "ReadVariableOp":  # in time, where the variable stays one
                node = node.replace(inputs=[*node.inputs, f"^{first.name}"])
        if node.name in assigned:
            waits = [ref for ref in node.inputs if ref.startswith("^")]
            node = node.replace(op="Identity", inputs=[assigned[node.name], *waits], attrs={"T": node.dtype("dtype")})
        nodes.append(node)
    return graph.replace(nodes)


def _users(graph: Graph, variable: str) -> list[Node]:
    """What takes a variable, also by what an inlined call was given of it."""
    found: list[Node] = []
    waiting = [variable]
    while waiting:
        name = waiting.pop()
        for user in graph.consumers.get(name, ()):
            if name in map(node_name, user.data_inputs):
                if user.op == "Identity":
                    waiting.append(user.name)
                else:
                    found.append(user)
    return found


def _assigned(graph: Graph, read: Node, updates: Collection[Node]) -> list[Node]:
    """The assignments that what is read is made by, first to last: from the last that sets the whole variable on. None
    where they are in no order or may not be made."""
    before = reachable(graph, [read.name]) if updates else ()
    made = [update for update in updates if update.name in before]
    if any(read.name not in reachable(graph, [update.name]) for update in updates if update not in made):
        return []
    earlier = {update.name: reachable(graph, [update.name]) for update in made}
    made.sort(key=lambda update: len(earlier[update.name]))
    found: list[Node] = []
    while made and not (found and found[0].op == "AssignVariableOp"):
        last = made.pop()
        is_ordered = all(other.name in earlier[last.name] for other in made)
        is_sure = not any(graph[name].op in ops_with("control_flow") for name in earlier[last.name])
        if not (is_ordered and is_sure and last.op in _VALUES):
            return []
        found.insert(0, last)
    return found


def _value(graph: Graph, writes: Iterable[Node], made: dict[str, list[Node]]) -> str:
    """The tensor of what these assignments leave in their variable. ``made`` gets the nodes that compute it, by the
    assignment in front of which they stand."""
    value = ""
    for write in writes:
        handle, *operands = write.data_inputs
        op, dtype = _VALUES[write.op]
        if not op:
            value = operands[0]
            continue
        name = free_name(f"{write.name}/value", graph)
        if write.name not in made:
            nodes = []
            if not value:
                value = free_name(f"{write.name}/before", graph)
                nodes.append(Node(value, "ReadVariableOp", [handle], {"dtype": write.dtype(dtype)}))
            kept = {key: held for key, held in write.attrs.items() if key in opdefs.definition(op).attrs}
            made[write.name] = [*nodes, Node(name, op, [value, *operands], {**kept, "T": write.dtype(dtype)})]
        value = name
    return value


def _without(node: Node, waits: Collection[str]) -> Node:
    return node.replace(inputs=[ref for ref in node.inputs if ref not in waits])
