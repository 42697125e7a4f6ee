"""Assignments to variables, which a frozen graph cannot make, are dropped."""

from __future__ import annotations

from pocketgraph.freezing.graph_variables import REFERENCE_CARRIERS, is_variable
from pocketgraph.graph import Graph, Node, node_name, opdefs
from pocketgraph.graph.edit import rename_inputs
from pocketgraph.graph.function_body import reachable_functions
from pocketgraph.graph.op_traits import PASSES_OR_ROUTES


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
    outputs = {node_name(name) for name in graph.outputs}
    renames: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph:
        if node.name in updates and node.name in outputs:
            dtype = opdefs.output_dtypes(node)
            gives = bool(dtype)
            nodes.append(
                Node(node.name, "Identity", node.data_inputs[:1], {"T": dtype[0].base})
                if gives
                else Node(node.name, "NoOp")
            )
            continue
        if node.name in updates:
            renames[node.name] = node.data_inputs[0]
            continue
        nodes.append(node.without_waits(updates))
    lines = {
        name: f"'{name}' ({node.op} to '{updated_variable(graph, node)}') is dropped" for name, node in updates.items()
    }
    return rename_inputs(graph.replace(nodes), renames), lines


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
