"""What a session makes of its graph's variables before it plans: constants, and reads that wait for assignments.

A session of a SavedModel has its weights in variables. A plan that only reads them is made with their values, so that
LiteRT gets weights and not values of unknown content. A variable that was assigned more than once is taken for one that
changes (a counter, a net in training) and stays a variable; when one is assigned after it was taken for a constant, the
plans that hold its value are let go.

``tf.identity(v)`` under a control dependency on an assignment is an Identity of ``v/read``, and that one waits for
nothing. In TensorFlow ``v/read`` hands on the variable's own memory, which the assignment writes into, so whoever
computes after the assignment sees the new value: moving averages of trained variables and counters count on it. Here
a read value does not change any more; such a reader is given a read of its own, which waits for what the reader waits
for. A read that is fetched is the variable's memory there too, so it is read when the run has ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Node, Tensor, opdefs
from pocketgraph.graph.dtype import RESOURCE, VARIANT
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import EXIT, HANDS_ON, MERGE, REFERENCES, SWITCH, VIEWS, ops_with
from pocketgraph.runtime.engines.frames import ROOT, frames_of, has_loops
from pocketgraph.runtime.engines.needed import Item, behind, consumers, item_of, needed

if TYPE_CHECKING:
    from pocketgraph.kernels.state.variables import Variable
    from pocketgraph.runtime.planning.call_key import CallKey

READERS = ops_with("reads_handle", "passes", "control_flow", "call", "branch", "loop") | {"IdentityN"}
"""Ops that take a variable's handle and change nothing, or whose functions are looked at as well."""

OTHER_RESOURCES = ("TensorArray", "Stack", "LookupTable", "InitializeTable", "BoostedTrees", "Queue", "FakeQueue")
"""Not a trait: how the names of ops begin whose resources are no variables."""

REFERENCE_VARIABLES = ops_with("reference_variable")


def with_session_variables(
    graph: Graph,
    items: dict[str, Item],
    nodes: Iterable[Node],
    call: CallKey,
    state: Mapping[str, Any],
    on_change: Callable[[], None],
) -> tuple[Graph, dict[str, Item], bool]:
    """The graph of a call and its needed nodes, and whether they hold values of variables.

    Args:
        graph: the model.
        items: its needed nodes.
        nodes: the same, and those of all functions that they may run.
        call: what is fed, fetched and run.
        state: of the session; none where variables are to stay variables.
        on_change: is called when a variable whose value the graph holds is assigned again.
    """
    fed = [endpoint for endpoint, _ in call.feeds]
    frozen = graph
    if state:
        frozen = freeze_constant_variables(graph, items, nodes, (*fed, *call.fetches), state, on_change)
        if frozen is not graph:
            items = needed(frozen, frozenset(fed), call.fetches, call.targets)
    return *defer_reads(frozen, items, fed, call.fetches, call.targets), frozen is not graph


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
        items: its needed nodes.
        nodes: the same, and those of all functions that they may run.
        kept: what is fed and fetched.
        state: of the session; the variables that become constants call ``on_change`` when they are assigned again.
    """
    from pocketgraph.freezing.constant_substitution import variables_to_constants
    from pocketgraph.freezing.graph_variables import HANDLE_OP, is_variable

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
    values = {}
    for name, variable in chosen.items():
        value = variable.settled
        if value is None:  # another thread's run has begun to change it
            return graph
        values[name] = Tensor.from_numpy(value, variable.dtype)
    whole = graph.replace([node for node in graph if node.name in items or node.name in given])
    try:
        return variables_to_constants(whole, values)
    except PocketgraphError:
        return graph  # a handle goes where no constant can


def _settled(node: Node, state: Mapping[str, Any]) -> Variable | None:
    """The session's variable of this node, when it has been assigned just once."""
    from pocketgraph.kernels.state.variables import Variable, variable_key  # few graphs have any

    container, shared = node.attr("container", b""), node.attr("shared_name", b"")
    assert isinstance(container, bytes)
    assert isinstance(shared, bytes)
    key = variable_key(container.decode("utf-8", "replace"), shared.decode("utf-8", "replace") or node.name)
    variable = state.get(key)
    if not isinstance(variable, Variable) or variable.settled is None:
        return None
    if variable.dtype is VARIANT:
        return None  # no constant holds such a value
    return variable


