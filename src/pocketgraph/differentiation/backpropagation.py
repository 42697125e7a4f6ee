"""Walks a graph backwards from ys to xs, once a node, and adds what carries the gradients.

The chain rule in reverse, as TensorFlow's tf.gradients applies it:
https://www.tensorflow.org/api_docs/python/tf/compat/v1/gradients
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from pocketgraph.differentiation.control_flow.loop_gradient import LoopGradient, active
from pocketgraph.differentiation.control_flow.while_loops import LoopVariable, WhileLoop, find_loops
from pocketgraph.differentiation.gradient_table import GRADIENTS, HOLDS_FOR_COMPLEX_NUMBERS, no_gradient
from pocketgraph.differentiation.node_builder import GraphBuilder
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.errors import GraphError, did_you_mean
from pocketgraph.graph import DType, Graph, Node, canonical, node_name, opdefs, parse_ref
from pocketgraph.graph.dtype import RESOURCE, VARIANT
from pocketgraph.graph.order import reachable
from pocketgraph.kernels.shapes.infer import postorder
from pocketgraph.pages.quantities import listed


class GradientTarget(NamedTuple):
    """A tensor that is differentiated.

    Attributes:
        ref: its name.
        gradient: the gradient that it begins with; "" for ones.
    """

    ref: str
    gradient: str = ""


def carries(dtype: DType | None) -> bool:
    """Whether gradients flow through tensors of this type.

    Handles of variables stand for their values, and variants are lists of tensors.
    """
    return dtype is not None and (dtype.is_floating or dtype in (RESOURCE, VARIANT))


def passes(dtype: DType | None) -> bool:
    """Whether gradients pass tensors of this type between an x and a y: also complex ones."""
    return carries(dtype) or (dtype is not None and dtype.is_complex)


def checked_ref(graph: Graph, ref: str) -> str:
    """The canonical name of a tensor of the graph.

    Raises:
        GraphError: there is no such tensor.
    """
    name, port, control = parse_ref(ref)
    node = graph.nodes.get(name)
    if node is None or control:
        raise GraphError(f"the graph has no tensor '{ref}'", hint=did_you_mean(name, graph.nodes))
    dtypes = opdefs.known_output_dtypes(node)
    if dtypes is not None and port >= len(dtypes):
        raise GraphError(f"{node.op} has {len(dtypes)} outputs, so that there is no '{ref}'", where=f"node '{name}'")
    return canonical(ref)


def backpropagate(
    builder: GraphBuilder, ys: Sequence[GradientTarget], xs: Iterable[str], stop: Collection[str] = ()
) -> list[str | None]:
    """Adds the nodes that compute the gradients of the sum of all ys.

    Args:
        builder: where nodes are added, in its present scope.
        ys: what is differentiated.
        xs: by which tensors, by canonical name.
        stop: tensors that count as constants: nothing flows on behind them, and an x among them has its gradient.

    Returns:
        The gradient by each x, None where no y depends on it.

    Raises:
        GraphError: ops on the way have no gradient; all of them are named.
    """
    wanted = [canonical(x) for x in xs]
    walk = _WayBack(builder, [y.ref for y in ys], wanted, frozenset(map(canonical, stop)))
    arriving: dict[str, list[str]] = {}
    for number, y in enumerate(ys):
        first = y.gradient or _ones(builder, y.ref, number)
        arriving.setdefault(canonical(y.ref), []).append(first)
    if walk.problems:
        raise _no_gradient(walk.problems)
    walk.back(arriving)
    if walk.problems:
        raise _no_gradient(walk.problems)
    return [_summed(builder, arriving, x) for x in wanted]


def _ones(builder: GraphBuilder, ref: str, number: int) -> str:
    """The gradient of y by itself."""
    static = builder.static_shape(ref)
    dtype = builder.dtype(ref).base
    if static.is_known:
        shape = builder.const(static.known, name="Shape")
    else:
        shape = builder.add("Shape", ref)
    return builder.add("Fill", shape, builder.const(1, dtype, name=f"grad_ys_{number}"))


class _WayBack:
    """The way between xs and ys.

    Attributes:
        problems: the nodes on the way that have no gradient.
    """

    def __init__(self, builder: GraphBuilder, ys: Sequence[str], xs: Sequence[str], stop: frozenset[str]) -> None:
        self.builder, self.graph, self.stop = builder, builder.graph, stop
        self.problems: list[str] = []
        self.loops = find_loops(self.graph) if any(node.op == "Enter" for node in self.graph) else []
        needed = reachable(self.graph, ys, data_only=True, missing_ok=True)  # not what only runs before, as assertions
        self.items = [
            item for item in self._postorder(ys, self.loops) if isinstance(item, WhileLoop) or item.name in needed
        ]  # fmt: skip
        self.rounds: dict[str, list[Node | WhileLoop]] = {}
        """The nodes and loops of a round of each loop, by its frame."""
        self.way: set[str] = set()
        """The nodes whose inputs get gradients: those between an x and a y that something flows through."""
        carrying = {x for x in xs if carries(builder.inferred.dtype(x))}
        for item in self.items:
            if isinstance(item, WhileLoop):
                self._through_loop(item, carrying)
            else:
                self._through(item, carrying)
        self._name_problems()

    def _name_problems(self) -> None:
        items = list(self.items)
        for item in items:  # grows
            if isinstance(item, WhileLoop):
                items += self.rounds[item.frame]
            elif item.name in self.way and item.op not in GRADIENTS:
                self.problems.append(f"'{item.name}' ({item.op})")
            elif item.name in self.way and item.op not in HOLDS_FOR_COMPLEX_NUMBERS and self._is_complex(item):
                self.problems.append(f"'{item.name}' ({item.op} of complex numbers)")

    def _is_complex(self, node: Node) -> bool:
        """Whether a node takes or gives complex numbers."""
        known = [*map(self.builder.inferred.dtype, node.data_inputs), *(opdefs.known_output_dtypes(node) or ())]
        return any(dtype is not None and dtype.is_complex for dtype in known)

    def _postorder(
        self, ys: Sequence[str], loops: Sequence[WhileLoop], within: Collection[str] | None = None
    ) -> list[Node | WhileLoop]:
        """The nodes that ys need, producers first; in the place of the nodes of a loop stands the loop.

        Args:
            ys: what is needed.
            within: the nodes that count; by default all.
        """
        if not loops and within is None:
            return list(postorder(self.graph, ys))
        loop_of = {name: loop for loop in loops for name in loop.members}
        done: set[str] = set()
        opened: set[str] = set()
        order: list[Node | WhileLoop] = []
        stack = [node_name(y) for y in ys]
        while stack:
            name = stack[-1]
            loop = loop_of.get(name)
            key = name if loop is None else f"loop {loop.frame}"
            if key in done or name not in self.graph or (within is not None and name not in within):
                stack.pop()
            elif key in opened:
                stack.pop()
                done.add(key)
                order.append(self.graph[name] if loop is None else loop)
            else:
                opened.add(key)
                readers = [self.graph[name]] if loop is None else [self.graph[member] for member in loop.members]
                stack += [
                    source for reader in readers for source in map(node_name, reader.inputs)
                    if loop is None or source not in loop.members
                ]  # fmt: skip
        return order

    def _through(self, node: Node, carrying: set[str]) -> bool:
        """Notes whether gradients flow through a node; whether anything is new."""
        through = any(canonical(ref) in carrying for ref in node.data_inputs)
        if not through or node.name in self.way or GRADIENTS.row(node.op) is no_gradient:
            return False
        dtypes = opdefs.known_output_dtypes(node) or ()
        outputs = {f"{node.name}:{port}" for port, dtype in enumerate(dtypes) if passes(dtype)}
        if outputs and outputs <= self.stop:
            return False
        self.way.add(node.name)
        carrying |= outputs - self.stop
        return True

    def _through_loop(self, loop: WhileLoop, carrying: set[str]) -> bool:
        """The same for a loop, in which values go round until nothing is new."""

        def flows(source: str, *outputs: str) -> bool:
            if canonical(source) not in carrying or carrying.union(self.stop).issuperset(outputs):
                return False
            carrying.update(set(outputs) - self.stop)
            return True

        if loop.frame not in self.rounds:
            ends = [v.ends for v in loop.variables]
            self.rounds[loop.frame] = self._postorder(ends, loop.inner, loop.body)
        was_new, is_new = False, True
        while is_new:
            is_new = False
            for enter in loop.constants:
                is_new |= flows(enter.data_inputs[0], f"{enter.name}:0")
            for v in loop.variables:
                outputs = v.begins, *(f"{node.name}:0" for node in v.exits)
                is_new |= flows(v.enter.data_inputs[0], *outputs)
                is_new |= flows(v.ends, *outputs)
            for item in self.rounds[loop.frame]:
                if isinstance(item, WhileLoop):
                    is_new |= self._through_loop(item, carrying)
                else:
                    is_new |= self._through(item, carrying)
            was_new |= is_new
        return was_new

    # Backwards

    def back(self, arriving: dict[str, list[str]]) -> None:
        """Adds all gradients, from the last node to the first."""
        for item in reversed(self.items):
            self._back(item, arriving)

    def _back(self, item: Node | WhileLoop, arriving: dict[str, list[str]]) -> None:
        if isinstance(item, WhileLoop):
            self._tried(item.frame, "a loop", lambda: self._back_through_loop(item, arriving))
        elif item.name in self.way:
            self._tried(item.name, item.op, lambda: self._step(item, arriving))

    def _tried(self, name: str, op: str, step: Callable[[], None]) -> None:
        try:
            step()
        except GraphError as error:
            self.problems.append(f"'{name}' ({op}: {error.what})")

    def _back_through_loop(self, loop: WhileLoop, arriving: dict[str, list[str]]) -> None:
        """Adds the loop that goes back through a loop."""
        builder = self.builder
        ends = [v for v in loop.variables if any(self._flowing(arriving, f"{node.name}:0") for node in v.exits)]
        if not ends:
            return
        around = builder.loop
        if isinstance(around, LoopGradient) and around.loop.path(loop.variables[0].enter.name):
            raise GraphError("it is in a branch inside of another loop")
        with builder.scope(f"{loop.frame.rpartition('/')[0] or loop.frame}_grad"):
            backwards = LoopGradient(builder, loop)
            inside: dict[str, list[str]] = {}
            rounds: dict[str, Callable[[str], None]] = {}
            values: dict[str, str] = {}
            for v in active(loop, self.way, ends):
                if not passes(builder.dtype(v.merge.name)):
                    continue
                first = self._at_the_end(v, arriving)
                value, left, again = backwards.round_trip(first, builder.dtype(v.merge.name).base)
                inside.setdefault(v.ends, []).append(value)
                rounds[v.begins], values[v.begins] = again, value
                self._arrive(arriving, v.enter.data_inputs[0], left)
            with backwards.inside():
                for item in reversed(self.rounds[loop.frame]):
                    self._back(item, inside)
                for begins, again in rounds.items():
                    again(self._flowing(inside, begins) or builder.add("ZerosLike", values[begins]))
                added = {node.name: self._flowing(inside, f"{node.name}:0") for node in loop.constants}
            for enter in loop.constants:
                gradient = added[enter.name]
                if gradient is not None:
                    self._arrive(arriving, enter.data_inputs[0], self._added_up(backwards, enter, gradient))
            backwards.finish()

    def _at_the_end(self, v: LoopVariable, arriving: dict[str, list[str]]) -> str:
        """The gradient behind the loop, zeros where there is none."""
        found = [summed for node in v.exits if (summed := self._flowing(arriving, f"{node.name}:0"))]
        if found:
            return found[0] if len(found) == 1 else self.builder.add("AddN", found)
        if v.exits:
            return self.builder.add("ZerosLike", v.exits[0].name)
        dtype = self.builder.dtype(v.merge.name).base
        left = Node(self.builder.unique("Exit"), "Exit", [v.switch.name], {"T": dtype}, v.enter.device)
        return self.builder.add("ZerosLike", self.builder.put(left))

    def _added_up(self, backwards: LoopGradient, enter: Node, gradient: str) -> str:
        """The sum of the gradients of all rounds by a value that stays the same."""
        source = enter.data_inputs[0]
        value, left, again = backwards.round_trip(self.builder.zeros_like(source), self.builder.dtype(gradient).base)
        with backwards.inside():
            again(self.builder.add("AddN", [value, gradient]))
        return left

    def _step(self, node: Node, arriving: dict[str, list[str]]) -> None:
        """Adds the gradient of one node, where a gradient arrives at its outputs."""
        builder = self.builder
        refs = [f"{node.name}:{port}" for port in range(len(opdefs.output_dtypes(node)))]
        if not any(arriving.get(ref) for ref in refs if ref not in self.stop):
            return
        with builder.scope(f"{node.name}_grad", node.device):
            grads = [self._flowing(arriving, ref) for ref in refs]
            function = GRADIENTS.row(node.op)
            assert function is not None
            given = function(NodeGradient(builder, node, grads))
        found = [given] if given is None or isinstance(given, str) else list(given)
        for ref, gradient in zip(node.data_inputs, found, strict=False):
            if gradient is not None:
                self._arrive(arriving, ref, gradient)

    def _arrive(self, arriving: dict[str, list[str]], ref: str, gradient: str) -> None:
        if passes(self.builder.inferred.dtype(ref)):
            arriving.setdefault(canonical(ref), []).append(gradient)

    def _flowing(self, arriving: dict[str, list[str]], ref: str) -> str | None:
        """The gradient that flows on behind a tensor."""
        return None if ref in self.stop else _summed(self.builder, arriving, ref)


def _summed(builder: GraphBuilder, arriving: dict[str, list[str]], ref: str) -> str | None:
    """The sum of the gradients that arrived at a tensor."""
    found = arriving.get(ref)
    if not found:
        return None
    if len(found) > 1:
        found[:] = [builder.add("AddN", found)]
    return found[0]


def _no_gradient(problems: Sequence[str]) -> GraphError:
    return GraphError(
        f"{len(problems)} {'node has' if len(problems) == 1 else 'nodes have'} no gradient: {listed(problems, 20)}",
        hint="put a StopGradient before them, or name tensors behind them as xs",
    )
