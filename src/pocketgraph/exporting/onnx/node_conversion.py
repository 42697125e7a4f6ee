"""Has the nodes of a graph converted one by one, and notes why one could not be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.exporting.onnx.complex_numbers import by_parts
from pocketgraph.exporting.onnx.converter_table import COMPLEX, CONVERTERS
from pocketgraph.exporting.onnx.element_types import plain_type
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import Body, OnnxOperation, OnnxValue
from pocketgraph.exporting.onnx.preparing import Prepared
from pocketgraph.graph.dtype import BFLOAT16, FLOAT, RESOURCE
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import BINARY_SWITCHES
from pocketgraph.kernels.shapes.infer import MALFORMED
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.static_values import Statics
from pocketgraph.runtime.engines.frames import Loop
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.unrolling.branch_conditions import Guard, Guards


class NodeConversion(ABC):
    """The conversion of one graph, node by node.

    Attributes:
        emit: what was emitted.
        reasons: why a node could not be converted, by node name; all of them.
        opsets: which opset has what is needed for such a node, where one does.
        broken: tensors that stand for what could not be converted.
    """

    def __init__(self, prepared: Prepared, opset: int, names: Mapping[str, str], taken: Iterable[str]) -> None:
        """``names``: the public name of each input by tensor name; ``taken``: names that nothing else may have."""
        self.prepared = prepared
        self.items = prepared.items
        self.frames = prepared.frames
        fed = frozenset(map(str, prepared.inputs))
        statics = Statics(prepared.graph, prepared.inferred, fed | prepared.stored)
        self.emit = OnnxEmit(prepared.graph, prepared.inferred, statics, self.items, opset)
        self.emit.taken.update(names.values(), taken)
        self.reasons: dict[str, str] = {}
        self.opsets: dict[str, int] = {}
        self.broken: set[str] = set()
        self.guards = Guards(self.items)
        for endpoint, (dtype, shape) in prepared.inputs.items():
            plain = plain_type(dtype)
            outside = FLOAT if plain is BFLOAT16 else plain  # run times take and give no bfloat16
            value = OnnxValue(names[str(endpoint)], outside, shape, self.emit.body)
            self.emit.body.inputs.append(value)
            self.emit.bound[str(endpoint)] = self.emit.cast(value, plain)

    @abstractmethod
    def region(self, own: Sequence[str], inner: Sequence[Loop], within: frozenset[Guard]) -> None:
        """Converts nodes and loops that run one after the other, under the guards ``within``."""

    def node(self, item: Item) -> None:
        """Converts one node."""
        node = item.node
        if node.op in BINARY_SWITCHES:
            if self.is_a_tensor(item.data[0]):
                with self.emit.at(node):
                    source = self.emit.value(str(item.data[0]))
                self.emit.bound[f"{node.name}:0"] = self.emit.bound[f"{node.name}:1"] = source
            return
        if (only := self.guards.only_input(node.name)) is not None:
            if self.is_a_tensor(only):
                with self.emit.at(node):
                    self.emit.bound[f"{node.name}:0"] = self.emit.value(str(only))
                    self.emit.bound[f"{node.name}:1"] = self.emit.const(np.int32(item.data.index(only)))
            return
        if all(f"{node.name}:{port}" in self.emit.bound for port in range(max(1, self._ports(node.name)))):
            return  # it is fed
        if node.op in ("Const", "Placeholder") or self._is_known(item):
            return
        converter = CONVERTERS.row(node.op)
        with self.emit.at(node):
            try:
                if converter is None:
                    self.reasons[node.name] = f"there is no ONNX operator for {node.op}"
                    raise Unsupported(self.reasons[node.name])
                if node.op not in COMPLEX and self._is_complex(item):
                    by_parts(self.emit, node, converter)
                else:
                    self.emit.results(converter(self.emit, node))
            except Unsupported as refusal:
                self.refuse(item, refusal.reason, refusal.opset)
            except (PocketgraphError, *MALFORMED) as error:
                self.refuse(item, f"its attributes or inputs make no sense ({error})")

    def _is_known(self, item: Item) -> bool:
        """Whether all that a node gives is constant, so that whoever takes it has it."""
        return all(
            self.emit.known(f"{item.node.name}:{port}") is not None for port in range(self._ports(item.node.name))
        ) and bool(self._ports(item.node.name))

    def _is_complex(self, item: Item) -> bool:
        """Whether a node takes or gives complex numbers."""
        refs = [*map(str, item.data), *(f"{item.node.name}:{port}" for port in range(self._ports(item.node.name)))]
        return any(dtype is not None and dtype.is_complex for dtype in map(self.prepared.inferred.dtype, refs))

    def _ports(self, name: str) -> int:
        return len(self.prepared.inferred.shapes(name))

    def refuse(self, item: Item, reason: str, opset: int = 0) -> None:
        """Notes that a node could not be converted, and goes on with a made-up result; who comes after is not to blame
        for it."""
        name = item.node.name
        if not any(e.node in self.reasons or str(e) in self.broken for e in item.data):
            self.reasons.setdefault(name, reason)
            self.opsets.setdefault(name, opset)
        for port in range(max(1, self._ports(name))):
            ref = f"{name}:{port}"
            dtype = self.prepared.inferred.dtype(ref)
            if dtype is None or dtype is RESOURCE:
                continue
            self.emit.bound[ref] = OnnxValue(self.emit.name(ref), plain_type(dtype), self.prepared.inferred.shape(ref),
                                         self.emit.body)  # fmt: skip
            self.broken.add(ref)

    def is_a_tensor(self, endpoint: Endpoint) -> bool:
        return self.prepared.inferred.dtype(str(endpoint)) is not RESOURCE

    def own(self, body: Body, value: OnnxValue) -> OnnxValue:
        """A value that a body may give: one that it makes itself, and that it does not give already."""
        value = self.emit.made(value)
        if value.home is body and value not in body.inputs and value not in body.outputs:
            return value
        made = OnnxValue(self.emit.name(f"{value.name}_out"), value.dtype, value.shape, body)
        body.operations.append(OnnxOperation("Identity", [value], [made], {}, {}, "outputs"))
        return made
