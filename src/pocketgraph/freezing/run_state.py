"""Variables in which a model keeps what it was given, from one run to the next: a frozen graph keeps nothing."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.freezing.repair.updates import is_update, updated_variable
from pocketgraph.graph import Graph
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.order import reachable


def run_state(graph: Graph, outputs: Sequence[str]) -> list[str]:
    """The variables that each run sets to something made of its inputs, and that the outputs are made of.

    ::

        frame = Placeholder(dtype=float)
        window = VarHandleOp(dtype=float)                   the last frames
        earlier = ReadVariableOp(window)
        later = ConcatV2(earlier, frame, axis)
        kept = AssignVariableOp(window, later)
        y = MatMul(later, weights, ^kept)

    What optimizers do is training's, and so as a rule is what a branch of the graph does (moving averages): neither is
    looked at.

    Args:
        graph: with its variables, and its functions inlined.
        outputs: what is computed.
    """
    needed = reachable(graph, outputs, missing_ok=True)
    computed_with = reachable(graph, outputs, data_only=True, missing_ok=True)
    found: dict[str, None] = {}
    for node in graph:
        if node.name not in needed or not is_update(node) or not node.op.startswith("Assign"):
            continue
        variable = updated_variable(graph, node)
        if variable is None or variable not in computed_with:
            continue
        sources = {graph[name].op for name in reachable(graph, node.data_inputs[1:], data_only=True, missing_ok=True)}
        if sources & ops_with("placeholder") and not sources & ops_with("control_flow"):
            found[variable] = None
    return list(found)


def forgotten(variables: Sequence[str]) -> str:
    """What it means that variables are frozen that keep what the model was given."""
    names = ", ".join(f"'{name}'" for name in variables)
    return (
        f"the model remembers earlier runs in {names}, and a frozen graph does not: each run begins with the stored "
        "values. Give the model its state as an input, and the next one as an output, so that the app keeps it"
    )