def _may_change(op: str) -> bool:
    """Whether an op may write to a variable, or wants one and no value, as far as its signature tells."""
    if op in READERS or op.startswith(OTHER_RESOURCES):
        return False
    definition = opdefs.find(op)
    if definition is None:
        return True
    return any(arg.is_ref or (definition.stateful and arg.dtype is RESOURCE) for arg in definition.inputs)


def defer_reads(
    graph: Graph,
    items: dict[str, Item],
    fed: Collection[Endpoint],
    fetches: Iterable[Endpoint] = (),
    targets: Iterable[str] = (),
) -> tuple[Graph, dict[str, Item]]:
    """The graph and its needed nodes, with such reads added; the same ones if there are none."""
    if REFERENCE_VARIABLES.isdisjoint(graph.ops):
        return graph, items
    variables = [name for name, item in items.items() if item.node.op in REFERENCE_VARIABLES]
    written = _written(items, variables) if variables else {}
    if not written:
        return graph, items
    graph, items = _fetched_last(graph, items, fed, fetches, targets)
    graph, items = _viewed_last(graph, items, fed, fetches, targets, written)
    reads = {
        name: item.data[0].node
        for name, item in items.items()
        if item.node.op == "Identity" and len(item.data) == 1 and item.data[0].node in written
        if Endpoint(name, 0) not in fed
    }
    if not reads:
        return graph, items
    from pocketgraph.graph.edit import free_name

    bits = {variable: 1 << number for number, variable in enumerate(written)}
    behind = _behind(items, written, bits)
    frames = frames_of(items, fed) if has_loops(items) else {}
    changed: dict[str, Item] = {}
    added: dict[str, Item] = {}
    for name, item in items.items():
        for endpoint in dict.fromkeys(item.data):
            variable = reads.get(endpoint.node)
            if variable is None or endpoint.port or behind.get(endpoint.node, 0) & bits[variable]:
                continue
            others = [e.node for e in item.data if e.node != endpoint.node and e not in fed] + list(item.control)
            late = [other for other in dict.fromkeys(others) if behind.get(other, 0) & bits[variable]]
            if not late or any(frames.get(each, ROOT).depth for each in (name, *late)):
                continue
            read = items[endpoint.node].node
            own = free_name(f"{read.name}/after/{name}", graph)
            node = Node(own, "Identity", (*read.inputs, *(f"^{other}" for other in late)), read.attrs)
            added[own] = item_of(node)
            base = changed.get(name, item).node
            texts = [own if Endpoint.of(text) == endpoint else text for text in base.inputs]
            changed[name] = item_of(base.replace(inputs=tuple(texts)))
    if not changed:
        return graph, items
    nodes = [changed[node.name].node if node.name in changed else node for node in graph]
    nodes += [item.node for item in added.values()]
    return graph.replace(nodes), {**items, **changed, **added}


def _fetched_last(
    graph: Graph, items: dict[str, Item], fed: Collection[Endpoint], fetches: Iterable[Endpoint], targets: Iterable[str]
) -> tuple[Graph, dict[str, Item]]:
    """With references in place of fetched reads, which are looked at when the run has ended; who computes with such a
    read keeps it.

    Given:   v/read = Identity(v), y = Mul(v/read, x), and v/read is fetched
    Result:  v/read = RefIdentity(v), v/read/early = Identity(v), y = Mul(v/read/early, x)
    """
    handed: dict[str, Endpoint] = {}
    for endpoint in fetches:
        source = behind(items, endpoint, HANDS_ON, fed)
        if source != endpoint and source not in fed and _is_reference(items[source.node].node.op):
            handed[endpoint.node] = source
    if not handed:
        return graph, items
    from pocketgraph.graph.edit import free_name, rename_inputs

    nodes = {node.name: node for node in graph}
    early = {name: free_name(f"{name}/early", nodes) for name in handed}
    for name, source in handed.items():
        waits = [f"^{waited}" for waited in items[name].control]
        nodes[early[name]] = nodes[name].replace(name=early[name])
        nodes[name] = Node(name, "RefIdentity", (str(source), *waits), nodes[name].attrs)
    renamed = {f"{name}:*": own for name, own in early.items()}
    changed = rename_inputs(graph.replace(list(nodes.values())), renamed, untouched=handed)
    return changed, needed(changed, frozenset(fed), fetches, targets)


