"""A frozen graph as an ONNX model: what the exporter and tests call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pocketgraph.errors import UsageError
from pocketgraph.exporting.onnx.branch_conversion import convert_branches
from pocketgraph.exporting.onnx.cleaning import cleaned
from pocketgraph.exporting.onnx.converter_table import CONVERTERS
from pocketgraph.exporting.onnx.loop_conversion import convert_loop
from pocketgraph.exporting.onnx.node_conversion import NodeConversion
from pocketgraph.exporting.onnx.norm_folding import fold_norms
from pocketgraph.exporting.onnx.onnx_program import Body, OnnxOperation, OnnxValue, all_operations
from pocketgraph.exporting.onnx.padding_absorption import absorb_padding
from pocketgraph.exporting.onnx.preparing import prepared
from pocketgraph.exporting.programs import LackingError
from pocketgraph.graph import DType, Graph, Shape, canonical
from pocketgraph.graph.dtype import BFLOAT16, FLOAT, QINT32
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.garbage_collection import collector_paused
from pocketgraph.graph.op_traits import MERGE
from pocketgraph.graph.order import reachable
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.static_values import Statics
from pocketgraph.runtime.engines import frames as loops
from pocketgraph.runtime.engines.compilation_units import Unit, ordered_units
from pocketgraph.runtime.engines.frames import ROOT, Loop
from pocketgraph.runtime.unrolling.branch_conditions import Guard

FIRST_OPSET, LAST_OPSET, OPSET = 13, 23, 17
"""The versions of ONNX's operators that are written, and the one that is written unless another is asked for."""
DRAWING = ("Random", "Multinomial")
"""What the names of operators begin with that draw random numbers."""


@dataclass
class Converted:
    """An ONNX graph.

    Attributes:
        body: the graph; its inputs and outputs have their public names.
        opset: the version of its operators.
        notes: what was left out, a sentence each.
        is_coded: whether it computes with eight-bit codes.
        draws: the nodes whose random numbers the run time draws.
    """

    body: Body
    opset: int
    notes: list[str] = field(default_factory=list)
    is_coded: bool = False
    draws: tuple[str, ...] = ()


@collector_paused()
def converted(
    graph: Graph,
    inputs: Mapping[str, tuple[DType, Shape]],
    outputs: Sequence[str],
    *,
    input_names: Mapping[str, str] | None = None,
    output_names: Sequence[str] | None = None,
    opset: int = OPSET,
    target: str = "ONNX",
    without_loops: bool = False,
) -> Converted:
    """The ONNX form of a graph.

    Args:
        graph: a frozen graph.
        inputs: type and shape of each tensor that the model takes; sizes may be open.
        outputs: the tensors that it gives.
        input_names: public names by tensor name; by default the tensor names themselves without ``:0``.
        output_names: public names of the outputs, in order; likewise.
        opset: from 13 to 23.
        target: what is written in the end, for the message.
        without_loops: see ``prepared``.

    Raises:
        LackingError: ONNX has no words for some nodes; the message lists all of them.
        UsageError: there is no such opset.
        FreezeError, RunError: the graph is damaged.
    """
    if not FIRST_OPSET <= opset <= LAST_OPSET:
        raise UsageError(f"opset {opset} is not written", hint=f"choose one from {FIRST_OPSET} to {LAST_OPSET}")
    public_inputs = {canonical(ref): ref.removesuffix(":0") for ref in inputs}
    public_inputs.update({canonical(ref): name for ref, name in (input_names or {}).items()})
    public_outputs = list(output_names) if output_names else [ref.removesuffix(":0") for ref in outputs]
    specs = {canonical(ref): spec for ref, spec in inputs.items()}
    ready = prepared(graph, specs, [canonical(output) for output in outputs], without_loops=without_loops)
    conversion = _Conversion(ready, opset, public_inputs, public_outputs)
    body = conversion.run()
    if conversion.reasons:
        needed = [conversion.opsets.get(name, 0) for name in conversion.reasons]
        raise LackingError(target, ready.graph, conversion.reasons, max(needed) if all(needed) else 0)
    _name_outputs(body, public_outputs)
    absorb_padding(body)
    fold_norms(body)
    body = cleaned(body)
    operations = list(all_operations(body))
    is_coded = any(operation.code == "QuantizeLinear" for operation in operations)
    draws = dict.fromkeys(operation.node for operation in operations if operation.code.startswith(DRAWING))
    return Converted(body, opset, list(dict.fromkeys(conversion.emit.notes)), is_coded, tuple(draws))


