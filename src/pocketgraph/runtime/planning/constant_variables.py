"""Makes constants of variables that do not change, so that LiteRT gets weights and not values of unknown content.

A session of a SavedModel has its weights in variables. A plan that only reads them is made with their values. A
variable that was assigned more than once is taken for one that changes (a counter, a net in training) and stays a
variable; when one is assigned after it was taken for a constant, the plans that hold its value are let go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from pocketgraph.errors import PocketgraphError
from pocketgraph.freezing.graph_variables import HANDLE_OP, is_variable
from pocketgraph.graph import Graph, Node, Tensor, opdefs
from pocketgraph.graph.dtype import RESOURCE
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.state.variables import Variable, variable_key
from pocketgraph.runtime.engines.needed import Item

READERS = ops_with("reads_handle", "passes", "control_flow", "call", "branch", "loop") | {"IdentityN"}
"""Ops that take a variable's handle and change nothing, or whose functions are looked at as well."""

OTHER_RESOURCES = ("TensorArray", "Stack", "LookupTable", "InitializeTable", "BoostedTrees", "Queue", "FakeQueue")
"""Not a trait: how the names of ops begin whose resources are no variables."""


def freeze_constant_variables(
    graph: Graph,
    items: Mapping[str, Item],
    nodes: Iterable[Node],
    kept: Collection[Endpoint],
    state: Mapping[str, Any],
    on_change: Callable[[], None],
) -> Graph:
    """The graph with constants for the variables that the plan reads and nobody changes; ``graph`` if there are none.

    Args:
        graph: the graph.
        items: its needed nodes.
        nodes: the same, and those of all functions that they may run.
        kept: what is fed and fetched.
        state: of the session; the variables that become constants call ``on_change`` when they are assigned again.
    """
    from pocketgraph.freezing.constant_substitution import variables_to_constants

    found = {name: _settled(item.node, state) for name, item in items.items() if is_variable(item.node)}
    given = {endpoint.node for endpoint in kept}
    chosen = {
        name: variable
        for name, variable in found.items()
        if variable is not None and not (items[name].node.op == HANDLE_OP and name in given)
    }
    if not chosen or any(_may_change(op) for op in {node.op for node in nodes} - graph.functions.keys()):
        return graph
    for variable in chosen.values():  # before the values are read, so that no assignment is missed
        variable.on_change = on_change
    values = {name: Tensor.from_numpy(variable.read(), variable.dtype) for name, variable in chosen.items()}
    needed = graph.replace([node for node in graph if node.name in items or node.name in given])
    try:
        return variables_to_constants(needed, values)
    except PocketgraphError:
        return graph  # a handle goes where no constant can


def _settled(node: Node, state: Mapping[str, Any]) -> Variable | None:
    """The session's variable of this node, when it has been assigned just once."""
    container, shared = node.attr("container", b""), node.attr("shared_name", b"")
    assert isinstance(container, bytes)
    assert isinstance(shared, bytes)
    key = variable_key(container.decode("utf-8", "replace"), shared.decode("utf-8", "replace") or node.name)
    variable = state.get(key)
    if not isinstance(variable, Variable) or variable.changes != 1 or not variable.is_initialized:
        return None
    return variable


def _may_change(op: str) -> bool:
    """Whether an op may write to a variable, or wants one and no value, as far as its signature tells."""
    if op in READERS or op.startswith(OTHER_RESOURCES):
        return False
    definition = opdefs.find(op)
    if definition is None:
        return True
    return any(arg.is_ref or (definition.stateful and arg.dtype is RESOURCE) for arg in definition.inputs)
