"""Loops that stay loops become WHILE, and branches that the input decides IF, which run programs of their own.

    while i < 600:  h = Tanh(x[i] @ w + h);  y[i] = h;  i = i + 1

    h, y, i = WHILE(h, y, i, x)
        condition:  LESS(i, 600)
        round:      TANH(ADD(FULLY_CONNECTED(GATHER(x, i), w), h)), DYNAMIC_UPDATE_SLICE(y, ...), ADD(i, 1), x

    z = x @ w if x[0] > 0 else x + 1

    z = IF(GREATER(x[0], 0), x)
        then:       FULLY_CONNECTED(x, w)
        else:       ADD(x, 1)

A body sees nothing around it but constants: what a round takes from outside goes round with the variables, and what a
branch takes is an operand. Source: the kernels WHILE and IF of the LiteRT project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL, INT32, RESOURCE, VARIANT
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ENTER, EXIT, MERGE, PASSES, SWITCH, ops_with
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.part_lowering import is_static, lower_one
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.loop_arrays import LOWERINGS
from pocketgraph.runtime.engines.compilation_units import Plan, ordered_units
from pocketgraph.runtime.engines.frames import ROOT, Loop, LoopFrame, is_loop_head, split
from pocketgraph.runtime.engines.needed import Item, behind
from pocketgraph.runtime.unrolling.branch_conditions import Guard, Guards
from pocketgraph.runtime.unrolling.constant_trip_counts import heads_of

CONTROL_FLOW = ops_with("control_flow")
Fallback = Callable[[Emit, Node], None] | None


class LoopLowering:
    """Emits the nodes of a graph that has loops or branches.

    Args:
        plan: the graph's needed nodes, with the loops that they are in.
        fallback: emits nodes that LiteRT has no builtin operator for, as for ``part_lowering.lowered``.
    """

    def __init__(self, plan: Plan, fallback: Fallback = None) -> None:
        self.plan = plan
        self.items = plan.items
        self.numbers = {name: number for number, name in enumerate(plan.items)}
        self.fallback = fallback
        self.guards = Guards(plan.items)

    def emit_all(self, emit: Emit, outputs: Iterable[Endpoint]) -> None:
        """Emits what computes these tensors.

        Raises:
            Unsupported: LiteRT cannot run some node, a loop is none that WHILE can be, or a branch none that IF can be.
        """
        self._region(emit, outputs, ROOT, frozenset())

    def _region(self, emit: Emit, ends: Iterable[Endpoint], frame: LoopFrame, within: frozenset[Guard]) -> None:
        """Emits what computes tensors of one frame under the guards ``within``; what has more is of some branch."""
        own, inner = split(self._needed(emit, ends, frame), frame, self.items, self.plan.frames)
        joins = [name for name in own if self._is_join(name)]
        for unit, _ in ordered_units(own, inner, self.plan):
            if isinstance(unit, Loop):
                is_there = all(self._is_there(emit, item.node.name) for item in self._exits(unit))
                if self.guards.of_loop(unit, self.plan.frames) <= within and not is_there:
                    self._loop(emit, unit, within)
                continue
            assert isinstance(unit, str)
            if not self.guards.of(unit) <= within or (joins and self._is_there(emit, unit)):
                continue
            if unit not in joins:
                self._node(emit, self.items[unit])
            elif not self._is_handle(emit, Endpoint(unit, 0)) and not is_static(f"{unit}:0", emit.statics):
                self._branch(emit, unit, joins, frame, within)

    def _is_there(self, emit: Emit, name: str) -> bool:
        """Whether all is emitted that others take of a node."""
        return all(f"{name}:{port}" in emit.values for port in self.plan.used_ports.get(name, (0,)))

    def _exits(self, loop: Loop) -> list[Item]:
        """What a loop's last values leave by."""
        items = [self.items[name] for name in loop.members if self.plan.frames[name] == loop.frame.parent]
        return [item for item in items if item.node.op in EXIT]

    def _is_join(self, name: str) -> bool:
        """Whether a node is a Merge behind branches that are not decided around it."""
        is_merge = self.items[name].node.op in MERGE and not is_loop_head(self.items[name], self.items)
        return is_merge and self.guards.only_input(name) is None

    def _needed(
        self, emit: Emit, ends: Iterable[Endpoint], frame: LoopFrame, until: Set[str] = frozenset()
    ) -> list[str]:
        """The nodes that compute these tensors and are not emitted yet, of the frame and the loops in it, in order.

        Once one of ``until`` is among them, it and some others."""
        found: set[str] = set()
        waiting = [endpoint for endpoint in ends if str(endpoint) not in emit.values]
        while waiting:
            name = waiting.pop().node
            if name in found or name not in self.items:
                continue
            item = self.items[name]
            if item.node.op in ENTER and self.plan.frames[name] == frame:
                continue  # it is bound, or a handle
            found.add(name)
            if name in until:
                break
            taken = item.data[:1] if self._is_of_loop(item) and self.plan.frames[name] == frame else item.data
            if (only := self.guards.only_input(name)) is not None:
                taken = (only,)
            elif self._is_join(name):
                taken = (*taken, self._choice(name)[0])
            waiting += [endpoint for endpoint in taken if str(endpoint) not in emit.values]
        return sorted(found, key=self.numbers.__getitem__)

    def _is_of_loop(self, item: Item) -> bool:
        """Whether a node is a Switch that lets a variable into the next round, or out."""
        source = self.items.get(item.data[1].node) if item.node.op in SWITCH else None
        return source is not None and source.node.op == "LoopCond"

    def _node(self, emit: Emit, item: Item) -> None:
        node = item.node
        if self._is_handle(emit, Endpoint(node.name, 0)) and node.op not in LOWERINGS:
            return
        if (only := self.guards.only_input(node.name)) is not None:
            emit.bind(f"{node.name}:0", emit.value(str(only)))
            emit.bind(f"{node.name}:1", emit.const(np.int32(item.data.index(only))))
        elif self._is_of_loop(item):
            emit.bind(f"{node.name}:1", emit.value(str(item.data[0])))
        elif node.op in SWITCH:
            for port in (0, 1):
                emit.bind(f"{node.name}:{port}", emit.value(str(item.data[0])))
        elif node.op in PASSES and (known := emit.values.get(str(item.data[0]))) is not None:
            emit.bind(f"{node.name}:0", known)  # of an array too, whose type in the graph is another one
        elif not is_static(f"{node.name}:0", emit.statics):
            lower_one(emit, node, self.fallback, LOWERINGS.get(node.op))

    def _is_handle(self, emit: Emit, endpoint: Endpoint) -> bool:
        """Whether a tensor is a TensorArray's handle; its content is the flow."""
        return emit.inferred.dtype(str(endpoint)) is RESOURCE

    def _choice(self, name: str) -> tuple[Endpoint, Endpoint, Endpoint]:
        """What a Merge chooses by, and what it takes where that is true and where it is false."""
        found = self.guards.chosen_by(self.items[name])
        if found is None:
            raise Unsupported("it joins what no single condition parts", name)
        return found

    def _branch(self, emit: Emit, first: str, joins: Sequence[str], frame: LoopFrame, within: frozenset[Guard]) -> None:
        """Emits an IF, and binds what a Merge gives, and those of ``joins`` that choose by the same predicate."""
        predicate = self._choice(first)[0]
        joined, before = [first], {first}  # before: what the others must not depend on
        for name in joins:
            if name in joined or f"{name}:0" in emit.values or self._is_handle(emit, Endpoint(name, 0)):
                continue
            if self.guards.of(name) <= within and self._choice(name)[0] == predicate:
                needed = self._needed(emit, self.items[name].data, frame, before)
                if name not in needed and before.isdisjoint(needed):
                    around = (each for each in needed if self.plan.frames[each] == frame)
                    ready = [Endpoint(each, 0) for each in around if self.guards.of(each) <= within]
                    self._region(emit, ready, frame, within)
                    joined.append(name)
                before.add(name)
        sides: list[Program] = []
        for side in (True, False):
            ends = [self._choice(name)[1 if side else 2] for name in joined]
            with emit.inside(emit.values) as operations:
                self._region(emit, ends, frame, within | {Guard(predicate, side)})
                sides.append(Program([], [emit.value(str(end)) for end in ends], operations))
        inputs = _captured(sides)
        outputs = []
        for name, one, other in zip(joined, sides[0].outputs, sides[1].outputs, strict=True):
            if (one.dtype, one.shape) != (other.dtype, other.shape):
                raise Unsupported(f"one branch gives {one}, and the other {other}", name)
            outputs.append(Value(f"{name}:0", one.dtype, one.shape))
            emit.bind(f"{name}:0", outputs[-1])
        condition = emit.value(str(predicate))
        if condition.dtype is not BOOL or condition.size != 1:
            raise Unsupported("the condition of a branch is one bool", first)
        emit.operations.append(Operation("IF", [condition, *inputs], outputs, nodes=(first,), bodies=(*sides,)))
        for name in joined:
            if 1 in self.plan.used_ports.get(name, ()):
                self._chosen(emit, name, condition)

    def _chosen(self, emit: Emit, name: str, condition: Value) -> None:
        """Emits which of its inputs a Merge takes."""
        at = self.items[name].data.index(self._choice(name)[1])
        numbers = [emit.const(np.int32(at)), emit.const(np.int32(1 - at))]
        index = Value(f"{name}:1", INT32, ())
        emit.operations.append(Operation("SELECT_V2", [condition, *numbers], [index], nodes=(name,)))
        emit.bind(index.name, index)

    def _loop(self, emit: Emit, loop: Loop, within: frozenset[Guard]) -> None:
        """Emits a WHILE, and binds what the loop's Exits give."""
        frame, frames = loop.frame, self.plan.frames
        own = {name: self.items[name] for name in loop.members if frames[name] == frame}
        conditions = [item for item in own.values() if item.node.op == "LoopCond"]
        if len(conditions) != 1:
            raise Unsupported("the loop has no condition of its own", loop.members[0])
        condition = conditions[0]
        heads = heads_of(self.items, own)
        entered = {
            name: emit.value(str(item.data[0]))
            for name, item in own.items()
            if item.node.op in ENTER and not self._is_handle(emit, item.data[0])
        }
        carried = {name: entered[first.node] for name, (first, _) in heads.items() if first.node in entered}
        bound = {f"{name}:0": Value(f"{name}:0", value.dtype, value.shape) for name, value in carried.items()}
        inputs, given = list(bound.values()), list(carried.values())
        starts = {first.node for first, _ in heads.values()}
        around: dict[Value, Value] = {}
        for name, value in entered.items():
            if name not in starts and value.constant is None and value not in around:
                around[value] = Value(f"{name}:0", value.dtype, value.shape)
            if name not in starts:
                bound[f"{name}:0"] = around.get(value, value)
        inputs += around.values()
        given += around.keys()
        goes_on = condition.data[0]
        with emit.inside(bound) as operations:
            self._region(emit, [goes_on], frame, within)
            test = Program(inputs, [emit.value(str(goes_on))], operations)
        if test.outputs[0].dtype is not BOOL or test.outputs[0].size != 1:
            raise Unsupported("the condition of a loop is one bool", condition.node.name)
        lasts = [last for name, (_, last) in heads.items() if name in carried]
        with emit.inside(bound) as operations:
            self._region(emit, lasts, frame, within)
            following = [emit.value(str(last)) for last in lasts]
            turn = Program(inputs, [*following, *around.values()], operations)
        for before, after in zip(inputs, turn.outputs, strict=True):
            if (before.dtype, before.shape) != (after.dtype, after.shape):
                raise Unsupported(f"a loop's variable is {before} at first, and then {after}", condition.node.name)
        outputs = [Value(f"{name}/last", value.dtype, value.shape) for name, value in carried.items()]
        ends = dict(zip(carried, outputs, strict=True))
        outputs += [Value(f"{value.name}/last", value.dtype, value.shape) for value in around.values()]
        emit.operations.append(Operation("WHILE", [*given], outputs, nodes=(condition.node.name,), bodies=(test, turn)))
        for item in self._exits(loop):
            name = behind(self.items, item.data[0]).node
            if name in ends:
                emit.bind(f"{item.node.name}:0", ends[name])
            elif not self._is_handle(emit, item.data[0]):
                raise Unsupported("the loop gives something that is none of its variables", item.node.name)


def _captured(sides: Sequence[Program]) -> list[Value]:
    """What branches read that they do not make: each becomes an input of all of them."""
    taken: dict[Value, Value] = {}
    for program in sides:
        made = program.producers()
        for value in [*(value for operation in program.operations for value in operation.inputs), *program.outputs]:
            if value is not None and value.constant is None and value not in made and value not in taken:
                taken[value] = Value(value.name, value.dtype, value.shape)
    for program in sides:
        program.inputs = [*taken.values()]
        program.substitute(taken)
    return [*taken]


def is_of_loop(node: Node, inferred: Inferred) -> bool:
    """Whether a node has no meaning by itself, as what makes up loops, and fills and reads arrays of tensors."""
    return node.op in CONTROL_FLOW or node.op in LOWERINGS or inferred.dtype(f"{node.name}:0") in (RESOURCE, VARIANT)