def _name_outputs(body: Body, names: Sequence[str]) -> None:
    """Gives the outputs their public names; one that is a constant, an input or given twice is copied."""
    made = {id(value) for operation in body.operations for value in operation.outputs if value is not None}
    given: set[int] = set()
    for place, (value, name) in enumerate(zip(list(body.outputs), names, strict=True)):
        if id(value) in made and id(value) not in given:
            value.name = name
            given.add(id(value))
            continue
        copy = OnnxValue(name, value.dtype, value.shape, body)
        body.operations.append(OnnxOperation("Identity", [value], [copy], {}, {}, name))
        body.outputs[place] = copy


class _Conversion(NodeConversion):
    """The conversion of one graph, producers first; loops become Loop, branches If. ``run`` gives what it becomes."""

    def run(self) -> Body:
        """Converts everything; what could not be is in ``reasons``."""
        self._bind_stored_codes()
        own, found = loops.split(list(self.items), ROOT, self.items, self.frames)
        self.region(own, found, frozenset())
        for endpoint in self.prepared.outputs:
            if not self._is_behind_a_refusal(endpoint):
                try:
                    value = self.emit.value(str(endpoint))
                    value = self.emit.cast(value, FLOAT) if value.dtype is BFLOAT16 else value
                    self._check_output(endpoint, value)
                    self.emit.body.outputs.append(self.emit.made(value))
                except Unsupported as refusal:
                    self.reasons.setdefault(endpoint.node, refusal.reason)
        return self.emit.body

    def _is_behind_a_refusal(self, endpoint: Endpoint) -> bool:
        """Whether what an output is computed from could not be converted, so that its own shape is no reason."""
        before = reachable(self.prepared.graph, [str(endpoint)], data_only=True, missing_ok=True)
        return not before.isdisjoint(self.reasons)

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
            converter = CONVERTERS.row(node.op)
            assert converter is not None
            with emit.at(node):
                try:
                    emit.results(converter(emit, node))
                except Unsupported as refusal:
                    self.reasons[node.name] = refusal.reason
        emit.graph, emit.inferred, emit.statics = before

    def _check_output(self, endpoint: Endpoint, value: OnnxValue) -> None:
        """Refuses outputs that a file cannot describe."""
        dtype = self.prepared.inferred.dtype(str(endpoint))
        if dtype is QINT32 and value.dtype is FLOAT:
            raise Unsupported("its int32 codes are numbers in the exported model; take the output behind it")
        if dtype is not None and dtype.is_complex:
            raise Unsupported("ONNX's operators compute with no complex numbers; take its real and imaginary part")
        if value.shape.dims is None:
            raise Unsupported("how many axes the output has is not known; state the shapes of the inputs")

    def region(self, own: Sequence[str], inner: Sequence[Loop], within: frozenset[Guard]) -> None:
        """Converts nodes and loops that run one after the other, under the guards ``within``."""
        waiting = [unit for unit, _ in ordered_units(own, inner, self.prepared.plan)]
        done: set[str] = set()
        for unit in waiting:
            if isinstance(unit, Loop):
                if self.guards.of_loop(unit, self.frames) <= within:
                    convert_loop(self, unit, within)
            elif isinstance(unit, str) and unit not in done and self.guards.of(unit) <= within:
                item = self.items[unit]
                if item.node.op in MERGE and self.guards.only_input(unit) is None:
                    done |= self._join(unit, waiting, within)
                else:
                    self.node(item)

    def _join(self, first: str, order: Sequence[Unit], within: frozenset[Guard]) -> set[str]:
        """Converts a Merge, with others of the same choice; notes what stands in the way."""
        try:
            return convert_branches(self, first, order, within)
        except Unsupported as refusal:
            blamed = self.items.get(refusal.node, self.items[first])
            self.refuse(blamed, refusal.reason, refusal.opset)
            self.refuse(self.items[first], refusal.reason, refusal.opset)
            return {first}
