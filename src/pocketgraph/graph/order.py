"""Orders nodes: so that producers come before consumers, and backwards from what is wanted."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain

from pocketgraph.errors import GraphError, did_you_mean
from pocketgraph.graph.graph import MERGES, Graph
from pocketgraph.graph.groups import closure
from pocketgraph.graph.node import Node, canonical, node_name, parse_ref
from pocketgraph.graph.op_traits import BINARY_SWITCHES, ENTER, EXIT, NEXT_ITERATION

__all__ = [
    "MERGES",
    "descendants",
    "inside_loops",
    "is_topological",
    "iter_topological",
    "on_branches",
    "reachable",
    "topological",
]


def topological(graph: Graph, *, partial: bool = False) -> list[Node]:
    """The nodes in an order in which each comes after its inputs, data and control.

    The order is that of TensorFlow's Graph Transform Tool: the ready nodes are a stack, so the last source of the
    file comes first. A ``Merge`` is ready when its control inputs and one data input are, so while-loops have an
    order too.

    Args:
        partial: leave out the nodes that are in a cycle or behind one, instead of raising.

    Raises:
        GraphError: an input names a node that is not there; or nodes form a cycle without a ``Merge``.
    """
    return list(iter_topological(graph, partial=partial))


def iter_topological(graph: Graph, *, partial: bool = False) -> Iterator[Node]:
    """The nodes one by one; see ``topological``. A cycle is found after the last node that is in none."""
    readers = _Readers(len(graph))
    if not readers.found_on_the_way(graph):
        readers = _Readers(len(graph))
        readers.find(graph, dict(zip(graph.nodes, range(len(graph)), strict=True)))
    nodes, first, others, pending, ready = readers.nodes, readers.first, readers.others, readers.pending, readers.ready
    count = 0
    while ready:
        i = ready.pop()
        count += 1
        yield nodes[i]
        if not first[i]:
            continue
        for consumer in (first[i] - 1, *others.get(i, ())):
            left = pending[consumer] - 1
            pending[consumer] = left
            if left == 0:
                ready.append(consumer)
    if count < len(nodes) and not partial:
        stuck = [node.name for node, left in zip(nodes, pending, strict=True) if left > 0]
        shown = ", ".join(f"'{name}'" for name in stuck[:3]) + (", …" if len(stuck) > 3 else "")
        raise GraphError(f"{len(nodes) - count} nodes are in a cycle or behind one: {shown}")


class _Readers:
    """Who reads whom, by places in the graph.

    Attributes:
        nodes: the nodes by place.
        first: the first reader of each node, counted from 1; 0 when there is none.
        others: the further ones of nodes that have several.
        pending: how many inputs each node waits for.
        ready: the nodes that wait for none.
    """

    def __init__(self, count: int) -> None:
        self.nodes: list[Node] = []
        self.first = array("q", bytes(8 * count))
        self.others: dict[int, list[int]] = {}
        self.pending = array("q", bytes(8 * count))
        self.ready: list[int] = []

    def found_on_the_way(self, graph: Graph) -> bool:
        """Finds the readers in one pass, which is all when every node stands behind what it reads."""
        index: dict[str, int] = {}
        for i, (name, node) in enumerate(graph.nodes.items()):
            index[name] = i
            if self._note(i, node, index) is not None:
                return False
        return True

    def find(self, graph: Graph, index: Mapping[str, int]) -> None:
        """Finds the readers with the place of every name at hand. Raises GraphError for a name that no node has."""
        for i, node in enumerate(graph):
            ref = self._note(i, node, index)
            if ref is not None:
                raise GraphError(f"unknown input node '{ref}'", where=f"node '{node.name}'")

    def _note(self, i: int, node: Node, index: Mapping[str, int]) -> str | None:
        """Notes what one node reads; gives the reference that leads nowhere, if there is one."""
        self.nodes.append(node)
        inputs = node.inputs
        if not inputs:
            self.ready.append(i)
            return None
        self.pending[i] = len(inputs) if node.op not in MERGES else len(node.control_inputs) + 1
        first, others = self.first, self.others
        for ref in inputs:
            source = index.get(ref)
            if source is None:
                source = index.get(node_name(ref))
                if source is None:
                    return ref
            if not first[source]:
                first[source] = i + 1
            elif source in others:
                others[source].append(i)
            else:
                others[source] = [i]
        return None


def is_topological(graph: Graph) -> bool:
    """Whether each node of the graph stands behind all that it reads, so that nothing leads nowhere or in a circle."""
    passed: set[str] = set()
    for name, node in graph.nodes.items():
        for ref in node.inputs:
            if ref not in passed and node_name(ref) not in passed:
                return False
        passed.add(name)
    return True


def reachable(
    graph: Graph,
    outputs: Iterable[str],
    *,
    stop: Collection[str] = (),
    data_only: bool = False,
    missing_ok: bool = False,
) -> set[str]:
    """The names of the nodes that ``outputs`` need, themselves included.

    Args:
        outputs: node or tensor names.
        stop: node or tensor names of nodes whose own inputs are not needed (because they will be fed).
        data_only: leave out what is needed by control inputs only.
        missing_ok: leave out what is not in the graph.

    Raises:
        GraphError: an output or an input on the way is not in the graph, and that is not ``missing_ok``.
    """
    stops = {node_name(name) for name in stop}
    found: set[str] = set()
    todo = [(node_name(name), "") for name in outputs]
    while todo:
        name, wanted_by = todo.pop()
        if name in found:
            continue
        node = graph.nodes.get(name)
        if node is None:
            if missing_ok:
                continue
            if wanted_by:
                raise GraphError(f"unknown input node '{name}'", where=f"node '{wanted_by}'")
            raise GraphError(f"the graph has no node '{name}'", hint=did_you_mean(name, graph.nodes))
        found.add(name)
        if name not in stops:
            todo.extend([(node_name(ref), name) for ref in (node.data_inputs if data_only else node.inputs)])
    return found


def dependents(
    graph: Graph, sources: Iterable[str], is_last: Callable[[Node], bool] = lambda node: False
) -> Iterator[Node]:
    """The nodes that results of these nodes go into, through others or not, producers first; data edges count.

    Args:
        sources: the names of these nodes.
        is_last: says of which nodes the results are not followed.
    """
    behind = set(sources)
    for node in topological(graph, partial=True):
        if any(node_name(ref) in behind for ref in node.data_inputs):
            if not is_last(node):
                behind.add(node.name)
            yield node


def on_branches(graph: Graph) -> dict[str, frozenset[str]]:
    """The outputs of Switches on which it hangs whether a node runs, by node, as far as they are not merged again:
    none of them for one that runs in any case. What is behind a cycle is left out.
    """
    found: dict[str, frozenset[str]] = {}

    def begun(node: Node) -> Node:  # a Merge behind all its inputs but those of a loop's earlier rounds
        if node.op not in MERGES:
            return node
        inputs = [ref for ref in node.inputs if graph[node_name(ref)].op not in NEXT_ITERATION]
        return node.replace(op="NoOp", inputs=inputs)

    order = [graph[node.name] for node in topological(graph.map_nodes(begun), partial=True)]

    def way(ref: str) -> frozenset[str]:
        source = graph[node_name(ref)]
        held = found[source.name]
        predicate = canonical(source.data_inputs[1]) if source.op in BINARY_SWITCHES else ""
        if predicate and not ref.startswith("^") and graph.producer(predicate).op != "LoopCond":
            held |= {f"{predicate} {parse_ref(ref).port}"}
        return held

    merges = {node.name for node in order if node.op in MERGES}
    rounds = sum(node.op in NEXT_ITERATION for node in order) + 1
    for _ in range(rounds):  # what a loop's earlier round gives is known a round later
        before = dict(found) if rounds > 1 else found
        for node in order:
            refs = [ref for ref in node.inputs if node_name(ref) in found] if node.name in merges else node.inputs
            count = sum(not ref.startswith("^") for ref in refs) if node.name in merges else 0
            common = frozenset[str].intersection(*map(way, refs[:count])) if count else frozenset[str]()
            found[node.name] = common.union(*map(way, refs[count:]))
        if found == before:
            break
    return found


def descendants(graph: Graph, sources: Iterable[str], goes_on: Callable[[Node], bool] | None = None) -> set[str]:
    """The names of the nodes that read these nodes, or read one that does; data and control edges count.

    Args:
        sources: names of nodes; they are among the results only where a cycle leads back to them.
        goes_on: says of which nodes that are met belong to it; the others are not followed. By default all do.
    """
    readers = graph.consumers
    starts = chain.from_iterable(readers.get(name, ()) for name in sources)
    return {node.name for node in closure(starts, lambda node: readers.get(node.name, ()), goes_on)}


def inside_loops(graph: Graph) -> set[str]:
    """The names of nodes between where a loop is entered and where it is left, whose values nobody can fetch."""
    enters = {node.name for node in graph if node.op in ENTER}
    return enters | descendants(graph, enters, lambda node: node.op not in EXIT)
