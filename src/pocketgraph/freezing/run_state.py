"""Variables in which a model keeps what it was given, from one run to the next: a frozen graph keeps nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pocketgraph.errors import option
from pocketgraph.freezing.repair.updates import is_update, updated_variable
from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.op_traits import FUSED_BATCH_NORMS, PLACEHOLDERS, ops_with
from pocketgraph.graph.order import inside_loops, reachable
from pocketgraph.pages.quantities import listed

_ZERO_STATE = re.compile(r"ZeroState(_\d+)?/zeros(_\d+)?$")
"""How TensorFlow 1 calls the states that a recurrent cell begins with."""
_LOOPS = ops_with("enter", "loop")
_BRANCHES = ops_with("control_flow") - ops_with("enter", "exit")


def run_state(graph: Graph, outputs: Sequence[str]) -> list[str]:
    """The variables that each run sets to something made of its inputs, and that the outputs are made of.

    ::

        frame = Placeholder(dtype=float)
        window = VarHandleOp(dtype=float)                   the last frames
        earlier = ReadVariableOp(window)
        later = ConcatV2(earlier, frame, axis)
        kept = AssignVariableOp(window, later)
        y = MatMul(later, weights, ^kept)

    What optimizers do is training's, and so as a rule is what a branch of the graph does (moving averages), and the
    range of a fake quantization or the statistics of a batch norm: none of these is looked at.

    Args:
        graph: with its variables, and its functions inlined.
        outputs: what is computed.
    """
    needed = reachable(graph, outputs, missing_ok=True)
    computed_with = reachable(graph.map_nodes(without_statistics), outputs, data_only=True, missing_ok=True)
    loops = inside_loops(graph)
    found: dict[str, None] = {}
    for node in graph:
        if (
            node.name not in needed
            or not is_update(node)
            or not node.op.startswith(("Assign", "ResourceScatterNd", "ResourceStridedSliceAssign"))
        ):
            continue
        variable = updated_variable(graph, node)
        if variable is None or variable not in computed_with:
            continue
        sources = reachable(graph, node.data_inputs[1:], data_only=True, missing_ok=True)
        is_on_branch = any(graph[name].op in _BRANCHES for name in sources - loops)
        if not is_on_branch and any(graph[name].op in PLACEHOLDERS for name in sources):
            found[variable] = None
    return list(found)


def without_statistics(node: Node) -> Node:
    """The node without what training keeps for it: the ends of a range, a mean and a variance."""
    inputs = node.data_inputs
    if node.op in ops_with("fake_quantization"):
        return node.replace(inputs=inputs[:1])
    if node.op in FUSED_BATCH_NORMS:
        return node.replace(inputs=inputs[:3])
    if node.op in ops_with("batch_norm"):  # its mean and variance come before what scales and shifts
        return node.replace(inputs=[*inputs[:1], *inputs[3:]])
    return node


def forgotten(variables: Sequence[str]) -> str:
    """What it means that variables are frozen that keep what the model was given."""
    return (
        f"the model remembers earlier runs in {listed(variables, 2, quoted=True)}, and a frozen graph does not: each "
        "run begins with the stored values. Give the model its state as an input, and the next one as an output, so "
        "that the app keeps it"
    )


def zero_states(graph: Graph) -> list[str]:
    """The states of zeros of a recurrent network that takes a single step a run, as one does that writes a text letter
    by letter: the weights of its cells are used once, outside of loops. Whoever samples with it feeds these tensors.
    """
    needed = reachable(graph, graph.outputs, data_only=True, missing_ok=True)
    states = [node.name for node in graph if node.name in needed and _ZERO_STATE.search(node.name)]
    if not states or any(graph[name].op in _LOOPS for name in needed):
        return []
    used: dict[str, int] = {}
    cells = []
    for name in needed:
        node = graph[name]
        if node.op == "MatMul":
            weights = reachable(graph, node.data_inputs[1:], data_only=True, missing_ok=True)
            for one in weights:
                used[one] = used.get(one, 0) + 1
            joined = graph.find_producer(node.data_inputs[0])
            if joined is not None and any(node_name(ref) in states for ref in joined.data_inputs):
                cells.append(node_name(node.data_inputs[1]))
    return states if cells and all(used[cell] == 1 for cell in cells) else []


def begun_anew(states: Sequence[str]) -> str:
    """What it means that a network of one step begins with zeros."""
    return (
        f"the model takes one step a run, and begins each with a state of zeros ({listed(states, 1, quoted=True)}): "
        f"to go on from the last step, name these and its other inputs with {option('inputs')}, and the cells' new "
        f"states with {option('outputs')}, which the app feeds again"
    )
