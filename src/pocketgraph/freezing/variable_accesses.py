"""What uses a variable, in a graph and in the functions that it calls: which node reads it after which assignments."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from pocketgraph.errors import FormatError, GraphError
from pocketgraph.formats import function_def
from pocketgraph.freezing.assignments import divides_in_turn, value_op
from pocketgraph.freezing.handle_uses import HandleUses, Use
from pocketgraph.freezing.repair.updates import is_update
from pocketgraph.freezing.run_state import without_statistics
from pocketgraph.freezing.variables_in_calls import function_attributes
from pocketgraph.freezing.written_loops import LoopOrder, WrittenLoop, in_turn, written_loops
from pocketgraph.graph import Graph, Node, canonical, node_name, opdefs, parse_ref
from pocketgraph.graph.attr import Func
from pocketgraph.graph.op_traits import (
    BINARY_SWITCHES,
    ENTER,
    FUNCTION_CALLS,
    LOOPS,
    PASSES,
)
from pocketgraph.graph.order import descendants, on_branches, reachable


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
        uses = HandleUses(graph, root, self._called)
        fetched = {node_name(name) for name in outputs} if uses.is_reference else set[str]()
        live = self._live(graph, outputs)
        whole = graph is not self.graph or self._looks_everywhere
        if not uses.writers or not (whole or live & (uses.reads | uses.calls.keys() | fetched)):
            return self._accesses(uses, dict.fromkeys(uses.reads, 0), live)
        ways = _BranchesOfUses(graph, uses.holders if uses.followed else ())
        order, loops = self._loops(graph, uses, ways)
        behind = {node.name: descendants(order, [node.name]) for node in uses.writers}
        before = {node.name: reachable(order, [node.name]) for node in uses.writers} if uses.followed else {}
        if uses.followed:
            uses.writers.sort(key=lambda node: len(before.keys() & before[node.name]))
            uses.followed = _are_in_turn(uses.writers, before, ways, loops)
        if not uses.followed:
            return self._accesses(
                uses, {name: int(any(name in found for found in behind.values())) for name in uses.reads}, live
            )
        readers = _after_writers(graph, uses, behind, before, ways)
        unordered = uses.reads - readers.keys() - (uses.copies - fetched)
        readers, takes_later = _without_copies_then(graph, uses, readers, live)
        readers |= {node.name: at for at, node in enumerate(uses.writers, 1) if node.name in fetched}
        takes_later = takes_later or any(
            readers.get(one) != at
            for at, node in enumerate(uses.writers)
            for one in uses.sources(node.data_inputs[1:]) & uses.copies
        )
        uses.followed = not any(
            divides_in_turn(graph, node) or (takes_later and not node.attr("validate_shape", True))
            for node in uses.writers
        )
        return self._accesses(uses, readers, live)._replace(
            unordered=unordered,
            branches={node.name: ways.of_handle(node) for node in uses.writers},
            needs=_needs(uses, readers, live, loops),
            loops=loops,
        )

    def _accesses(self, uses: HandleUses, readers: dict[str, int], live: set[str]) -> Accesses:
        return Accesses(
            uses.holders, uses.writers, readers, uses.calls, uses.others, set(), {}, live, False, uses.followed
        )

    def _loops(self, graph: Graph, uses: HandleUses, ways: _BranchesOfUses) -> tuple[Graph, Mapping[str, WrittenLoop]]:
        """The graph in whose order things happen, and the loops of TensorFlow 1 that change the variable; where these
        are not understood it is no longer ``followed``."""
        if not uses.followed or not any(ways.enters(node.name) for node in uses.writers):
            return graph, {}
        rounds = self._rounds(graph)
        names = [*uses.reads, *(node.name for node in uses.writers)]
        loops = written_loops(graph, rounds, uses.writers, names, ways.enters)
        uses.followed = (
            loops is not None and loops.keys().isdisjoint(uses.calls) and not any(map(ways.are_branched, loops))
        )
        return rounds.order, loops or {}

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


def _are_in_turn(
    writers: list[Node], before: Mapping[str, set[str]], ways: _BranchesOfUses, loops: Mapping[str, WrittenLoop]
) -> bool:
    """Whether each of the writers comes after all earlier ones that are not on another branch."""
    return (
        all(map(ways.are_of_handle, writers))
        and in_turn([loops.get(node.name) for node in writers])
        and all(
            one.name in before[node.name]
            for at, node in enumerate(writers)
            for one in writers[:at]
            if not ways.exclude(one, node)
        )
    )


def _after_writers(
    graph: Graph,
    uses: HandleUses,
    behind: Mapping[str, set[str]],
    before: Mapping[str, set[str]],
    ways: _BranchesOfUses,
) -> dict[str, int]:
    """What reads the variable before some writers and after all others, and after how many."""
    readers = dict[str, int]()
    for name in uses.reads:
        after = max((at for at, node in enumerate(uses.writers, 1) if name in behind[node.name]), default=0)
        past = {node.name for node in uses.writers[:after]}
        if all(
            name in (behind if node.name in past else before)[node.name]
            for node in uses.writers
            if not ways.exclude(node, graph[name])
        ):
            readers[name] = after
    return readers


def _without_copies_then(
    graph: Graph, uses: HandleUses, readers: dict[str, int], live: set[str]
) -> tuple[dict[str, int], bool]:
    """Readers without those of copies that they read when these are made, which then read what it was; and whether one
    reads a copy later, whose memory an assignment may have given up for another."""
    takes_later = False
    for name in uses.reads & readers.keys():
        sources = uses.sources(graph[name].data_inputs)
        if sources <= uses.copies and all(readers.get(one) == readers[name] for one in sources):
            uses.others.add(name)
        elif name in live and not sources.isdisjoint(uses.copies):
            takes_later = True
    return {name: after for name, after in readers.items() if name not in uses.others}, takes_later


def _needs(uses: HandleUses, readers: Mapping[str, int], live: set[str], loops: Mapping[str, WrittenLoop]) -> bool:
    """Whether something live reads what another one changed."""
    if any((after or name in loops) and name in live for name, after in readers.items()):
        return True
    called = [
        (at, uses.calls[node.name])
        for at, node in enumerate(uses.writers)
        if node.name in uses.calls and node.name in live
    ]
    return any(use.needs or (use.reads and at > 0) for at, use in called)


def results_and_effects(scope: Graph) -> list[str]:
    """What a function gives, and what it does besides."""
    return [*scope.outputs, *(node.name for node in scope if is_update(node) or node.op in FUNCTION_CALLS)]


def _functions(node: Node) -> list[str]:
    """The functions of a call; none where it gives them attributes."""
    held = [node.attrs.get(name) for name in function_attributes(node.op)]
    found = [func for value in held for func in (value if isinstance(value, tuple) else (value,))]
    return [func.name for func in found if isinstance(func, Func) and not func.attrs]
