"""A loop of TensorFlow 1 becomes a Loop, or an LSTM or GRU where it is one.

Arrays that a loop writes one element a round, from the first on, are outputs of the Loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pocketgraph.exporting.onnx.element_types import plain_type
from pocketgraph.exporting.onnx.node_conversion import NodeConversion
from pocketgraph.exporting.onnx.onnx_program import Body, OnnxValue
from pocketgraph.exporting.onnx.preparing import Prepared
from pocketgraph.exporting.onnx.recurrent_loops import recurrent
from pocketgraph.graph import DType, Node, Shape
from pocketgraph.graph.dtype import BOOL, INT64
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import ENTER, EXIT, NEXT_ITERATION
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.runtime.engines import frames as loops
from pocketgraph.runtime.engines.frames import Loop
from pocketgraph.runtime.engines.needed import PASSES, Item, behind
from pocketgraph.runtime.unrolling.branch_conditions import Guard
from pocketgraph.runtime.unrolling.constant_trip_counts import counts, heads_of, outside
from pocketgraph.runtime.unrolling.loop_shapes import common_shape


def convert_loop(conversion: NodeConversion, loop: Loop, within: frozenset[Guard]) -> None:
    """Converts a loop of TensorFlow 1 under some guards: the condition once before it, and at the end of each round."""
    members = {name: conversion.items[name] for name in loop.members}
    start = next(iter(members.values()))
    try:
        _LoopConversion(conversion, loop, members, within).run()
    except Unsupported as refusal:
        exits = [item for item in members.values() if item.node.op in EXIT]
        blamed = conversion.items.get(refusal.node, start)
        conversion.refuse(blamed, refusal.reason, refusal.opset)
        conversion.reasons.setdefault(blamed.node.name, refusal.reason)
        conversion.opsets.setdefault(blamed.node.name, refusal.opset)
        for item in exits:
            if conversion.frames[item.node.name] == loop.frame.parent:
                conversion.refuse(item, refusal.reason, refusal.opset)


class _LoopConversion:
    """The conversion of one loop.

    Attributes:
        within: the guards that it is under.
        inner: the loops in it.
        exits: the nodes that its last values leave by.
        heads: its variables: the value at first, and at the end of a round, by the Merge.
        carried: those that are tensors.
        condition: the LoopCond.
        nodes: what else a round computes.
        gate: those that the condition needs.
    """

    def __init__(
        self, conversion: NodeConversion, loop: Loop, members: Mapping[str, Item], within: frozenset[Guard]
    ) -> None:
        self.conversion = conversion
        self.within = within
        self.emit = conversion.emit
        self.items = conversion.items
        self.members = members
        own, self.inner = loops.split(list(members), loop.frame, self.items, conversion.frames)
        ends = [item for item in members.values() if item.node.op in EXIT]
        self.exits = [item for item in ends if conversion.frames[item.node.name] == loop.frame.parent]
        own = [name for name in own if members[name] not in self.exits]
        self._bind_entered(own)
        self.heads = heads_of(self.items, {name: members[name] for name in own})
        self.carried = {n: pair for n, pair in self.heads.items() if conversion.is_a_tensor(Endpoint(n, 0))}
        conditions = [name for name in own if self.items[name].node.op == "LoopCond"]
        if len(conditions) != 1:
            raise Unsupported("the loop has no condition of its own", loop.members[0])
        self.condition = self.items[conditions[0]].node
        left_out = (*ENTER, *NEXT_ITERATION)
        self.nodes = [n for n in own if n not in self.heads and self.items[n].node.op not in left_out]
        gate, _ = self._needed([self._goes_on()])
        if not gate.keys() <= set(self.nodes):
            raise Unsupported("the loop's condition holds another loop", self.condition.name)
        self.gate = list(gate)

    def run(self) -> None:
        """Emits it, and binds what its Exits give."""
        with self.emit.at(self.condition):
            ends = recurrent(self.conversion.prepared, self.members, self.heads, self.emit)
        if ends is None:
            ends = self._as_loop()
        for item in self.exits:
            name = self._left_variable(item)
            if name in ends:
                self.emit.bound[f"{item.node.name}:0"] = ends[name]

    def _bind_entered(self, own: Sequence[str]) -> None:
        for name in own:
            item = self.items[name]
            if item.node.op in ENTER and self.conversion.is_a_tensor(item.data[0]):
                with self.emit.at(item.node):
                    self.emit.bound[f"{name}:0"] = self.emit.value(str(item.data[0]))

    def _goes_on(self) -> Endpoint:
        """Whether there is another round."""
        return self.items[self.condition.name].data[0]

    def _holds(self, values: Mapping[str, OnnxValue]) -> OnnxValue:
        """The condition, where the loop's variables have these values."""
        with self.emit.rebound({f"{name}:0": value for name, value in values.items()}):
            self.conversion.region(self.gate, [], self.within)
            return self.emit.made(self.emit.value(str(self._goes_on())))

    def _as_loop(self) -> dict[str, OnnxValue]:
        """ONNX's Loop; the last values of the variables, by name."""
        emit = self.emit
        scanned = scanned_arrays(self.conversion.prepared, self.carried)
        initial = {name: emit.value(str(first)) for name, (first, _) in self.carried.items()}
        initial.update((name, self._begun(value)) for name, value in initial.items() if name not in scanned)
        begins = self._holds(initial)
        body, following, pieces = self._round(initial, scanned)
        order = [*following, *pieces]
        shapes: list[Shape | Sequence[int | None] | None] = [
            common_shape(self._carried_shape(n, initial[n]), value.shape) for n, value in following.items()
        ]
        shapes += [None if piece.shape.dims is None else Shape([None, *piece.shape]) for piece in pieces.values()]
        types: list[DType | None] = [value.dtype for value in (*following.values(), *pieces.values())]
        with emit.at(self.condition):
            operands: list[OnnxValue | None] = [None, begins, *(initial[name] for name in following)]
            return dict(zip(order, emit.ops("Loop", operands, len(order), shapes, types, {"body": body}), strict=True))

    def _round(
        self, initial: Mapping[str, OnnxValue], scanned: Mapping[str, str]
    ) -> tuple[Body, dict[str, OnnxValue], dict[str, OnnxValue]]:
        """One round as the body of a Loop; the variables behind it, and what it adds to arrays that it fills."""
        emit = self.emit
        body = Body(outer=emit.body)
        turn = OnnxValue(emit.name(f"{self.condition.name}/turn"), INT64, Shape(()), body)
        goes_on = OnnxValue(emit.name(f"{self.condition.name}/holds"), BOOL, Shape(()), body)
        body.inputs += [turn, goes_on]
        with emit.inside(body):
            for name, value in initial.items():
                if name in scanned:
                    continue
                shape = self._carried_shape(name, value)
                inside = OnnxValue(emit.name(f"{name}/before"), value.dtype, shape, body)
                body.inputs.append(inside)
                emit.bound[f"{name}:0"] = inside
            for name, write in scanned.items():
                emit.bound[f"{name}:0"] = initial[name]
                emit.scanned[write] = None
            nodes, reached = self._needed([last for _, last in self.heads.values()])
            nested = [unit for unit in self.inner if not reached.isdisjoint(unit.members)]
            with emit.rebound({}):
                self.conversion.region([*nodes], nested, self.within)
                lasts = {name: last for name, (_, last) in self.carried.items() if name not in scanned}
                following = {name: emit.made(emit.value(str(last))) for name, last in lasts.items()}
                written = {name: emit.scanned.pop(write) for name, write in scanned.items()}
                for name, value in following.items():
                    following[name] = self._as_before(value, emit.bound[f"{name}:0"])
            body.outputs.append(self.conversion.own(body, self._holds(following)))
            for value in following.values():
                body.outputs.append(self.conversion.own(body, value))
            pieces: dict[str, OnnxValue] = {}
            for name, piece in written.items():
                if piece is None:
                    raise Unsupported("an array is written in no round of its loop", name)
                pieces[name] = piece
                body.outputs.append(self.conversion.own(body, emit.made(piece)))
        return body, following, pieces

    def _as_before(self, value: OnnxValue, before: OnnxValue) -> OnnxValue:
        return value if value.dtype is before.dtype else self.emit.cast(value, before.dtype)

    def _carried_shape(self, name: str, initial: OnnxValue) -> Shape:
        """The shape that a loop's variable has in every round."""
        inferred = self.conversion.prepared.inferred
        dtype = inferred.dtype(f"{name}:0")
        if dtype is not None and plain_type(dtype) is initial.dtype and not self.emit.is_array(initial):
            return inferred.shape(f"{name}:0")
        return initial.shape  # an array keeps its size

    def _begun(self, value: OnnxValue) -> OnnxValue:
        """What a loop's variable begins as."""
        if not value.is_made and value.first is None:
            raise Unsupported("the shape of the array's elements is not known; state the shapes of the inputs")
        return self.emit.made(value)

    def _left_variable(self, item: Item) -> str:
        """The variable whose last value an Exit gives."""
        source = item.data[0].node
        for _ in range(len(self.items)):
            if source in self.heads:
                return source
            found = self.items[source]
            if found.node.op not in ("Switch", "Identity"):
                break
            source = found.data[0].node
        raise Unsupported("the loop gives something that is none of its variables", item.node.name)

    def _needed(self, ends: Sequence[Endpoint]) -> tuple[dict[str, None], set[str]]:
        """The nodes of a round that compute the tensors ``ends``, in order; and all that do, in inner loops too."""
        items = {name: item for name, item in self.items.items() if name not in self.heads}
        seen = set(closure((e.node for e in ends), lambda name: (e.node for e in items[name].data), items.__contains__))
        return {name: None for name in self.nodes if name in seen}, seen


