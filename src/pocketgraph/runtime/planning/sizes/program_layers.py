"""The layers of a graph that become one LiteRT program for all sizes, and the numbers that it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pocketgraph.graph import Node, canonical, parse_ref
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import HEAVY
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.litert.sizes.open_program import Origins, SizeOperand
from pocketgraph.runtime.planning.call_key import CallKey
from pocketgraph.runtime.planning.sizes.open_layers import OpenLayers


class ProgramLayers:
    """The layers that become a program.

    Attributes:
        nodes: they, and the constants between them, producers first.
        ops: the op of each node that is in the program, by name.
        inputs: the tensors that it takes.
        outputs: those that others take of it.
        inferred: what is known of the graph while sizes are open.
        is_possible: whether what goes in can be computed without it.
    """

    def __init__(self, opened: CallKey, layers: OpenLayers, nodes: Sequence[Node], inferred: Inferred) -> None:
        self._layers = layers
        self.inferred = inferred
        self._fed = layers.fed
        by_name = {node.name: node for node in nodes}
        outside = self._with_producers(by_name, layers.before)
        self.is_possible = not any(by_name[name].op in HEAVY for name in outside)
        last = [node for node in nodes if node.name in layers.after]
        taken = [*map(str, opened.fetches), *(ref for node in last for ref in node.data_inputs)]
        wanted = self._behind_sizes(by_name, list(map(canonical, taken)))
        inside: dict[str, Node] = {}
        inputs: dict[str, None] = {}
        waiting = list(wanted)
        while waiting:
            ref = waiting.pop()
            name = parse_ref(ref)[0]
            if name in inside or name in layers.after or ref in layers.from_sizes or self._is_known(ref):
                continue
            if ref in self._fed or name in outside:
                continue
            inside[name] = by_name[name]
            waiting += [ref for ref in map(canonical, by_name[name].data_inputs) if not self._is_told(name, ref)]
        self.nodes = [node for node in nodes if node.name in inside and node.op != "Const"]
        self.ops = {node.name: node.op for node in self.nodes if self._is_open(node)}
        for node in self.nodes:
            for ref in map(canonical, node.data_inputs):
                name = parse_ref(ref)[0]
                enters = ref in self._fed or (name in outside and not self._is_known(ref))
                is_told = self._is_told(node.name, ref)
                if enters and ref not in layers.from_sizes and node.name in self.ops and not is_told:
                    inputs[ref] = None
        self.inputs = tuple(inputs)
        self.outputs = tuple(dict.fromkeys(ref for ref in wanted if parse_ref(ref)[0] in self.ops))

    def origins(self, fixed: Inferred) -> Origins | None:
        """What the program is lowered from; None where numbers that it takes are not known for its own sizes."""
        operands: dict[str, dict[int, SizeOperand]] = {}
        for node in self.nodes:
            for place, ref in self._layers.size_operands.get(node.name, {}).items():
                numbers = fixed.value(ref)
                if numbers is None:
                    return None
                known = self.inferred.elements(ref)
                all_open = (None,) * numbers.size
                operands.setdefault(node.name, {})[place] = SizeOperand(
                    ref, tuple(map(int, numbers.reshape(-1))), all_open if known is None else tuple(known)
                )
        names = {node.name: node for node in self.nodes}
        return Origins(names, operands, self._layers.cuts & names.keys(), self.inferred.value)

    def _behind_sizes(self, by_name: Mapping[str, Node], refs: Sequence[str]) -> list[str]:
        """These tensors; for numbers that follow from sizes, which are computed without the program, what has these."""
        found: dict[str, None] = {}
        waiting, seen = list(reversed(refs)), set[str]()
        while waiting:
            ref = waiting.pop()
            if ref in self._fed or ref not in self._layers.from_sizes or self._is_known(ref):
                found[ref] = None
            elif ref not in seen:
                seen.add(ref)
                waiting += map(canonical, by_name[parse_ref(ref)[0]].data_inputs)
        return list(found)

    def _with_producers(self, by_name: Mapping[str, Node], names: Mapping[str, Node]) -> set[str]:
        """These nodes, and the layers that they depend on, be it for their shapes."""

        def producers(name: str) -> list[str]:
            return [parse_ref(ref)[0] for ref in by_name[name].data_inputs if canonical(ref) not in self._fed]

        from_sizes = self._layers.from_sizes
        is_open = lambda name: self._is_open(by_name[name]) or f"{name}:0" in from_sizes  # noqa: E731
        return set(closure(names, producers, is_open))

    def _is_told(self, name: str, ref: str) -> bool:
        """Whether a layer is told these numbers, or does without them."""
        return ref in self._layers.size_operands.get(name, {}).values() or self._layers.unread.get(name) == ref

    def _is_known(self, ref: str) -> bool:
        return self.inferred.value(ref) is not None

    def _is_open(self, node: Node) -> bool:
        """Whether a node gives something else for other sizes or values."""
        return node.name in self._layers.computing
