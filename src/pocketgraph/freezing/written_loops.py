"""Loops of TensorFlow 1 whose rounds assign to a variable: in which order they do, and its value as it goes round."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from pocketgraph.freezing.assignments import value_op
from pocketgraph.graph import DType, Graph, Node, node_name
from pocketgraph.graph.attr import AttrValue
from pocketgraph.graph.edit import claim_name
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import BINARY_SWITCHES, ENTER, EXIT, MERGE, NEXT_ITERATION
from pocketgraph.graph.order import descendants, reachable


class WrittenLoop(NamedTuple):
    """A loop that assigns to a variable in its body.

    Attributes:
        enter: what the variable's handle comes in by.
        condition: the loop's LoopCond.
        decides: the names of the nodes that say whether there is one more round.
    """

    enter: Node
    condition: str
    decides: frozenset[str]


class LoopOrder:
    """The order of what one round of each loop does: a Merge goes without what earlier rounds give, and what leaves a
    loop waits for what these did before it.

    Attributes:
        order: the graph of it.
        conditions: the LoopCond of each loop, by frame.
    """

    def __init__(self, graph: Graph) -> None:
        self.conditions: dict[bytes, str] = {}
        self._decides: dict[bytes, frozenset[str]] = {}
        frames: dict[str, bytes] = {}
        nexts: dict[bytes, set[str]] = {}
        for node in graph:
            sources = [graph[node_name(ref)] for ref in node.data_inputs] if node.op in MERGE else []
            earlier = {source.name for source in sources if source.op in NEXT_ITERATION}
            if earlier:
                frame = next((frame_of(source) for source in sources if source.op in ENTER), b"")
                nexts.setdefault(frame, set()).update(earlier)
                for switch in graph.consumers.get(node.name, ()):
                    if switch.op not in BINARY_SWITCHES:
                        continue
                    exits = graph.consumers.get(switch.name, ())
                    frames.update({one.name: frame for one in exits if one.op in EXIT})
                    predicate = graph.producer(switch.data_inputs[1])
                    if predicate.op == "LoopCond":
                        self.conditions.setdefault(frame, predicate.name)
        back = set[str]().union(*nexts.values())
        none = set[str]()
        needed = {frame: reachable(graph, [name]) for frame, name in self.conditions.items()}
        shared = {frame: names & needed.get(frame, none) for frame, names in nexts.items()}

        def cut(node: Node) -> Node:
            if node.op in MERGE:
                return node.replace(inputs=[ref for ref in node.inputs if node_name(ref) not in back])
            if node.name not in frames:
                return node
            frame = frames[node.name]
            apart = needed.get(frame, none)  # what all of its Exits wait for, looked at once
            own = closure([node.name], lambda name: map(node_name, graph[name].inputs), lambda name: name not in apart)
            earlier = shared[frame] | nexts[frame].intersection(own)
            return node.replace(inputs=[*node.inputs, *(f"^{name}" for name in sorted(earlier))])

        self.order = graph.map_nodes(cut)

    def decides(self, frame: bytes) -> frozenset[str]:
        """The names of the nodes that say whether a loop has one more round."""
        if frame not in self._decides:
            self._decides[frame] = frozenset(reachable(self.order, [self.conditions[frame]]))
        return self._decides[frame]


def written_loops(
    graph: Graph, rounds: LoopOrder, writers: Iterable[Node], uses: Iterable[str], enters: Callable[[str], list[Node]]
) -> dict[str, WrittenLoop] | None:
    """The loops that assign to a variable, by each use of the variable in them; None where one is inside another,
    assigns in its condition, or does not order what its rounds do.

    Args:
        rounds: those of the graph.
        enters: gives the Enters, from the outermost, that the handle of a use comes through.
    """
    ways = {name: found for name in uses if (found := enters(name))}
    by_frame: dict[bytes, WrittenLoop] = {}
    changes: dict[bytes, list[Node]] = {}
    for node in writers:
        if node.name not in ways:
            continue
        enter, *inner = ways[node.name]
        frame = frame_of(enter)
        condition = rounds.conditions.get(frame)
        if inner or condition is None:
            return None
        if frame not in by_frame:
            by_frame[frame] = WrittenLoop(enter, condition, rounds.decides(frame))
        if node.name in by_frame[frame].decides:
            return None
        changes.setdefault(frame, []).append(node)
    loops: dict[str, WrittenLoop] = {}
    for frame, written in changes.items():
        own = [name for name, (enter, *_) in ways.items() if frame_of(enter) == frame]
        sums = len(own) == len(written) and all(value_op(node.op) in ("AddV2", "Sub") for node in written)
        changing = {node.name for node in written}
        one_by_one = by_frame[frame].enter.attr("parallel_iterations", 10) == 1 or all(
            descendants(graph, [name]).issuperset(own if name in changing else changing) for name in own
        )
        if not (sums or one_by_one):
            return None
        loops |= dict.fromkeys(own, by_frame[frame])
    return loops


def frame_of(enter: Node) -> bytes:
    """The name of the loop that an Enter leads into."""
    name = enter.attr("frame_name", b"")
    return name if isinstance(name, bytes) else str(name).encode()


class RoundValue:
    """A variable's value that goes round in a loop.

    Args:
        before: its value in front of the loop.
        taken: the names of nodes, and gets new ones.
    """

    def __init__(self, loop: WrittenLoop, before: str, dtype: DType, taken: set[str]) -> None:
        name = loop.enter.name
        enter, merge, switch, self._next, self._exit = (
            claim_name(f"{name}/{end}", taken) for end in ("before", "round", "in", "next", "after")
        )
        types: Mapping[str, AttrValue] = {"T": dtype}
        kept = {key: held for key, held in loop.enter.attrs.items() if key in ("frame_name", "parallel_iterations")}
        self.nodes = [
            Node(enter, "Enter", [before], {**types, **kept}),
            Node(merge, "Merge", [enter, self._next], {**types, "N": 2}),
            Node(switch, "Switch", [merge, loop.condition], types),
        ]
        self.decided_with = merge
        self.begins = f"{switch}:1"
        self._switch, self._types = switch, types

    def ended(self, value: str) -> list[Node]:
        """The nodes that hand a round's last value to the next round, and out of the loop, the last of them that."""
        return [
            Node(self._next, "NextIteration", [value], self._types),
            Node(self._exit, "Exit", [self._switch], self._types),
        ]


def beside(value: str, nodes: Iterable[Node]) -> list[Node]:
    """The nodes with constants that are made in the loop of a value, as TensorFlow loads no others."""
    waits = [f"^{node_name(value)}"]
    return [node.replace(inputs=waits) if node.op == "Const" else node for node in nodes]


def in_turn(loops: Collection[WrittenLoop | None]) -> bool:
    """Whether the uses of each loop stand together in this row of the loops of uses."""
    seen: list[WrittenLoop | None] = []
    for loop in loops:
        if not seen or seen[-1] != loop:
            seen.append(loop)
    inner = [loop for loop in seen if loop is not None]
    return len(inner) == len(set(map(id, inner)))
