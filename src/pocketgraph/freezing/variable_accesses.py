"""What uses a variable, in a graph and in the functions that it calls: which node reads it after which assignments."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from pocketgraph.errors import FormatError, GraphError
from pocketgraph.formats import function_def
from pocketgraph.freezing.assignments import divides_in_turn, value_op
from pocketgraph.freezing.repair.updates import is_update
from pocketgraph.freezing.run_state import without_statistics
from pocketgraph.freezing.shared_memory import takes_everything
from pocketgraph.freezing.variables_in_calls import function_attributes
from pocketgraph.freezing.written_loops import LoopOrder, WrittenLoop, in_turn, written_loops
from pocketgraph.graph import Graph, Node, Shape, canonical, node_name, opdefs, parse_ref
from pocketgraph.graph.attr import Func
from pocketgraph.graph.op_traits import (
    BINARY_SWITCHES,
    ENTER,
    FUNCTION_CALLS,
    HANDS_ON,
    LOOPS,
    MERGE,
    PASSES,
    REFERENCE_VARIABLES,
    REFERENCES,
    VIEWS,
)
from pocketgraph.graph.order import descendants, on_branches, reachable

JOINS = (MERGE - REFERENCES) | {"IdentityN"}
"""Ops whose results lie in the memory of one of their inputs each."""

SHARES = HANDS_ON | VIEWS | (BINARY_SWITCHES - REFERENCES) | JOINS
"""Ops whose results lie in the memory of their first input, or of another one."""

UNCHANGED = ("VariableShape", "VarIsInitializedOp", "IsVariableInitialized")
"""Not a trait: what no assignment changes."""


class Accesses(NamedTuple):
    """What uses a variable.

    Attributes:
        holders: the tensors that are its handle or reference.
        writers: what changes it, first to last.
        readers: what reads it and does not change it, and after how many of the writers.
        calls: what the calls do that are given it.
        others: what reads nothing that assignments change, or hands the handle on.
        unordered: what reads it before or after an assignment, as it happens.
        branches: the outputs of Switches that its handle comes through to a writer that does not always run, from the
            outermost branch to the innermost.
        live: the nodes that results are computed with.
        needs: some live one reads what another one changed.
        followed: what the writers leave is known.
        loops: the loops of TensorFlow 1 that change it, by what uses it in them.
    """

    holders: set[str]
    writers: list[Node]
    readers: dict[str, int]
    calls: dict[str, Use]
    others: set[str]
    unordered: set[str]
    branches: dict[str, list[str]]
    live: set[str]
    needs: bool
    followed: bool = True
    loops: Mapping[str, WrittenLoop] = MappingProxyType({})


class Use(NamedTuple):
    """What a call does with a variable that it is given, at this position of its inputs."""

    position: int
    reads: bool
    writes: bool
    needs: bool
    returns: bool = False
    followed: bool = True


class AccessFinder:
    """Finds what uses variables in a graph and its functions; ``graph`` may be set to another with these functions."""

    def __init__(self, graph: Graph, *, looks_everywhere: bool = False) -> None:
        self.graph = graph
        self._looks_everywhere = looks_everywhere
        self._scopes: dict[str, Graph | None] = {}
        self._uses: dict[tuple[str, int], Use] = {}
        self._looked_at: Graph | None = None
        self._found: set[str] = set()
        self._ordered: tuple[Graph, LoopOrder] | None = None

    def accesses(self, graph: Graph, outputs: Iterable[str], root: str) -> Accesses:
        """What uses a variable; not ``followed`` where assignments are in no order or not known."""
        is_reference = graph[root].op in REFERENCE_VARIABLES
        holders, writers, reads = {canonical(root)}, list[Node](), set[str]()
        calls: dict[str, Use] = {}
        others: set[str] = set()
        copies: set[str] = set()  # values of TensorFlow 1 that lie where the variable's do, and change with it
        shape = graph[root].attr("shape", Shape(None))
        shapes = {canonical(root): shape if isinstance(shape, Shape) else Shape(None)}
        waiting = [canonical(root)]
        followed = True
        while waiting:
            tensor = waiting.pop()
            for node in graph.consumers.get(node_name(tensor), ()):
                places = [at for at, ref in enumerate(node.data_inputs) if canonical(ref) == tensor]
                given = list[str]()
                if not places or node.op in UNCHANGED:
                    others |= {node.name} if places else set()
                    continue
                shares = node.op in SHARES or (
                    is_reference and takes_everything(graph, node, shapes.get(tensor, Shape(None)))
                )
                if is_reference and (shares or node.op in FUNCTION_CALLS):
                    reads.add(node.name)
                    if shares and (places == [int(node.op == "Split")] or node.op in JOINS):
                        copies.add(node.name)
                        ports = places if node.op == "IdentityN" else range(2 if node.op in BINARY_SWITCHES else 1)
                        given = [f"{node.name}:{port}" for port in ports]
                elif node.op in FUNCTION_CALLS:
                    use = self._called(node, places[0])
                    followed = followed and use.followed and len(places) == 1 and node.name not in calls
                    calls[node.name] = use
                    if use.writes:
                        writers += [] if node in writers else [node]
                    elif use.reads:
                        reads.add(node.name)
                    given = [f"{node.name}:{place}" for place in places] if node.op in LOOPS else []
                elif places[0] == 0 and value_op(node.op) is not None:
                    writers += [] if node in writers else [node]
                    given = [node.name] if is_reference else []
                elif is_update(node) and 0 in places:
                    followed = False
                    writers += [] if node in writers else [node]
                    given = [node.name] if is_reference else []
                elif is_reference and node.op not in REFERENCES:
                    reads.add(node.name)
                elif node.op in PASSES and not is_reference:
                    given = [node.name]
                    others.add(node.name)
                elif node.op in BINARY_SWITCHES and places == [0]:
                    given = [f"{node.name}:0", f"{node.name}:1"]
                elif node.op in ENTER and node.attr("is_constant", False):
                    given = [node.name]
                elif node.op in ("ReadVariableOp", "ResourceGather", "ResourceGatherNd"):
                    reads.add(node.name)
                else:
                    followed = False
                    reads.add(node.name)
                    given = [f"{node.name}:{port}" for port in range(len(opdefs.known_output_dtypes(node) or ()))]
                new = {canonical(ref) for ref in given} - holders
                if tensor in shapes and node.op in HANDS_ON | BINARY_SWITCHES | ENTER:
                    shapes |= dict.fromkeys(new, shapes[tensor])
                holders |= new
                waiting += new
        reads -= {node.name for node in writers}  # what they are given of it is what it holds just before
        asked = {node_name(name) for name in outputs} if is_reference else set()
        live = self._live(graph, outputs)
        if not writers or (
            graph is self.graph and not self._looks_everywhere and live.isdisjoint(reads | calls.keys() | asked)
        ):
            readers = dict.fromkeys(reads, 0)
            return Accesses(holders, writers, readers, calls, others, set(), {}, live, False, followed)
        ways = _BranchesOfUses(graph, holders if followed else ())
        loops: Mapping[str, WrittenLoop] | None = {}
        order = graph
        if followed and any(ways.enters(node.name) for node in writers):
            rounds = self._rounds(graph)
            order = rounds.order
            loops = written_loops(graph, rounds, writers, [*reads, *(node.name for node in writers)], ways.enters)
            followed = loops is not None and loops.keys().isdisjoint(calls) and not any(map(ways.are_branched, loops))
        loops = loops or {}
        behind = {node.name: descendants(order, [node.name]) for node in writers}
        before: dict[str, set[str]] = {}
        if followed:
            before = {node.name: reachable(order, [node.name]) for node in writers}
            writers = sorted(writers, key=lambda node: len(before.keys() & before[node.name]))
            followed = all(ways.are_of_handle(node) for node in writers) and in_turn(
                [loops.get(node.name) for node in writers]
            )
            for at, node in enumerate(writers):
                earlier = [one for one in writers[:at] if not ways.exclude(one, node)]
                followed = followed and all(one.name in before[node.name] for one in earlier)
        if not followed:
            readers = {name: int(any(name in found for found in behind.values())) for name in reads}
            return Accesses(holders, writers, readers, calls, others, set(), {}, live, False, followed)
        readers = {}
        for name in reads:
            others_of = [node for node in writers if not ways.exclude(node, graph[name])]
            after = max((at for at, node in enumerate(writers, 1) if name in behind[node.name]), default=0)
            past = {node.name for node in writers[:after]}
            if all(name in (behind if node.name in past else before)[node.name] for node in others_of):
                readers[name] = after
        unordered = reads - readers.keys() - (copies - asked)
        takes_later = False  # what was in the variable's memory before, which an assignment may give up for another
        for name in reads & readers.keys():  # what reads a copy when that was made reads what it was then
            sources = {node_name(ref) for ref in graph[name].data_inputs if canonical(ref) in holders}
            if sources <= copies and all(readers.get(one) == readers[name] for one in sources):
                others.add(name)
            elif name in live and not sources.isdisjoint(copies):
                takes_later = True
        readers = {name: after for name, after in readers.items() if name not in others}
        readers |= {node.name: at for at, node in enumerate(writers, 1) if node.name in asked}
        for at, node in enumerate(writers):
            sources = {node_name(ref) for ref in node.data_inputs[1:] if canonical(ref) in holders}
            takes_later = takes_later or any(readers.get(one) != at for one in sources & copies)
        followed = not any(
            divides_in_turn(graph, node) or (takes_later and not node.attr("validate_shape", True)) for node in writers
        )
        needs = any((after or name in loops) and name in live for name, after in readers.items())
        for at, node in enumerate(writers):
            called = calls.get(node.name)
            needs = needs or (called is not None and node.name in live and (called.needs or (called.reads and at > 0)))
        branches = {node.name: ways.of_handle(node) for node in writers}
        return Accesses(holders, writers, readers, calls, others, unordered, branches, live, needs, followed, loops)

    def _live(self, graph: Graph, outputs: Iterable[str]) -> set[str]:
        """What outputs are computed with."""
        if self._looked_at is not graph:
            self._looked_at = graph
            self._found = reachable(graph.map_nodes(without_statistics), outputs, data_only=True, missing_ok=True)
        return self._found

    def _rounds(self, graph: Graph) -> LoopOrder:
        """The order in the loops of a graph, kept until another one is asked for."""
        if self._ordered is None or self._ordered[0] is not graph:
            self._ordered = graph, LoopOrder(graph)
        return self._ordered[1]

    def _called(self, node: Node, position: int) -> Use:
        """What the functions of a call do with the variable at this position of its inputs."""
        index = position - (len(opdefs.definition(node.op).inputs) - 1)
        uses = [self._use(name, index) for name in _functions(node)] or [Use(index, True, False, False, followed=False)]
        reads, writes, needs = (any(use[field] for use in uses) for field in (1, 2, 3))
        is_loop = node.op in LOOPS  # its condition gives nothing but whether it goes on
        followed = all(use.followed and (is_loop or not use.returns) for use in uses) and not (
            is_loop and uses[0].writes
        )
        return Use(position, reads, writes, needs or (is_loop and reads and writes), followed=followed)

    def _use(self, name: str, index: int) -> Use:
        key = (name, index)
        if key not in self._uses:
            self._uses[key] = Use(index, True, False, False, followed=False)  # for one that calls itself
            scope = self.scope(name)
            argument = next(islice(scope or (), index, None), None) if index >= 0 else None
            if scope is not None and argument is not None and argument.op == "Placeholder":
                found = self.accesses(scope, results_and_effects(scope), argument.name)
                returns = any(canonical(ref) in found.holders for ref in scope.outputs)
                reads = bool(found.readers) or any(use.reads for use in found.calls.values())
                followed = found.followed and not found.unordered
                self._uses[key] = Use(index, reads, bool(found.writers), found.needs, returns, followed)
        return self._uses[key]

    def scope(self, name: str) -> Graph | None:
        """A function's body as a graph whose first nodes are placeholders for its arguments; None where it says too
        little of its types."""
        if name not in self._scopes:
            self._scopes[name] = None
            function = self.graph.functions.get(name)
            if function is not None and all(opdefs.find(node.op) for node in function.nodes):
                try:
                    body = function_def.body(function)
                    types = function_def.argument_types(function)
                except (FormatError, GraphError):
                    return None
                given = [
                    Node(argument, "Placeholder", [], {"dtype": dtype})
                    for argument, dtype in zip(body.arguments, types, strict=True)
                ]
                self._scopes[name] = Graph([*given, *body.nodes], outputs=body.results)
        return self._scopes[name]


class _BranchesOfUses:
    """Which branches of TensorFlow 1 the uses of a variable are on."""

    def __init__(self, graph: Graph, holders: Collection[str]) -> None:
        self._graph = graph
        self._holders = holders
        switches = [node for node in graph if node.op in BINARY_SWITCHES] if holders else []
        branches = any(graph.producer(node.data_inputs[1]).op != "LoopCond" for node in switches)
        self._found = on_branches(graph) if branches else {}

    def exclude(self, one: Node, other: Node) -> bool:
        """Whether never both of them run."""
        ways = self._of(one.name)
        return bool(ways) and any((predicate, not way) in ways for predicate, way in self._of(other.name))

    def are_of_handle(self, writer: Node) -> bool:
        """Whether an assignment runs when its handle is there, and what it assigns is there only then."""
        ways = {self._way(ref) for ref in self.of_handle(writer)}
        assigned = [
            self._of(node_name(ref)) | ({self._way(ref)} if self._graph.producer(ref).op in BINARY_SWITCHES else set())
            for ref in writer.data_inputs[1:2] if value_op(writer.op) == ""
        ]  # fmt: skip
        return self._of(writer.name) == ways and all(ways <= held for held in assigned)

    def of_handle(self, writer: Node) -> list[str]:
        """The outputs of Switches that its handle comes through, from the outermost branch to the innermost."""
        return [ref for ref in self._way_in(writer) if self._graph.producer(ref).op in BINARY_SWITCHES]

    def enters(self, use: str) -> list[Node]:
        """The Enters that the handle of a use comes through, from the outermost loop to the innermost."""
        if self._graph.ops.isdisjoint(ENTER):
            return []
        sources = map(self._graph.producer, self._way_in(self._graph[use]))
        return [source for source in sources if source.op in ENTER]

    def are_branched(self, use: str) -> bool:
        """Whether the loops of a use are in a branch."""
        ops = [self._graph.producer(ref).op for ref in self._way_in(self._graph[use])]
        return not BINARY_SWITCHES.isdisjoint(ops[: next(at for at, op in enumerate(ops) if op in ENTER)])

    def _way_in(self, use: Node) -> list[str]:
        """The tensors between a variable and a use of its handle."""
        found: list[str] = []
        ref = next(ref for ref in use.data_inputs if canonical(ref) in self._holders)
        while canonical(ref) in self._holders and self._graph.producer(ref).data_inputs:
            found.append(ref)
            inputs = self._graph.producer(ref).data_inputs
            ref = next((one for one in inputs if canonical(one) in self._holders), inputs[0])
        return found[::-1]

    def _of(self, name: str) -> set[tuple[str, bool]]:
        ways = (way.split(" ") for way in self._found.get(name, ()))
        return {(self._source(predicate), port == "1") for predicate, port in ways}

    def _way(self, ref: str) -> tuple[str, bool]:
        name, port, _ = parse_ref(ref)
        return self._source(self._graph[name].data_inputs[1]), port == 1

    def _source(self, predicate: str) -> str:
        while self._graph.producer(predicate).op in PASSES:
            predicate = self._graph.producer(predicate).data_inputs[0]
        return canonical(predicate)


def results_and_effects(scope: Graph) -> list[str]:
    """What a function gives, and what it does besides."""
    return [*scope.outputs, *(node.name for node in scope if is_update(node) or node.op in FUNCTION_CALLS)]


def _functions(node: Node) -> list[str]:
    """The functions of a call; none where it gives them attributes."""
    held = [node.attrs.get(name) for name in function_attributes(node.op)]
    found = [func for value in held for func in (value if isinstance(value, tuple) else (value,))]
    return [func.name for func in found if isinstance(func, Func) and not func.attrs]
