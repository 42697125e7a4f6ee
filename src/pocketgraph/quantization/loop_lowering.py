"""Loops that stay loops become WHILE, whose condition and whose round are programs of their own.

    while i < 600:  h = Tanh(x[i] @ w + h);  y[i] = h;  i = i + 1

    h, y, i = WHILE(h, y, i, x)
        condition:  LESS(i, 600)
        round:      TANH(ADD(FULLY_CONNECTED(GATHER(x, i), w), h)), DYNAMIC_UPDATE_SLICE(y, ...), ADD(i, 1), x

A body sees nothing around it but constants: what a round takes from outside goes round with the variables. Source: the
kernel WHILE of the LiteRT project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL, RESOURCE, VARIANT
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ENTER, EXIT, MERGE, PASSES, SWITCH, ops_with
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.part_lowering import is_static, lower_one
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.loop_arrays import LOWERINGS
from pocketgraph.runtime.engines.compilation_units import Plan, ordered_units
from pocketgraph.runtime.engines.frames import ROOT, Loop, LoopFrame, split
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.unrolling.constant_trip_counts import behind, heads_of

CONTROL_FLOW = ops_with("control_flow")
Fallback = Callable[[Emit, Node], None] | None


class LoopLowering:
    """Emits the nodes of a graph that has loops.

    Args:
        plan: the graph's needed nodes, with the loops that they are in.
        fallback: emits nodes that LiteRT has no builtin operator for, as for ``part_lowering.lowered``.
    """

    def __init__(self, plan: Plan, fallback: Fallback = None) -> None:
        self.plan = plan
        self.items = plan.items
        self.fallback = fallback

    def emit_all(self, emit: Emit, outputs: Iterable[Endpoint]) -> None:
        """Emits what computes these tensors.

        Raises:
            Unsupported: LiteRT cannot run some node, or a loop is none that WHILE can be.
        """
        self._region(emit, outputs, ROOT)

    def _region(self, emit: Emit, ends: Iterable[Endpoint], frame: LoopFrame) -> None:
        """Emits what computes tensors of one frame."""
        own, inner = split(self._needed(emit, ends, frame), frame, self.items, self.plan.frames)
        for unit, _ in ordered_units(own, inner, self.plan):
            if isinstance(unit, Loop):
                self._loop(emit, unit)
            else:
                assert isinstance(unit, str)
                self._node(emit, self.items[unit])

    def _needed(self, emit: Emit, ends: Iterable[Endpoint], frame: LoopFrame) -> list[str]:
        """The nodes that compute these tensors and are not emitted yet, of the frame and the loops in it."""
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
            taken = item.data[:1] if self._is_of_loop(item) and self.plan.frames[name] == frame else item.data
            waiting += [endpoint for endpoint in taken if str(endpoint) not in emit.values]
        return [name for name in self.items if name in found]

    def _is_of_loop(self, item: Item) -> bool:
        """Whether a node is a Switch that lets a variable into the next round, or out."""
        source = self.items.get(item.data[1].node) if item.node.op in SWITCH else None
        return source is not None and source.node.op == "LoopCond"

    def _node(self, emit: Emit, item: Item) -> None:
        node = item.node
        if self._is_handle(emit, Endpoint(node.name, 0)) and node.op not in LOWERINGS:
            return
        if self._is_of_loop(item):
            emit.bind(f"{node.name}:1", emit.value(str(item.data[0])))
        elif node.op in MERGE or node.op in SWITCH:
            raise Unsupported("a branch that the input decides has no form in LiteRT", node.name)
        elif node.op in PASSES and (known := emit.values.get(str(item.data[0]))) is not None:
            emit.bind(f"{node.name}:0", known)  # of an array too, whose type in the graph is another one
        elif not is_static(f"{node.name}:0", emit.statics):
            lower_one(emit, node, self.fallback, LOWERINGS.get(node.op))

    def _is_handle(self, emit: Emit, endpoint: Endpoint) -> bool:
        """Whether a tensor is a TensorArray's handle; its content is the flow."""
        return emit.inferred.dtype(str(endpoint)) is RESOURCE

    def _loop(self, emit: Emit, loop: Loop) -> None:
        """Emits a WHILE, and binds what the loop's Exits give."""
        frame, frames = loop.frame, self.plan.frames
        own = {name: self.items[name] for name in loop.members if frames[name] == frame}
        exits = [item for name in loop.members for item in [self.items[name]]
                 if item.node.op in EXIT and frames[name] == frame.parent]  # fmt: skip
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
        with self._inside(emit, bound) as operations:
            self._region(emit, [goes_on], frame)
            test = Program(inputs, [emit.value(str(goes_on))], operations)
        if test.outputs[0].dtype is not BOOL or test.outputs[0].size != 1:
            raise Unsupported("the condition of a loop is one bool", condition.node.name)
        lasts = [last for name, (_, last) in heads.items() if name in carried]
        with self._inside(emit, bound) as operations:
            self._region(emit, lasts, frame)
            following = [emit.value(str(last)) for last in lasts]
            turn = Program(inputs, [*following, *around.values()], operations)
        for before, after in zip(inputs, turn.outputs, strict=True):
            if (before.dtype, before.shape) != (after.dtype, after.shape):
                raise Unsupported(f"a loop's variable is {before} at first, and then {after}", condition.node.name)
        outputs = [Value(f"{name}/last", value.dtype, value.shape) for name, value in carried.items()]
        ends = dict(zip(carried, outputs, strict=True))
        outputs += [Value(f"{value.name}/last", value.dtype, value.shape) for value in around.values()]
        emit.operations.append(Operation("WHILE", [*given], outputs, nodes=(condition.node.name,), bodies=(test, turn)))
        for item in exits:
            name = behind(self.items, item.data[0]).node
            if name in ends:
                emit.bind(f"{item.node.name}:0", ends[name])
            elif not self._is_handle(emit, item.data[0]):
                raise Unsupported("the loop gives something that is none of its variables", item.node.name)

    @contextmanager
    def _inside(self, emit: Emit, bound: Mapping[str, Value]) -> Iterator[list[Operation]]:
        """Collects operations in a list of their own, which see only what is ``bound`` and constants."""
        outside = emit.operations, emit.values
        emit.operations, emit.values = [], dict(bound)
        try:
            yield emit.operations
        finally:
            emit.operations, emit.values = outside


def is_of_loop(node: Node, inferred: Inferred) -> bool:
    """Whether a node has no meaning by itself, as what makes up loops, and fills and reads arrays of tensors."""
    return node.op in CONTROL_FLOW or node.op in LOWERINGS or inferred.dtype(f"{node.name}:0") in (RESOURCE, VARIANT)
