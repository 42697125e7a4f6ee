"""Which nodes keep the branches and loops apart that were not taken: without them, these would come alive."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pocketgraph.graph import Graph, Node, node_name, opdefs, parse_ref
from pocketgraph.graph.node import canonical
from pocketgraph.graph.op_traits import ENTER, EXIT, NEXT_ITERATION, SWITCH
from pocketgraph.graph.order import MERGES

Way = tuple[str, int]
"""What decides at a Switch, and the output that has to be taken; of a loop its frame, and INSIDE."""
INSIDE = -1
Ways = frozenset[Way]
ALWAYS: Ways = frozenset()


def pivots(graph: Graph, removed: Collection[str]) -> set[str]:
    """Those of the nodes to be removed that must stay.

    A node behind a Switch runs when its way is taken. What waits for such a node by control runs then, too; when the
    node is removed, it waits for the Switch itself, and runs always. That goes unnoticed as long as everything that
    reads it has other inputs from the branch. It is noticed by a Merge, which would get two values; by NextIteration
    and Exit, which would go on; by ops with a state; and by what is fetched.

    Args:
        removed: names of nodes with one data input; who waits for one would then wait for what it reads.
    """
    switches = _switches(graph)
    candidates = {
        name: ref for name in removed for ref in graph.nodes[name].data_inputs[:1] if node_name(ref) in switches
    }
    waits = {ref[1:] for node in graph for ref in node.control_inputs}
    if not candidates or waits.isdisjoint(removed):
        return set()
    order = _forwards(graph)
    if len(order) < len(graph):
        return set(candidates)
    before = _Ways(order, switches, {})
    after = _Ways(order, switches, _stand_ins(graph, removed))
    lost: set[Way] = set()
    outputs = {node_name(ref) for ref in graph.outputs}
    for node in order:
        if node.op in MERGES:
            for ref in node.data_inputs:
                lost |= before.carrying(ref) - after.carrying(ref)
        elif node.name in outputs or node.op in NEXT_ITERATION or node.op in EXIT or opdefs.is_stateful(node.op):
            lost |= before.running(node.name) - after.running(node.name)
    return {name for name, ref in candidates.items() if before.way(ref) in lost}


def holding_inputs(graph: Graph) -> dict[str, tuple[str, ...]]:
    """For each node the control inputs without which it would leave the branch or loop that it is in.

    A constant of a branch reads no data and waits for the branch by control, as one of a loop does; without that it
    is there always, and outside of the loop. What reads data from there needs no such input. Nodes in other cycles than
    loops keep all of theirs.
    """
    order = _forwards(graph)
    if not any(node.op in ENTER or _is_switch(node) for node in order):
        return {}
    held = {node.name: node.control_inputs for node in graph} if len(order) < len(graph) else {}
    ways = _Ways((), _switches(graph), {})
    for node in order:
        found, kept = ways.of_data(node), list[str]()
        for ref in node.control_inputs:
            joined = _joined(found, ways.running(ref[1:]))
            if joined != found:
                found = joined
                kept.append(ref)
        ways.note(node, found)
        held[node.name] = tuple(kept)
    return held


def _switches(graph: Graph) -> dict[str, str]:
    """What decides at each Switch."""
    return {node.name: _decider(graph, node.data_inputs[1]) for node in graph if _is_switch(node)}


def _forwards(graph: Graph) -> list[Node]:
    """The nodes, each behind all that it reads but for the way back into a loop; without those in other cycles."""
    pending: dict[str, int] = {}
    readers: dict[str, list[Node]] = {}
    for node in graph:
        sources = [
            name for name in map(node_name, node.inputs) if name in graph and graph.nodes[name].op not in NEXT_ITERATION
        ]
        pending[node.name] = len(sources)
        for name in sources:
            readers.setdefault(name, []).append(node)
    ready = [node for node in graph if not pending[node.name]]
    for node in ready:  # grows
        for reader in readers.get(node.name, ()):
            pending[reader.name] -= 1
            if not pending[reader.name]:
                ready.append(reader)
    return ready


def _is_switch(node: Node) -> bool:
    return node.op in SWITCH and len(node.data_inputs) == 2


def _decider(graph: Graph, ref: str) -> str:
    """What decides, seen through Identity: the branches of one condition read it in different ways."""
    for _ in range(8):
        node = graph.nodes.get(node_name(ref))
        if node is None or node.op != "Identity" or not node.data_inputs:
            break
        ref = node.data_inputs[0]
    return canonical(ref)


def _stand_ins(graph: Graph, removed: Collection[str]) -> dict[str, str]:
    """For each removed node the one that is waited for instead."""
    found: dict[str, str] = {}
    for name in removed:
        passed = [name]
        while passed[-1] in removed and passed[-1] not in found:
            following = node_name(graph.nodes[passed[-1]].data_inputs[0])
            if following not in graph or following in passed:
                break
            passed.append(following)
        end = found.get(passed[-1], passed[-1])
        found.update((other, end) for other in passed[:-1])
    return found


class _Ways:
    """For each node the ways that have to be taken for it to run."""

    def __init__(self, order: Iterable[Node], switches: Mapping[str, str], stand_ins: Mapping[str, str]) -> None:
        self._switches = switches
        self._found: dict[str, Ways] = {}
        self._depths: dict[Way, int] = {}
        for node in order:
            ways = self.of_data(node)
            for ref in node.control_inputs:
                ways = _joined(ways, self.running(stand_ins.get(ref[1:], ref[1:])))
            self.note(node, ways)

    def note(self, node: Node, ways: Ways) -> None:
        """Says which ways have to be taken for a node to run."""
        if node.op in ENTER:
            inside = (str(node.attr("frame_name", "")), INSIDE)
            self._depths[inside] = 1 + max((self._depths.get(way, 0) for way in ways), default=0)
            ways = ways | {inside}
        elif node.op in EXIT:
            frames = [way for way in ways if way in self._depths]
            ways = ways - set(sorted(frames, key=self._depths.__getitem__)[-1:])
        self._found[node.name] = ways

    def of_data(self, node: Node) -> Ways:
        """What a node's data say of the ways that have to be taken for it to run."""
        if node.op in MERGES:
            given = [
                self.carrying(ref) for ref in node.data_inputs if node_name(ref) in self._found
            ]  # not the way back
            return frozenset.intersection(*given) if given else ALWAYS
        # a loop is left in the end, whichever way it is gone through
        one = self.running_source if node.op in EXIT else self.carrying
        ways = ALWAYS
        for ref in node.data_inputs:
            ways = _joined(ways, one(ref))
        return ways

    def running(self, name: str) -> Ways:
        """The ways that have to be taken for a node to run."""
        return self._found.get(name, ALWAYS)

    def running_source(self, ref: str) -> Ways:
        return self.running(node_name(ref))

    def carrying(self, ref: str) -> Ways:
        """The ways that have to be taken for a reference to carry a value."""
        ways = self.running_source(ref)
        return _joined(ways, frozenset([self.way(ref)])) if node_name(ref) in self._switches else ways

    def way(self, ref: str) -> Way:
        """The way that a reference to a Switch takes."""
        return self._switches[node_name(ref)], max(parse_ref(ref).port, 0)


def _joined(a: Ways, b: Ways) -> Ways:
    return a if b <= a else b if a <= b else a | b