def _viewed_last(
    graph: Graph, items: dict[str, Item], fed: Collection[Endpoint], fetches: Iterable[Endpoint],
    targets: Iterable[str], written: Mapping[str, list[str]],
) -> tuple[Graph, dict[str, Item]]:  # fmt: skip
    """With fetched views of reads, which are the variable's memory in another shape, made when it is written; who
    computes with such a view keeps it.

    Given:   row = Reshape(v/read, shape), y = Mul(row, x), up = AssignAdd(v, x), and row is fetched
    Result:  row = Reshape(v/read/after/row, shape), v/read/after/row = Identity(v, ^up), row/early = Reshape(v/read,
             shape), y = Mul(row/early, x)
    """
    from pocketgraph.graph.edit import free_name, rename_inputs

    frames = frames_of(items, fed) if has_loops(items) else {}
    nodes: dict[str, Node] = {}
    early: dict[str, str] = {}
    for endpoint in fetches:
        path, at = list[Node](), endpoint
        while at not in fed and items[at.node].node.op in HANDS_ON | VIEWS:
            path.append(items[at.node].node)
            at = items[at.node].data[0]
        writers = written.get(at.node, ()) if at not in fed and any(node.op in VIEWS for node in path) else ()
        if not writers or any(frames.get(name, ROOT).depth for name in writers) or _may_be_dead(items, writers):
            continue
        own = [endpoint.node, *(free_name(f"{node.name}/after/{endpoint.node}", graph) for node in path[1:])]
        for name, node, source in zip(own, path, [*own[1:], str(at)], strict=True):
            waits = [f"^{writer}" for writer in writers] if source == str(at) else []
            nodes[name] = node.replace(name=name, inputs=(source, *node.inputs[1:], *waits))
        early[endpoint.node] = free_name(f"{endpoint.node}/early", graph)
        nodes[early[endpoint.node]] = path[0].replace(name=early[endpoint.node])
    if not early:
        return graph, items
    kept = [node for node in graph if node.name not in nodes]
    renamed = {f"{name}:*": own for name, own in early.items()}
    changed = rename_inputs(graph.replace([*kept, *nodes.values()]), renamed, untouched=early)
    return changed, needed(changed, frozenset(fed), fetches, targets)


def _may_be_dead(items: Mapping[str, Item], names: Iterable[str]) -> bool:
    """Whether nodes stand in a branch, which may not run: who waits for one would not run either."""

    def before(name: str) -> Iterable[str]:
        item = items[name]
        return () if item.node.op in MERGE | EXIT else (*(endpoint.node for endpoint in item.data), *item.control)

    return any(items[name].node.op in SWITCH for name in closure(names, before, items.__contains__))


def _is_reference(op: str) -> bool:
    """Whether an op's first result is a reference to a variable."""
    definition = opdefs.find(op)
    return definition is not None and bool(definition.outputs) and definition.outputs[0].is_ref


def _written(items: Mapping[str, Item], variables: Collection[str]) -> dict[str, list[str]]:
    """The nodes that write to each variable that is written to; found by the references that their ops take, also on
    a branch or in a loop."""
    found: dict[str, list[str]] = {}
    readers = consumers(items, ())
    for variable in variables:
        passes = partial(_is_or_passes, items, variable)
        holders = dict.fromkeys(closure([variable], lambda name: readers.get(name, ()), passes))
        for name in dict.fromkeys(reader for holder in holders for reader in readers.get(holder, ())):
            op = items[name].node.op
            if op not in REFERENCES and _takes_references(op) and any(e.node in holders for e in items[name].data):
                found.setdefault(variable, []).append(name)
    return found


def _is_or_passes(items: Mapping[str, Item], variable: str, name: str) -> bool:
    return name == variable or items[name].node.op in REFERENCES


@cache
def _takes_references(op: str) -> bool:
    definition = opdefs.find(op)
    return definition is not None and any(arg.is_ref for arg in definition.inputs)


def _behind(items: Mapping[str, Item], written: Mapping[str, list[str]], bits: Mapping[str, int]) -> dict[str, int]:
    """For each node, a bit for every variable that is written before the node runs, by it or by what it waits for."""
    behind: dict[str, int] = {}
    for variable, writers in written.items():
        for writer in writers:
            behind[writer] = behind.get(writer, 0) | bits[variable]
    readers = consumers(items, ())
    waiting = deque(behind)
    while waiting:
        name = waiting.popleft()
        for reader in readers.get(name, ()):
            before = behind.get(reader, 0)
            if behind[name] & ~before:
                behind[reader] = before | behind[name]
                waiting.append(reader)
    return behind
