"""Assignments to variables, which a frozen graph cannot make, are dropped."""

from __future__ import annotations

from collections.abc import Collection

from pocketgraph.freezing.graph_variables import REFERENCE_CARRIERS, is_variable
from pocketgraph.graph import Graph, Node, node_name, opdefs
from pocketgraph.graph.dtype import BOOL
from pocketgraph.graph.edit import claim_name, rename_inputs
from pocketgraph.graph.function_body import reachable_functions
from pocketgraph.graph.op_traits import BINARY_SWITCHES, PASSES_OR_ROUTES
from pocketgraph.graph.order import inside_loops, on_branches


def repaired(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """What used the result of an assignment takes the variable as it was trained; nothing waits for it any more.

    Given:   x = Placeholder(dtype=float)
             change = Const(float 0.5)
             moving_mean = VariableV2(dtype=float, shape=[])
             average = AssignSub(moving_mean, change, T=float)
             y = Mul(x, average, T=float)
    Result:  x = Placeholder(dtype=float)
             moving_mean = VariableV2(dtype=float, shape=[])
             y = Mul(x, moving_mean, T=float)

    Also where the variable has been made a constant already, as in graphs that were frozen with their initializers.
    """
    updates = {node.name: node for node in graph if is_update(node) and updated_variable(graph, node) is not None}
    if not updates:
        return graph, {}
    lines = {
        name: f"'{name}' ({node.op} to '{updated_variable(graph, node)}') is dropped" for name, node in updates.items()
    }
    outputs = {node_name(name) for name in graph.outputs}
    renames: dict[str, str] = {}
    nodes: list[Node] = []
    graph, rest = assigning_nothing(graph, updates, outputs)
    for node in graph:
        if node.name not in rest:
            nodes.append(node.without_waits(rest))
        elif node.name in outputs:
            passing = _passing(node, 0 if opdefs.output_dtypes(node) else None)
            nodes.append(passing.replace(inputs=passing.data_inputs))
        else:
            renames[node.name] = node.data_inputs[0]
    return rename_inputs(graph.replace(nodes), renames), lines


def assigning_nothing(graph: Graph, dead: Collection[str], outputs: Collection[str] = ()) -> tuple[Graph, set[str]]:
    """The graph in which those of these assignments change nothing whose users run in a round of a loop or on a branch
    only because they wait for them or take what they give; and the names of the others.

    ::

        handle = Switch(steps, p)
        count = AssignAddVariableOp(handle:1, one)      count/way = Switch(p, p)
        yes = Const(float 5.0, ^count)             ->   count/pivot = Identity(count/way:1)
                                                        count = Identity(one, ^count/pivot)
                                                        yes = Const(float 5.0, ^count)

    What is assigned is passed on, or the variable where its value is taken. A pivot is put in where neither is on each
    of the assignment's branches; in a loop, in which none can stand, what was assigned is waited for.

    Args:
        dead: names of assignments.
        outputs: names of nodes whose results are asked for.
    """
    loops = inside_loops(graph) & {*dead}
    ways = {} if graph.ops.isdisjoint(BINARY_SWITCHES) else on_branches(graph)
    if not (loops or any(ways.get(name) for name in dead)):
        return graph, {*dead}
    handles = {name: graph[name].data_inputs[0] for name in dead}
    alone = on_branches(rename_inputs(graph.map_nodes(lambda node: node.without_waits(dead)), handles)) if ways else {}
    needed, taken = set[str](), {*outputs}
    for node in graph:
        is_lost = ways.get(node.name) != alone.get(node.name)
        needed |= {ref[1:] for ref in node.control_inputs if is_lost or ref[1:] in loops}
        sources = {node_name(ref) for ref in node.data_inputs}
        needed |= sources if is_lost else set() if node.name in dead else sources & loops
        taken |= sources
    held: dict[str, Node] = {}
    for name in needed.intersection(dead):
        if name in loops or ways.get(name):
            count = len(graph[name].data_inputs)
            is_taken = name in taken and bool(opdefs.output_dtypes(graph[name]))
            place = 0 if is_taken or (count < 2 and name in loops) else 1 if count > 1 else None
            held[name] = _passing(graph[name], place)
    rest = {*dead} - held.keys()
    given = {name: graph[name].data_inputs for name in held}
    graph = graph.map_nodes(lambda node: held.get(node.name, node).without_waits(rest))
    left = on_branches(graph) if ways else {}
    names = set(graph.nodes)
    nodes = list[Node]()
    for node in graph:
        missing = sorted(ways.get(node.name, set()) - left.get(node.name, set())) if node.name in held else []
        if node.name in held and node.name in loops:  # the variable may come from outside, and be there in each round
            waits = (f"^{node_name(ref)}" for ref in given[node.name][1:] if ref not in node.inputs)
            node, missing = node.replace(inputs=[*node.inputs, *waits]), []
        for predicate, port in (way.split(" ") for way in missing):
            operand = predicate.removesuffix(":0")
            switch = Node(claim_name(f"{node.name}/way", names), "Switch", [operand, operand], {"T": BOOL})
            pivot = Node(claim_name(f"{node.name}/pivot", names), "Identity", [f"{switch.name}:{port}"], {"T": BOOL})
            nodes += [switch, pivot]
            node = node.replace(inputs=[*node.inputs, f"^{pivot.name}"])
        nodes.append(node)
    return graph.replace(nodes), rest


def _passing(node: Node, place: int | None) -> Node:
    """What waits as an assignment does and gives this one of its inputs, or nothing."""
    if place is None:
        return Node(node.name, "NoOp", node.control_inputs, {}, node.device)
    inputs = [node.data_inputs[place], *node.control_inputs]
    return Node(node.name, "Identity", inputs, {"T": opdefs.input_dtypes(node)[place].base}, node.device)


def is_update(node: Node) -> bool:
    """Whether a node changes the variable that is its first input."""
    return opdefs.updates_variable(node.op) and bool(node.data_inputs)


def has_updates(graph: Graph) -> bool:
    """Whether a graph or a function that it calls assigns to a variable."""
    called = reachable_functions(graph, graph.functions).values()
    bodies = [graph.nodes.values(), *(function.nodes for function in called)]
    return any(is_update(node) for nodes in bodies for node in nodes)


def updated_variable(graph: Graph, node: Node) -> str | None:
    """The variable or constant that an assignment changes."""
    source: Node | None = node
    for _ in range(len(graph)):
        if source is None or not is_update(source):
            break
        source = graph.find_producer(source.data_inputs[0], PASSES_OR_ROUTES | REFERENCE_CARRIERS)
    return source.name if source is not None and (is_variable(source) or source.op == "Const") else None
