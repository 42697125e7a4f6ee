"""The loop that carries gradients back through a loop: as many rounds, in reverse, with what each round computed.

As tf.gradients has it: a counter in the loop says how many rounds it makes; values that gradients need are pushed onto
stacks in each round (StackPushV2) and popped in the rounds backwards (StackPopV2); gradients of values that stay the
same add up. Source: tensorflow/python/ops/control_flow_state.py describes these parts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from pocketgraph.differentiation.control_flow.while_loops import LoopVariable, WhileLoop
from pocketgraph.differentiation.node_builder import GraphBuilder
from pocketgraph.errors import GraphError
from pocketgraph.graph import AttrValue, DType, Node, canonical, const, node_name, parse_ref
from pocketgraph.graph.dtype import INT32, RESOURCE
from pocketgraph.graph.groups import closure
from pocketgraph.passes.control_flow_lowering import PARALLEL


class LoopGradient:
    """The loop backwards, while it is built."""

    def __init__(self, builder: GraphBuilder, loop: WhileLoop) -> None:
        self.builder, self.loop = builder, loop
        self.own: set[str] = set()
        """The nodes of the loop backwards."""
        self.around = builder.loop if isinstance(builder.loop, LoopGradient) else None
        """The loop that goes back through the loop around this one."""
        self.forward: set[str] = set()
        """The nodes that were added to the rounds of the loop itself."""
        self._known: dict[str, str] = {}
        self._pushed: list[str] = []
        self.popped: list[str] = []
        with builder.scope("loop") as scope:
            self.frame = scope.rstrip("/")
            self._scope = scope
        self._count_forward()
        self._count_backward()

    # The two counters

    def _count_forward(self) -> None:
        """How many rounds the loop makes; its sum waits for all that a round pushes, so that stacks keep the order."""
        names = {key: self._name(f"f_{key}") for key in ("merge", "switch", "round", "one", "add", "next", "count")}
        zero = self._root_const(0, "f_zero")
        enter = self._put("Enter", [zero], "f_enter", T=INT32, frame_name=self.loop.frame.encode(),
                          is_constant=False, parallel_iterations=PARALLEL)  # fmt: skip
        self._put("Merge", [enter, names["next"]], names["merge"], T=INT32, N=2)
        self._put("Switch", [names["merge"], self.loop.condition], names["switch"], T=INT32)
        self.round = self._put("Identity", [f"{names['switch']}:1"], names["round"], T=INT32)
        self.builder.put(_const(names["one"], 1, [f"^{names['round']}"]))
        self._put("NextIteration", [names["add"]], names["next"], T=INT32)
        self._count = self._outside(self._put("Exit", [names["switch"]], names["count"], T=INT32))
        self._forward = names

    def _count_backward(self) -> None:
        names = {key: self._name(f"b_{key}") for key in ("merge", "switch", "sub", "next", "one", "last", "pivot")}
        enter = self._enter(self._count, INT32, constant=False)
        self._own("Merge", [enter, names["next"]], names["merge"], T=INT32, N=2)
        self.own.add(self.builder.put(_const(names["last"], 1, [f"^{names['merge']}"])))
        more = self._own("GreaterEqual", [names["merge"], names["last"]], "b_more", T=INT32)
        self._more = self._own("LoopCond", [more], "b_cond")
        self._own("Switch", [names["merge"], self._more], names["switch"], T=INT32)
        self.pivot = self._own("Identity", [f"{names['switch']}:1"], names["pivot"], T=INT32)
        self.own.add(self.builder.put(_const(names["one"], 1, [f"^{names['pivot']}"])))
        self._own("NextIteration", [names["sub"]], names["next"], T=INT32)
        self._backward = names

    def finish(self) -> None:
        """Adds what waits for all pushes and pops; the next round of a loop around it waits for its last one."""
        if self.around is not None:
            done = self._put("Exit", [self._backward["switch"]], "b_done", T=INT32)
            self.around.own.add(done)
            self.around.popped.append(done)
        forward, backward = self._forward, self._backward
        inputs = [f"{forward['switch']}:1", forward["one"], *(f"^{name}" for name in self._pushed)]
        self._put("Add", inputs, forward["add"], T=INT32)
        inputs = [f"{backward['switch']}:1", backward["one"], *(f"^{name}" for name in self.popped)]
        self._own("Sub", inputs, backward["sub"], T=INT32)

    # What goes round backwards

    def round_trip(self, first: str, dtype: DType) -> tuple[str, str, Callable[[str], None]]:
        """A value that goes round backwards.

        Args:
            first: what it begins with, outside of the loop.
            dtype: its type.

        Returns:
            The value in a round, what is left at the end, and what to call with the value of the next round.
        """
        merge, step = self._name("grad_merge"), self._name("grad_next")
        enter = self._enter(first, dtype, constant=False)
        self._own("Merge", [enter, step], merge, T=dtype, N=2)
        switch = self._own("Switch", [merge, self._more], "grad_switch", T=dtype)
        left = self._put("Exit", [switch], "grad_exit", T=dtype)
        if self.around is not None:
            self.around.own.add(left)

        def again(value: str) -> None:
            self._own("NextIteration", [value], step, T=dtype)

        return f"{switch}:1", left, again

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Nodes that are added are nodes of the loop backwards."""
        before = self.builder.loop
        self.builder.loop = self
        try:
            yield
        finally:
            self.builder.loop = before

    # What comes from outside of it

    def resolved(self, ref: str) -> str:
        """What stands for a tensor in the loop backwards.

        Raises:
            GraphError: nothing does.
        """
        name, port, _ = parse_ref(ref)
        if name in self.own:
            return ref
        tensor = canonical(ref)
        if tensor not in self._known:
            self._known[tensor] = self._brought(tensor, name, port)
        return self._known[tensor]

    def _brought(self, ref: str, name: str, port: int) -> str:
        loop, builder = self.loop, self.builder
        if name in self.forward:
            return self._popped_value(ref, ())
        node = builder.graph.nodes.get(name)
        if node is None or name not in loop.members or any(name == e.name for v in loop.variables for e in v.exits):
            return self._enter(ref, self._held_as(ref), constant=True)
        if node.op == "Const":
            copied = Node(self._name(node.name.rpartition("/")[2]), "Const", [f"^{self.pivot}"], node.attrs)
            self.own.add(builder.put(copied))
            return copied.name
        if any(name == enter.name for enter in loop.constants):
            source = node.data_inputs[0]
            return self._enter(source, self._held_as(source), constant=True)
        if name in loop.fixed:
            inputs = [self.resolved(given) for given in node.data_inputs]
            copied = Node(self._name(node.name.rpartition("/")[2]), node.op, inputs, node.attrs, node.device)
            self.own.add(builder.put(copied))
            return f"{copied.name}:{port}" if port else copied.name
        for v in loop.variables:
            if name == v.merge.name and port == 0:
                return self._popped_value(v.begins, ())
        if name not in loop.body and not any(ref == v.begins for v in loop.variables):
            raise GraphError(f"'{name}' decides whether the loop goes on, and a gradient needs its value")
        return self._popped_value(ref, loop.path(name) if name in loop.body else ())

    def _held_as(self, ref: str) -> DType:
        return self.builder.dtype(ref).base

    def _popped_value(self, ref: str, path: Sequence[tuple[str, int]]) -> str:
        """Pushes a value in the loop, and pops it."""
        if self.loop.is_branch(node_name(ref)):
            node = self.builder.graph.producer(ref)
            path = (*path, (canonical(node.data_inputs[1]), parse_ref(ref).port))
        dtype = self._held_as(ref)
        size = self.builder.put(_const(self._name("stack_size"), -1, []))
        stack = self._put("StackV2", [size], "stack", elem_type=dtype, stack_name=b"")
        handle = self._entered(stack)
        value = self._alive(ref, dtype, path)
        push = [handle, value, f"^{self.round}"]
        self._pushed.append(self._put("StackPushV2", push, "push", T=dtype, swap_memory=False))
        entered = self._enter(stack, RESOURCE, constant=True)
        pop = self._own("StackPopV2", [entered, f"^{self.pivot}"], "pop", elem_type=dtype)
        self.popped.append(pop)
        found = pop
        for decides, side in path:  # in the branches backwards only, as the value was
            switch = self._own("Switch", [found, self.resolved(decides)], "pop_switch", T=dtype)
            found = f"{switch}:1" if side else switch
        return found

    def _entered(self, handle: str) -> str:
        """The handle of a stack in the loop itself.

        Of a loop inside of another one all rounds push onto one stack: they are popped in the reverse of their order.
        """
        source = handle if self.around is None else self.around._entered(handle)
        return self._put("Enter", [source], "stack_enter", T=RESOURCE, frame_name=self.loop.frame.encode(),
                         is_constant=True, parallel_iterations=PARALLEL)  # fmt: skip

    def _alive(self, ref: str, dtype: DType, path: Sequence[tuple[str, int]]) -> str:
        """The value, or where its branch was not taken some other one, so that each round pushes."""
        found = ref
        for depth in range(len(path), 0, -1):
            name = self._name("nothing")
            self.builder.put(Node(name, "Const", [f"^{self.round}"], const(name, dtype.numpy.type(0), dtype).attrs))
            other = name
            for at, (decides, side) in enumerate(path[:depth]):
                switch = self._put("Switch", [other, decides], "nothing_switch", T=dtype)
                taken = side if at < depth - 1 else 1 - side
                other = f"{switch}:1" if taken else switch
            found = self._put("Merge", [found, other], "alive", T=dtype, N=2)
        return found

    def _enter(self, ref: str, dtype: DType, *, constant: bool) -> str:
        if self.around is not None:
            ref = self.around.resolved(ref)
        return self._own("Enter", [ref], "b_enter", T=dtype, frame_name=self.frame.encode(),
                         is_constant=constant, parallel_iterations=PARALLEL)  # fmt: skip

    # Nodes as they are

    def _name(self, name: str) -> str:
        return self.builder.unique_in(self._scope, name)

    def _put(self, op: str, inputs: Iterable[str], name: str, **attrs: AttrValue) -> str:
        name = name if "/" in name else self._name(name)
        return self.builder.put(Node(name, op, list(inputs), attrs, self.builder.device))

    def _own(self, op: str, inputs: Iterable[str], name: str, **attrs: AttrValue) -> str:
        made = self._put(op, inputs, name, **attrs)
        self.own.add(made)
        return made

    def _root_const(self, value: int, name: str) -> str:
        control = [] if self.around is None else [f"^{self.around.round}"]
        return self._outside(self.builder.put(_const(self._name(name), value, control)))

    def _outside(self, name: str) -> str:
        """Notes a node that was added to what is around the loop."""
        if self.around is not None:
            self.around.forward.add(name)
        return name


def _const(name: str, value: int, control: list[str]) -> Node:
    return Node(name, "Const", control, const(name, value, INT32).attrs)


def active(loop: WhileLoop, way: Collection[str], ends: Iterable[LoopVariable]) -> list[LoopVariable]:
    """The variables of a loop whose gradients depend on those of others at its end.

    Args:
        way: the nodes of its body that gradients flow through.
        ends: the variables that have gradients behind the loop.
    """
    found = list(ends)
    graph = loop.graph
    passed = {name for inner in loop.inner for name in inner.members}

    def before(ref: str) -> Iterable[str]:
        name = node_name(ref)
        return map(canonical, graph[name].data_inputs) if name in way or name in passed else ()

    for v in found:  # grows
        read = set(closure([v.ends], before))
        found += [other for other in loop.variables if other.begins in read and other not in found]
    return [v for v in loop.variables if v in found]
