"""The loops of a graph: which nodes a frame of TensorFlow 1 holds, and what goes round in it.

Source: "Implementation of Control Flow in TensorFlow", TensorFlow's white paper of November 2017.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pocketgraph.errors import GraphError
from pocketgraph.graph import Graph, Node, canonical, node_name, parse_ref
from pocketgraph.graph.order import descendants

Path = tuple[tuple[str, int], ...]
"""The branches that a node is in, outermost first: the tensor that decides, and which of its two ways."""


class LoopVariable(NamedTuple):
    """One value that goes round.

    Attributes:
        enter, merge, switch, next: its nodes.
        exits: what gives it to the outside; perhaps nothing does.
    """

    enter: Node
    merge: Node
    switch: Node
    next: Node
    exits: tuple[Node, ...]

    @property
    def begins(self) -> str:
        """The value at the beginning of a round."""
        return f"{self.switch.name}:1"

    @property
    def ends(self) -> str:
        """The value at the end of a round."""
        return canonical(self.next.data_inputs[0])


class WhileLoop:
    """One loop.

    Attributes:
        frame: its name.
        variables: what goes round.
        constants: the Enter nodes of values that stay the same.
        condition: the LoopCond.
        members: the names of all its nodes, those of loops inside of it included.
        body: those of them that run once a round.
        fixed: those of the body that give the same in each round.
        paths: the branches that nodes of the body are in.
        inner: the loops right inside of it.
    """

    def __init__(self, graph: Graph, frame: str, enters: Sequence[Node]) -> None:
        self.graph, self.frame = graph, frame
        self.variables: list[LoopVariable] = []
        self.constants: list[Node] = []
        self.inner: list[WhileLoop] = []
        self.condition = ""
        for enter in enters:
            readers = graph.consumers.get(enter.name, ())
            merge = next((reader for reader in readers if reader.op == "Merge"), None)
            if merge is None:
                self.constants.append(enter)
            else:
                self.variables.append(self._variable(enter, merge))
        if not self.variables:
            raise GraphError("the loop is not as TensorFlow writes one", where=f"node '{enters[0].name}'")
        self._skeleton = {
            node.name for v in self.variables for node in (v.enter, v.merge, v.switch, v.next, *v.exits)
        } | {node.name for node in self.constants}
        exits = {node.name for v in self.variables for node in v.exits}
        self.members = self._closure([node.name for node in enters], exits) | exits
        in_rounds = self._closure([v.merge.name for v in self.variables], exits)
        self.fixed = self.members - self._skeleton - in_rounds
        self.body = (self._closure_of_rounds() | self.fixed) - self._skeleton
        self.paths: dict[str, Path] = {}

    def _variable(self, enter: Node, merge: Node) -> LoopVariable:
        readers = self.graph.consumers.get(merge.name, ())
        switches = [
            node for node in readers
            if node.op == "Switch" and self.graph.producer(node.data_inputs[1]).op == "LoopCond"
        ]  # fmt: skip
        others = [node_name(ref) for ref in merge.data_inputs if node_name(ref) != enter.name]
        step = self.graph.nodes.get(others[0]) if len(others) == 1 else None
        if len(switches) != 1 or step is None or step.op != "NextIteration":
            raise GraphError("the loop is not as TensorFlow writes one", where=f"node '{merge.name}'")
        switch = switches[0]
        self.condition = switch.data_inputs[1]
        exits = [
            node for node in self.graph.consumers.get(switch.name, ())
            if node.op == "Exit" and parse_ref(node.data_inputs[0]).port == 0
        ]  # fmt: skip
        return LoopVariable(enter, merge, switch, step, tuple(exits))

    def _closure(self, names: Iterable[str], ends: set[str]) -> set[str]:
        """What these nodes lead to, up to and without the ends."""
        first = {name for name in names if name not in ends}
        return first | descendants(self.graph, first, lambda node: node.name not in ends)

    def _closure_of_rounds(self) -> set[str]:
        """What the way into a round leads to."""
        starts = [
            reader.name for v in self.variables for reader in self.graph.consumers.get(v.switch.name, ())
            if any(canonical(ref) == v.begins for ref in reader.data_inputs)
        ]  # fmt: skip
        return self._closure(starts, self._skeleton)

    def path(self, name: str) -> Path:
        """The branches that a node of the body is in."""
        if name not in self.paths:
            self.paths[name] = ()
            found: Path = ()
            node = self.graph[name]
            if name in self.body:
                for ref in node.inputs:
                    given = self._path_of(ref)
                    found = given if len(given) > len(found) else found
                if node.op == "Merge" and not any(self.graph.producer(ref).op == "Enter" for ref in node.data_inputs):
                    found = found[:-1]
            self.paths[name] = found
        return self.paths[name]

    def _path_of(self, ref: str) -> Path:
        name, port, control = parse_ref(ref)
        path = self.path(name) if name in self.body else ()
        node = self.graph[name]
        if self.is_branch(name) and not control:
            return (*path, (canonical(node.data_inputs[1]), port))
        return path

    def is_branch(self, name: str) -> bool:
        """Whether a node of the body is the Switch of a branch, and not that of a loop inside."""
        node = self.graph.nodes.get(name)
        if node is None or node.op != "Switch" or name not in self.body:
            return False
        return self.graph.producer(node.data_inputs[1]).op != "LoopCond"


def find_loops(graph: Graph) -> list[WhileLoop]:
    """The outermost loops of a graph, with those inside of them."""
    frames: dict[str, list[Node]] = {}
    for node in graph:
        if node.op == "Enter":
            name = node.attr("frame_name", b"")
            frames.setdefault(name.decode() if isinstance(name, bytes) else str(name), []).append(node)
    loops = [WhileLoop(graph, frame, enters) for frame, enters in frames.items()]
    outermost = []
    for loop in loops:
        around = [other for other in loops if other is not loop and loop.variables[0].enter.name in other.members]
        if around:
            min(around, key=lambda other: len(other.members)).inner.append(loop)
        else:
            outermost.append(loop)
    return outermost
