"""Goes over the prepared graph, producers first, and has every node converted; loops become Loop, branches If."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.exporting.onnx import registry
from pocketgraph.exporting.onnx.branch_conditions import Guard
from pocketgraph.exporting.onnx.branch_conversion import convert_branches
from pocketgraph.exporting.onnx.loop_conversion import convert_loop
from pocketgraph.exporting.onnx.node_conversion import NodeConversion
from pocketgraph.exporting.onnx.program import Body, OnnxValue, UnsupportedInOnnx
from pocketgraph.graph.dtype import BFLOAT16, FLOAT, QINT32
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.litert.static_values import Statics
from pocketgraph.runtime.engines import frames as loops
from pocketgraph.runtime.engines.compilation_units import Unit, in_order
from pocketgraph.runtime.engines.frames import ROOT, Loop


class Conversion(NodeConversion):
    """The conversion of one graph: ``run`` gives what it becomes."""

    def run(self) -> Body:
        """Converts everything; what could not be is in ``reasons``."""
        self._bind_stored_codes()
        own, found = loops.split(list(self.items), ROOT, self.items, self.frames)
        self.region(own, found, frozenset())
        for endpoint in self.prepared.outputs:
            if str(endpoint) in self.emit.bound or endpoint.node not in self.reasons:
                try:
                    value = self.emit.value(str(endpoint))
                    value = self.emit.cast(value, FLOAT) if value.dtype is BFLOAT16 else value
                    self._check_output(endpoint, value)
                    self.emit.body.outputs.append(self.emit.made(value))
                except UnsupportedInOnnx as refusal:
                    self.reasons.setdefault(endpoint.node, refusal.reason)
        return self.emit.body

    def _bind_stored_codes(self) -> None:
        """Converts what makes numbers of stored codes, in the graph as it was when they were found."""
        wanted = {str(endpoint) for item in self.items.values() for endpoint in item.data} & self.prepared.stored
        if not wanted:
            return
        emit, source, types = self.emit, self.prepared.source, self.prepared.stored_types
        before = emit.graph, emit.inferred, emit.statics
        emit.graph, emit.inferred, emit.statics = source, types, Statics(source, types, self.prepared.stored)
        for ref in sorted(wanted):
            node = source.producer(ref)
            converter = registry.find(node.op)
            assert converter is not None
            with emit.at(node):
                try:
                    converter(emit, node)
                except UnsupportedInOnnx as refusal:
                    self.reasons[node.name] = refusal.reason
        emit.graph, emit.inferred, emit.statics = before

    def _check_output(self, endpoint: Endpoint, value: OnnxValue) -> None:
        """Refuses outputs that a file cannot describe."""
        dtype = self.prepared.inferred.dtype(str(endpoint))
        if dtype is QINT32 and value.dtype is FLOAT:
            raise UnsupportedInOnnx("its int32 codes are numbers in the exported model; take the output behind it")
        if value.shape.dims is None:
            raise UnsupportedInOnnx("how many axes the output has is not known; state the shapes of the inputs")

    def region(self, own: Sequence[str], inner: Sequence[Loop], within: frozenset[Guard]) -> None:
        """Converts nodes and loops that run one after the other, under the guards ``within``."""
        waiting = [unit for unit, _ in in_order(own, inner, self.prepared.plan)]
        done: set[str] = set()
        for unit in waiting:
            if isinstance(unit, Loop):
                enters = (name for name in unit.members if self.items[name].node.op in loops.ENTER)
                needs = frozenset(guard for name in enters for guard in self.guards.of(name))
                if needs <= within:
                    convert_loop(self, unit)
            elif isinstance(unit, str) and unit not in done and self.guards.of(unit) <= within:
                item = self.items[unit]
                if item.node.op in loops.MERGE:
                    done |= self._join(unit, waiting, within)
                else:
                    self.node(item)

    def _join(self, first: str, order: Sequence[Unit], within: frozenset[Guard]) -> set[str]:
        """Converts a Merge, with others of the same choice; notes what stands in the way."""
        try:
            return convert_branches(self, first, order, within)
        except UnsupportedInOnnx as refusal:
            blamed = self.items.get(refusal.node, self.items[first])
            self.refuse(blamed, refusal.reason)
            self.refuse(self.items[first], refusal.reason)
            return {first}