WRITES = {"TensorArrayWriteV3": (1, 3), "TensorListSetItem": (1, 0)}
"""The inputs of a write that are the index and the array."""


def scanned_arrays(prepared: Prepared, carried: Mapping[str, tuple[Endpoint, Endpoint]]) -> dict[str, str]:
    """The nodes that write such arrays, in every round, by the Merge of the loop's variable."""
    found: dict[str, str] = {}
    items = prepared.items
    counters = {
        name for name, (first, last) in carried.items() if counts(prepared.items, prepared.inferred, name, first, last)
    }
    for name, (first, last) in carried.items():
        end = behind(prepared.items, last)
        item = items.get(end.node)
        if item is None or item.node.op not in WRITES:
            continue
        index, array = (behind(prepared.items, item.data[place]) for place in WRITES[item.node.op])
        if array.node != name or index.node not in counters:
            continue
        if _readers(prepared, name) != {item.node.name}:
            continue
        source = items.get(outside(prepared.items, first).node)
        if source is None or source.node.op not in ("TensorArrayV3", "TensorListReserve", "TensorArrayV2"):
            continue
        if not _fills(prepared, source.node.name, index.node, item.node):
            continue
        found[name] = item.node.name
    return found


def _readers(prepared: Prepared, name: str) -> set[str]:
    """Who takes a variable inside of its loop, behind what only passes it on."""
    found: set[str] = set()
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        top = waiting.pop()
        for node in prepared.graph.consumers.get(top, ()):
            if node.name in seen or node.name not in prepared.items:
                continue
            seen.add(node.name)
            item = prepared.items[node.name]
            if top not in (endpoint.node for endpoint in item.data):
                continue
            if node.op in PASSES:
                waiting.append(node.name)
            elif node.op not in (*EXIT, *NEXT_ITERATION):
                found.add(node.name)
    return found


def _fills(prepared: Prepared, array: str, counter: str, write: Node) -> bool:
    """Whether the loop goes on as long as the counter is below the array's size, as far as that can be told; or that
    size is none at first, and grows."""
    maker = prepared.items[array].node
    size = prepared.items[array].data[0 if maker.op.startswith("TensorArray") else 1]
    first = prepared.inferred.value(str(outside(prepared.items, size)))
    grows = maker.attr("dynamic_size", False) or write.attr("resize_if_index_out_of_bounds", False)
    if grows and first is not None and not first.any():
        return True
    for item in prepared.items.values():
        if item.node.op != "Less" or behind(prepared.items, item.data[0]).node != counter:
            continue
        limit = outside(prepared.items, item.data[1])
        known, wanted = (prepared.inferred.value(str(e)) for e in (limit, outside(prepared.items, size)))
        if limit == outside(prepared.items, size):
            return True
        if known is not None and wanted is not None and int(known.reshape(-1)[0]) == int(wanted.reshape(-1)[0]):
            return True
    return False
