"""Follows a variable's handle or reference through a graph, to each node that uses the variable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pocketgraph.freezing.assignments import value_op
from pocketgraph.freezing.repair.updates import is_update
from pocketgraph.freezing.shared_memory import takes_everything
from pocketgraph.graph import Graph, Node, Shape, canonical, node_name, opdefs
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
    ops_with,
)

JOINS = (MERGE - REFERENCES) | {"IdentityN"}
"""Ops whose results lie in the memory of one of their inputs each."""

SHARES = HANDS_ON | VIEWS | (BINARY_SWITCHES - REFERENCES) | JOINS
"""Ops whose results lie in the memory of their first input, or of another one."""

UNCHANGED = ("VariableShape", "VarIsInitializedOp", "IsVariableInitialized")
"""Not a trait: what no assignment changes."""

READS = ops_with("reads_handle")
"""What does no more with a handle than to read what it holds."""


class Use(NamedTuple):
    """What a call does with a variable that it is given, at this position of its inputs."""

    position: int
    reads: bool
    writes: bool
    needs: bool
    returns: bool = False
    followed: bool = True


class HandleUses:
    """What uses a variable, in no order.

    Args:
        graph: what it is in.
        root: the node that gives its handle or reference.
        called: what a call does with it, given at this position of its inputs.

    Attributes:
        is_reference: whether it is one of TensorFlow 1 without a handle.
        holders: the tensors that are its handle or reference, or lie in its memory.
        writers: what changes it.
        reads: what reads it and does not change it.
        calls: what the calls do that are given it.
        others: what reads nothing that assignments change, or hands the handle on.
        copies: values of TensorFlow 1 that lie where the variable's do, and change with it.
        followed: what the writers leave is known.
    """

    def __init__(self, graph: Graph, root: str, called: Callable[[Node, int], Use]) -> None:
        self._graph = graph
        self._called = called
        self.is_reference = graph[root].op in REFERENCE_VARIABLES
        self.holders = {canonical(root)}
        self.writers = list[Node]()
        self.reads = set[str]()
        self.calls = dict[str, Use]()
        self.others = set[str]()
        self.copies = set[str]()
        self.followed = True
        shape = graph[root].attr("shape", Shape(None))
        self._shapes = {canonical(root): shape if isinstance(shape, Shape) else Shape(None)}
        self._follow(canonical(root))
        self.reads -= {node.name for node in self.writers}  # what they are given of it is what it holds just before

    def sources(self, refs: Iterable[str]) -> set[str]:
        """The nodes that give those of the tensors that hold the variable."""
        return {node_name(ref) for ref in refs if canonical(ref) in self.holders}

    def _follow(self, root: str) -> None:
        waiting = [root]
        while waiting:
            tensor = waiting.pop()
            for node in self._graph.consumers.get(node_name(tensor), ()):
                places = [at for at, ref in enumerate(node.data_inputs) if canonical(ref) == tensor]
                if not places:
                    continue
                new = {canonical(ref) for ref in self._used(node, tensor, places)} - self.holders
                if tensor in self._shapes and node.op in HANDS_ON | BINARY_SWITCHES | ENTER:
                    self._shapes |= dict.fromkeys(new, self._shapes[tensor])
                self.holders |= new
                waiting += new

    def _used(self, node: Node, tensor: str, places: Sequence[int]) -> list[str]:
        """Notes what a node does with it; which of its outputs hold it, too."""
        if node.op in UNCHANGED:
            self.others.add(node.name)
            return []
        if node.op in FUNCTION_CALLS:
            return self._used_by_call(node, places)
        if self.is_reference and (
            node.op in SHARES or takes_everything(self._graph, node, self._shapes.get(tensor, Shape(None)))
        ):
            return self._shared(node, places)
        is_assigned = places[0] == 0 and value_op(node.op) is not None
        if is_assigned or (is_update(node) and 0 in places):
            self.followed = self.followed and is_assigned
            self._write(node)
            return [node.name] if self.is_reference else []
        return self._handed_on(node, places)

    def _used_by_call(self, node: Node, places: Sequence[int]) -> list[str]:
        if self.is_reference:
            self.reads.add(node.name)
            return []
        use = self._called(node, places[0])
        self.followed = self.followed and use.followed and len(places) == 1 and node.name not in self.calls
        self.calls[node.name] = use
        if use.writes:
            self._write(node)
        elif use.reads:
            self.reads.add(node.name)
        return [f"{node.name}:{place}" for place in places] if node.op in LOOPS else []

    def _shared(self, node: Node, places: Sequence[int]) -> list[str]:
        """What a reference's value is read by, where the results may lie in its memory."""
        self.reads.add(node.name)
        if places != [int(node.op == "Split")] and node.op not in JOINS:
            return []
        self.copies.add(node.name)
        ports = places if node.op == "IdentityN" else range(2 if node.op in BINARY_SWITCHES else 1)
        return [f"{node.name}:{port}" for port in ports]

    def _handed_on(self, node: Node, places: Sequence[int]) -> list[str]:
        """What reads it, or gives its handle or reference on."""
        if self.is_reference and node.op not in REFERENCES:
            self.reads.add(node.name)
            return []
        if node.op in PASSES and not self.is_reference:
            self.others.add(node.name)
            return [node.name]
        if node.op in BINARY_SWITCHES and places == [0]:
            return [f"{node.name}:0", f"{node.name}:1"]
        if node.op in ENTER and node.attr("is_constant", False):
            return [node.name]
        self.reads.add(node.name)
        if node.op in READS:
            return []
        self.followed = False
        return [f"{node.name}:{port}" for port in range(len(opdefs.known_output_dtypes(node) or ()))]

    def _write(self, node: Node) -> None:
        if node not in self.writers:
            self.writers.append(node)
