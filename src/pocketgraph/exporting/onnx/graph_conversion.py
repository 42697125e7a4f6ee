"""Goes over the prepared graph, producers first, and has every node converted; loops become Loop, branches If."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.exporting.onnx import registry
from pocketgraph.exporting.onnx.branch_conditions import Guard, Guards
from pocketgraph.exporting.onnx.element_types import plain_type
from pocketgraph.exporting.onnx.emitter import OnnxEmit
from pocketgraph.exporting.onnx.preparing import Prepared
from pocketgraph.exporting.onnx.program import Body, OnnxOperation, OnnxValue
from pocketgraph.exporting.onnx.recurrent_loops import recurrent
from pocketgraph.exporting.onnx.scan_outputs import scanned_arrays
from pocketgraph.exporting.onnx.unsupported import UnsupportedInOnnx
from pocketgraph.graph import DType, Shape, canonical
from pocketgraph.graph.dtype import BFLOAT16, BOOL, FLOAT, INT64, QINT32, RESOURCE
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.litert.static_values import Statics
from pocketgraph.runtime.engines import frames as loops
from pocketgraph.runtime.engines.compilation_units import Unit, in_order
from pocketgraph.runtime.engines.frames import ROOT, Loop
from pocketgraph.runtime.engines.needed import Item

MALFORMED = (TypeError, ValueError, IndexError, KeyError, OverflowError, AttributeError, ZeroDivisionError)
"""What a converter stumbles over when a node of an untrusted file has attributes of the wrong kind."""


class Conversion:
    """The conversion of one graph.

    Attributes:
        emit: what was emitted.
        reasons: why a node could not be converted, by node name; all of them.
    """

    def __init__(self, prepared: Prepared, opset: int, names: Mapping[str, str], taken: Iterable[str]) -> None:
        """``names``: the public name of each input by tensor name; ``taken``: names that nothing else may have."""
        self.prepared = prepared
        self.items = prepared.items
        self.frames = prepared.frames
        fed = frozenset(map(str, prepared.inputs))
        statics = Statics(prepared.graph, prepared.inferred, fed | prepared.stored)
        self.emit = OnnxEmit(prepared.graph, prepared.inferred, statics, opset)
        self.emit.taken.update(names.values(), taken)
        self.reasons: dict[str, str] = {}
        self.guards = Guards(prepared)
        for endpoint, (dtype, shape) in prepared.inputs.items():
            plain = plain_type(dtype)
            outside = FLOAT if plain is BFLOAT16 else plain  # run times take and give no bfloat16
            value = OnnxValue(names[str(endpoint)], outside, shape, self.emit.body)
            self.emit.body.inputs.append(value)
            self.emit.bound[str(endpoint)] = self.emit.cast(value, plain)

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

    # Regions

    def region(self, own: Sequence[str], inner: Sequence[Loop], within: frozenset[Guard]) -> None:
        """Converts nodes and loops that run one after the other, under the guards ``within``."""
        waiting = [unit for unit, _ in in_order(own, inner, self.prepared.plan)]
        done: set[str] = set()
        for unit in waiting:
            if isinstance(unit, Loop):
                enters = (name for name in unit.members if self.items[name].node.op in loops.ENTER)
                needs = frozenset(guard for name in enters for guard in self.guards.of(name))
                if needs <= within:
                    self.loop(unit)
            elif isinstance(unit, str) and unit not in done and self.guards.of(unit) <= within:
                item = self.items[unit]
                if item.node.op in loops.MERGE:
                    done |= self.join(unit, waiting, within)
                else:
                    self.node(item)

    def join(self, first: str, order: Sequence[Unit], within: frozenset[Guard]) -> set[str]:
        """Converts a Merge, with others of the same choice; notes what stands in the way."""
        try:
            return self.branches(first, order, within)
        except UnsupportedInOnnx as refusal:
            blamed = self.items.get(refusal.node, self.items[first])
            self.refuse(blamed, refusal.reason)
            self.refuse(self.items[first], refusal.reason)
            return {first}

    def node(self, item: Item) -> None:
        """Converts one node."""
        node = item.node
        if node.op in ("Switch", "RefSwitch"):
            if self._is_a_tensor(item.data[0]):
                with self.emit.at(node):
                    source = self.emit.value(str(item.data[0]))
                self.emit.bound[f"{node.name}:0"] = self.emit.bound[f"{node.name}:1"] = source
            return
        if all(f"{node.name}:{port}" in self.emit.bound for port in range(max(1, self._ports(node.name)))):
            return  # it is fed
        if node.op in ("Const", "Placeholder") or self._is_known(item):
            return
        converter = registry.find(node.op)
        with self.emit.at(node):
            try:
                if converter is None:
                    self.reasons[node.name] = f"there is no ONNX operator for {node.op}"
                    raise UnsupportedInOnnx(self.reasons[node.name])
                converter(self.emit, node)
            except UnsupportedInOnnx as refusal:
                self.refuse(item, refusal.reason)
            except (PocketgraphError, *MALFORMED) as error:
                self.refuse(item, f"its attributes or inputs make no sense ({error})")

    def _is_known(self, item: Item) -> bool:
        """Whether all that a node gives is constant, so that whoever takes it has it."""
        return all(
            self.emit.known(f"{item.node.name}:{port}") is not None for port in range(self._ports(item.node.name))
        ) and bool(self._ports(item.node.name))

    def _ports(self, name: str) -> int:
        return len(self.prepared.inferred.shapes(name))

    def refuse(self, item: Item, reason: str) -> None:
        """Notes that a node could not be converted, and goes on with a made-up result; who comes after is not to blame
        for it."""
        name = item.node.name
        if not any(e.node in self.reasons or str(e) in self._broken for e in item.data):
            self.reasons.setdefault(name, reason)
        for port in range(max(1, self._ports(name))):
            ref = f"{name}:{port}"
            dtype = self.prepared.inferred.dtype(ref)
            if dtype is None or dtype is RESOURCE:
                continue
            self.emit.bound[ref] = OnnxValue(self.emit.name(ref), plain_type(dtype), self.prepared.inferred.shape(ref),
                                         self.emit.body)  # fmt: skip
            self._broken.add(ref)

    @property
    def _broken(self) -> set[str]:
        found: set[str] = self.__dict__.setdefault("_broken_refs", set())
        return found

    # Branches

    def branches(self, first: str, order: Sequence[Unit], within: frozenset[Guard]) -> set[str]:
        """Converts a Merge into an If, together with others that choose by the same predicate; gives back which."""
        choice = self.guards.chosen_by(self.items[first])
        if choice is None:
            self.refuse(self.items[first], "it joins what no single condition parts")
            return {first}
        predicate = choice[0]
        joined = [first]
        for unit in order:
            if not isinstance(unit, str) or unit == first or self.items[unit].node.op not in loops.MERGE:
                continue
            other = self.guards.chosen_by(self.items[unit])
            is_same = other is not None and other[0] == predicate and self.guards.of(unit) <= within
            if is_same and f"{unit}:0" not in self.emit.bound and self._is_ready(unit, within):
                joined.append(unit)
        results: dict[str, list[OnnxValue]] = {}
        bodies: dict[str, Body] = {}
        picks = {name: self.guards.chosen_by(self.items[name]) for name in joined}
        for side, key in ((True, "then_branch"), (False, "else_branch")):
            wanted = [pick[1] if side else pick[2] for pick in picks.values() if pick is not None]
            body = Body(outer=self.emit.body)
            inside = within | {Guard(predicate, side)}
            names = self._on_branch(wanted, within)
            own, inner = loops.split(names, self.frames[first], self.items, self.frames)
            with self.emit.inside(body), self.emit.at(self.items[first].node):
                self.region(own, inner, inside)
                for endpoint in wanted:
                    body.outputs.append(self._own(body, self.emit.value(str(endpoint))))
            bodies[key], results[key] = body, body.outputs
        node = self.items[first].node
        with self.emit.at(node):
            condition = self.emit.value(str(predicate))
            shapes = [_common(a.shape, b.shape) for a, b in zip(*results.values(), strict=True)]
            types: list[DType | None] = [value.dtype for value in results["then_branch"]]
            made = self.emit.ops("If", [condition], len(joined), shapes, types, bodies)
        for name, value in zip(joined, made, strict=True):
            self.emit.bound[f"{name}:0"] = value
            ends = self.guards.chosen_by(self.items[name])
            assert ends is not None
            taken = self._place(name, ends[1])
            with self.emit.at(self.items[name].node):
                if self._reads_index(name):
                    index = [self.emit.const(np.int32(taken)), self.emit.const(np.int32(1 - taken))]
                    self.emit.bound[f"{name}:1"] = self.emit.op("Where", [condition, *index], [], index[0].dtype)
        return set(joined)

    def _reads_index(self, name: str) -> bool:
        consumers = self.prepared.graph.consumers.get(name, ())
        return Endpoint(name, 1) in self.prepared.outputs or any(
            canonical(ref) == f"{name}:1" for node in consumers for ref in node.data_inputs
        )

    def _place(self, name: str, endpoint: Endpoint) -> int:
        return list(self.items[name].data).index(endpoint)

    def _is_ready(self, merge: str, within: frozenset[Guard]) -> bool:
        """Whether all that a Merge's branches take from outside of them is there."""
        inside = set(self._on_branch(self.items[merge].data, within))
        for name in inside:
            for endpoint in self.items[name].data:
                if endpoint.node in inside or str(endpoint) in self.emit.bound:
                    continue
                if self.emit.known(str(endpoint)) is None and self._is_a_tensor(endpoint):
                    return False
        return True

    def _is_a_tensor(self, endpoint: Endpoint) -> bool:
        return self.prepared.inferred.dtype(str(endpoint)) is not RESOURCE

    def _on_branch(self, ends: Iterable[Endpoint], within: frozenset[Guard]) -> list[str]:
        """The nodes that compute these tensors and run under more guards than ``within``."""
        found: set[str] = set()
        waiting = [endpoint.node for endpoint in ends]
        while waiting:
            name = waiting.pop()
            if name in found or name not in self.items:
                continue
            item = self.items[name]
            inside_loop = self.frames[name].depth
            if self.guards.of(name) <= within and item.node.op not in ("Switch",) and not inside_loop:
                continue
            if self.guards.of(name) <= within and item.node.op != "Switch":
                continue
            if f"{name}:0" in self.emit.bound and item.node.op != "Switch":
                continue
            found.add(name)
            waiting.extend(endpoint.node for endpoint in item.data)
        return [name for name in self.items if name in found]

    def _own(self, body: Body, value: OnnxValue) -> OnnxValue:
        """A value that a body may give: one that it makes itself, and that it does not give already."""
        value = self.emit.made(value)
        if value.home is body and value not in body.inputs and value not in body.outputs:
            return value
        made = OnnxValue(self.emit.name(f"{value.name}_out"), value.dtype, value.shape, body)
        body.operations.append(OnnxOperation("Identity", [value], [made], {}, {}, "outputs"))
        return made

    # Loops

    def loop(self, loop: Loop) -> None:
        """Converts a loop of TensorFlow 1: the condition once before it, and at the end of every round."""
        members = {name: self.items[name] for name in loop.members}
        start = next(iter(members.values()))
        try:
            self._loop(loop, members)
        except UnsupportedInOnnx as refusal:
            exits = [item for item in members.values() if item.node.op in loops.EXIT]
            blamed = self.items.get(refusal.node, start)
            self.refuse(blamed, refusal.reason)
            self.reasons.setdefault(blamed.node.name, refusal.reason)
            for item in exits:
                if self.frames[item.node.name] == loop.frame.parent:
                    self.refuse(item, refusal.reason)

    def _loop(self, loop: Loop, members: Mapping[str, Item]) -> None:
        emit, frame = self.emit, loop.frame
        own, inner = loops.split(list(members), frame, self.items, self.frames)
        exits = [i for i in members.values() if i.node.op in loops.EXIT and self.frames[i.node.name] == frame.parent]
        own = [name for name in own if members[name] not in exits]
        heads: dict[str, tuple[Endpoint, Endpoint]] = {}
        for name in own:
            item = self.items[name]
            if item.node.op in loops.ENTER:
                outer = str(item.data[0])
                if self._is_a_tensor(item.data[0]):
                    with emit.at(item.node):
                        emit.bound[f"{name}:0"] = emit.value(outer)
            if loops.is_loop_head(item, self.items):
                first = next(e for e in item.data if self.items[e.node].node.op not in loops.NEXT)
                again = next(e for e in item.data if self.items[e.node].node.op in loops.NEXT)
                heads[name] = (first, self.items[again.node].data[0])
        conditions = [name for name in own if self.items[name].node.op == "LoopCond"]
        if len(conditions) != 1:
            raise UnsupportedInOnnx("the loop has no condition of its own", loop.members[0])
        condition = conditions[0]
        rest = [n for n in own if n not in heads and self.items[n].node.op not in (*loops.ENTER, *loops.NEXT)]
        gate, _ = self._needed_in(rest, [self.items[condition].data[0]], heads)
        carried = {n: pair for n, pair in heads.items() if self._is_a_tensor(Endpoint(n, 0))}
        if not gate.keys() <= set(rest):
            raise UnsupportedInOnnx("the loop's condition holds another loop", condition)
        with emit.at(self.items[condition].node):
            ends = recurrent(self.prepared, members, heads, emit)
        if ends is not None:
            for item in exits:
                left = self._left_variable(item, heads)
                if left in ends:
                    emit.bound[f"{item.node.name}:0"] = ends[left]
            return
        scanned = scanned_arrays(self.prepared, carried)
        initial = {name: emit.value(str(first)) for name, (first, _) in carried.items()}
        initial.update((name, self._begun(value)) for name, value in initial.items() if name not in scanned)
        with emit.rebound({f"{name}:0": value for name, value in initial.items()}):
            self.region(list(gate), [], frozenset())
            begins = emit.made(emit.value(str(self.items[condition].data[0])))
        body = Body(outer=emit.body)
        turn = OnnxValue(emit.name(f"{condition}/turn"), INT64, Shape(()), body)
        goes_on = OnnxValue(emit.name(f"{condition}/holds"), BOOL, Shape(()), body)
        body.inputs += [turn, goes_on]
        with emit.inside(body):
            for name, value in initial.items():
                if name in scanned:
                    continue
                shape = self._carried_shape(name, value)
                inside = OnnxValue(emit.name(f"{name}/before"), value.dtype, shape, body)
                body.inputs.append(inside)
                emit.bound[f"{name}:0"] = inside
            for name, array in scanned.items():
                emit.bound[f"{name}:0"] = initial[name]
                emit.scanned[array.write] = None
            nodes, reached = self._needed_in(rest, [last for _, last in heads.values()], heads)
            nested = [unit for unit in inner if not reached.isdisjoint(unit.members)]
            with emit.rebound({}):
                self.region([*nodes], nested, frozenset())
                following = {
                    n: emit.made(emit.value(str(last))) for n, (_, last) in carried.items() if n not in scanned
                }
                pieces = {name: emit.scanned.pop(array.write) for name, array in scanned.items()}
                for name, value in following.items():
                    following[name] = self._as_before(value, emit.bound[f"{name}:0"])
            with emit.rebound({f"{name}:0": value for name, value in following.items()}):
                self.region(list(gate), [], frozenset())
                again_holds = emit.made(emit.value(str(self.items[condition].data[0])))
            body.outputs.append(self._own(body, again_holds))
            for value in following.values():
                body.outputs.append(self._own(body, value))
            for name, piece in pieces.items():
                if piece is None:
                    raise UnsupportedInOnnx("an array is written in no round of its loop", name)
                body.outputs.append(self._own(body, emit.made(piece)))
        order = [*following, *pieces]
        shapes: list[Shape | Sequence[int | None] | None] = [
            _common(self._carried_shape(n, initial[n]), value.shape) for n, value in following.items()
        ]
        types: list[DType | None] = [value.dtype for value in following.values()]
        for piece in pieces.values():
            assert piece is not None
            shapes.append(None if piece.shape.dims is None else Shape([None, *piece.shape]))
            types.append(piece.dtype)
        with emit.at(self.items[condition].node):
            operands: list[OnnxValue | None] = [None, begins, *(initial[name] for name in following)]
            made = dict(zip(order, emit.ops("Loop", operands, len(order), shapes, types, {"body": body}), strict=True))
        for item in exits:
            name = self._left_variable(item, heads)
            if name in made:
                emit.bound[f"{item.node.name}:0"] = made[name]

    def _as_before(self, value: OnnxValue, before: OnnxValue) -> OnnxValue:
        return value if value.dtype is before.dtype else self.emit.cast(value, before.dtype)

    def _carried_shape(self, name: str, initial: OnnxValue) -> Shape:
        """The shape that a loop's variable has in every round."""
        dtype = self.prepared.inferred.dtype(f"{name}:0")
        if dtype is not None and plain_type(dtype) is initial.dtype and not self.emit.is_array(initial):
            return self.prepared.inferred.shape(f"{name}:0")
        return initial.shape  # an array keeps its size

    def _begun(self, value: OnnxValue) -> OnnxValue:
        """What a loop's variable begins as."""
        if not value.is_made and value.first is None:
            raise UnsupportedInOnnx("the shape of the array's elements is not known; state the shapes of the inputs")
        return self.emit.made(value)

    def _left_variable(self, item: Item, heads: Collection[str]) -> str:
        """The variable whose last value an Exit gives."""
        source = item.data[0].node
        for _ in range(len(self.items)):
            if source in heads:
                return source
            found = self.items[source]
            if found.node.op not in ("Switch", "Identity"):
                break
            source = found.data[0].node
        raise UnsupportedInOnnx("the loop gives something that is none of its variables", item.node.name)

    def _needed_in(
        self, names: Sequence[str], ends: Sequence[Endpoint], heads: Collection[str]
    ) -> tuple[dict[str, None], set[str]]:
        """Those of these nodes that compute the tensors ``ends``, in order; and all that do, in inner loops too."""
        seen: set[str] = set()
        waiting = [endpoint.node for endpoint in ends]
        while waiting:
            name = waiting.pop()
            if name in seen or name in heads or name not in self.items:
                continue
            seen.add(name)
            waiting.extend(endpoint.node for endpoint in self.items[name].data)
        return {name: None for name in names if name in seen}, seen


def _common(one: Shape, other: Shape) -> Shape:
    if one.dims is None or other.dims is None or len(one) != len(other):
        return Shape(None)
    return Shape([a if a == b else None for a, b in zip(one, other, strict=True)])
