"""Puts the bodies of called functions in the places of the calls, until the graph calls none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from pocketgraph.budgets import check_time
from pocketgraph.errors import FreezeError, GraphError, did_you_mean
from pocketgraph.formats import function_def
from pocketgraph.graph import DType, Graph, Node, canonical, node_name
from pocketgraph.graph.attr import Func
from pocketgraph.graph.edit import free_name
from pocketgraph.graph.function_body import FunctionBody, InlinedBody, copied, reachable_functions
from pocketgraph.graph.op_traits import CALLS, LOOPS
from pocketgraph.graph.order import descendants
from pocketgraph.passes.constant_values import ConstantValues
from pocketgraph.passes.control_flow_lowering import (
    PARALLEL,
    as_bool,
    branch_of,
    lowered_case,
    lowered_if,
    lowered_while,
)

ControlFlow = Literal["keep", "lower"]
IFS = frozenset({"If", "StatelessIf"})
CASES = frozenset({"Case", "StatelessCase"})
MOST_NODES = 2_000_000  # a graph that grows beyond this was made to
"""A graph that grows beyond this was made to: functions that each call the next one twice double at every step."""


def inlined(graph: Graph, outputs: Iterable[str], control_flow: ControlFlow = "keep") -> Graph:
    """The graph with every call replaced by the body of its function, and functions that nothing names dropped.

    A call is a PartitionedCall, a StatefulPartitionedCall, or an op that is a function's name. A branch (If, Case)
    whose predicate is known before the run is replaced by the function that it chooses. Copies are called
    ``call/node``. What a function does apart from its results (assertions, assignments) is kept only where something
    waits for the call, by a control input.

    ::

        y = PartitionedCall(x, f=scaled)   ->   y/two = Const(float 2.0)
        z = Relu(y)                             y/product = Mul(x, y/two)
                                                z = Relu(y/product)

    Args:
        outputs: names of nodes or tensors that keep their names: a call among them leaves an Identity (IdentityN where
            it has several results) of its own name.
        control_flow: "keep" leaves If, Case and While whose way is not known as they are; "lower" makes them the
            Switch, Merge, Enter and Exit that TensorFlow 1's run times know.

    Raises:
        FreezeError: a function is missing or calls itself; the result would be too large.
        FormatError, GraphError: a function is damaged.
    """
    kept = {node_name(name) for name in outputs}
    callers: dict[str, tuple[str, ...]] = {}
    inside: set[str] = set()
    while True:
        step = _CallExpansion(graph, kept, callers, inside, lower=control_flow == "lower")
        if not step.changed:
            return graph.replace(functions=reachable_functions(graph, graph.functions))
        graph = graph.replace(step.nodes)


class _CallExpansion:
    """Expands every call that stands in the graph once."""

    def __init__(
        self, graph: Graph, kept: Collection[str], callers: dict[str, tuple[str, ...]], inside: set[str], *, lower: bool
    ) -> None:
        """``callers``: in which functions a call stands; ``inside``: which nodes are on a branch or in a loop. Both are
        added to."""
        self.graph = graph
        self.known = ConstantValues(graph.nodes)
        self.callers = callers
        self.inside = inside
        inside |= _in_control_flow(graph)
        self.lower = lower
        self.changed = False
        self._taken = set(graph.nodes)
        self._folders = {name[:at] for name in graph.nodes for at in _slashes(name)}
        self._tensors: dict[str, str] = {}
        self._dones: dict[str, str] = {}
        self._bodies: dict[str, FunctionBody] = {}
        awaited = {ref[1:] for node in graph for ref in node.control_inputs}
        nodes: list[Node] = []
        for node in graph:
            found = self._expanded(node) if node.op not in ("Const", "Placeholder") else None
            if found is None:
                nodes.append(node)
                continue
            self.changed = True
            check_time("while functions were inlined")
            nodes.extend(found.nodes)
            if len(nodes) > MOST_NODES:
                raise FreezeError(
                    f"its functions make more than {MOST_NODES:,} nodes of the graph", where=f"node '{node.name}'"
                )
            if node.name in kept:
                nodes.append(self._named(node, found))
                continue
            for index, ref in enumerate(found.results):
                self._tensors[f"{node.name}:{index}"] = ref
            if node.name in awaited:
                done = free_name(f"{node.name}/done", self._taken)
                nodes.append(Node(done, "NoOp", _waits(found)))
                self._dones[node.name] = done
        self.nodes = [self._redirected(node) for node in nodes] if self.changed else nodes

    def _expanded(self, node: Node) -> InlinedBody | None:
        if node.op in CALLS:
            return self._call(node, _func(node, "f"), node.data_inputs)
        if node.op in self.graph.functions:
            return self._call(node, Func(node.op, node.attrs), node.data_inputs)
        if node.op in IFS:
            return self._if(node)
        if node.op in CASES:
            return self._case(node)
        if node.op in LOOPS and self.lower:
            prefix = self._prefix(node)
            bodies = [self._body(_func(node, name), node) for name in ("cond", "body")]
            times = node.attr("parallel_iterations", PARALLEL)
            if not isinstance(times, int) or times < 1:
                times = PARALLEL
            types = _types(node, "T")
            made = lowered_while(prefix, node.data_inputs, types, bodies[0], bodies[1], node.control_inputs, times)
            return self._noted(made, node, bodies)
        return None

    def _call(self, node: Node, func: Func, arguments: Sequence[str]) -> InlinedBody:
        body = self._body(func, node)
        prefix = self._prefix(node)
        waiting: list[Node] = []
        if node.control_inputs and arguments and body.nodes:
            types = _argument_types(self.graph, node, len(arguments))
            if types:  # what the call waited for, its copy waits for; types unknown: its roots alone do
                for index, (ref, dtype) in enumerate(zip(arguments, types, strict=True)):
                    name = free_name(f"{prefix}/input_{index}", {f"{prefix}/{item.name}" for item in body.nodes})
                    waiting.append(Node(name, "Identity", [ref, *node.control_inputs], {"T": dtype}))
                arguments = [item.name for item in waiting]
        # constants of the copy must run on the branch and in the turn of the loop that the call is on
        anchor = (f"^{node_name(arguments[0])}",) if arguments and node.name in self.inside else ()
        nodes, results, effects = copied(body, prefix, arguments, node.control_inputs or anchor)
        return self._noted(InlinedBody([*waiting, *nodes], results, effects), node, [body])

    def _if(self, node: Node) -> InlinedBody | None:
        if not node.data_inputs:
            raise GraphError("it has no predicate", where=f"node '{node.name}'")
        predicate, *arguments = node.data_inputs
        chosen = self.known.truth(predicate)
        if chosen is not None:
            return self._call(node, _func(node, "then_branch" if chosen else "else_branch"), arguments)
        if not self.lower:
            return None
        prefix = self._prefix(node)
        bodies = [self._body(_func(node, name), node) for name in ("then_branch", "else_branch")]
        tensor, extra = as_bool(f"{prefix}/holds", predicate, node.dtype("Tcond", DType.named("bool")))
        types = _types(node, "Tin", len(arguments))
        made = lowered_if(
            prefix,
            tensor,
            arguments,
            types,
            branch_of(bodies[0]),
            branch_of(bodies[1]),
            _types(node, "Tout"),
            node.control_inputs,
        )
        return self._noted(InlinedBody([*extra, *made.nodes], made.results, made.effects), node, bodies)

    def _case(self, node: Node) -> InlinedBody | None:
        branches = [func for func in node.attr("branches", ()) if isinstance(func, Func)]
        if not branches or not node.data_inputs:
            raise GraphError("it has no branches", where=f"node '{node.name}'")
        index, *arguments = node.data_inputs
        chosen = self.known.value(index)
        if chosen is not None and chosen.size == 1:
            number = int(chosen.item())
            return self._call(node, branches[number if 0 <= number < len(branches) else -1], arguments)
        if not self.lower:
            return None
        bodies = [self._body(func, node) for func in branches]
        types, given = _types(node, "Tin", len(arguments)), _types(node, "Tout")
        built = [branch_of(body) for body in bodies]
        made = lowered_case(self._prefix(node), index, arguments, types, built, given, node.control_inputs)
        return self._noted(made, node, bodies)

    def _body(self, func: Func, node: Node) -> FunctionBody:
        above = self.callers.get(node.name, ())
        if func.name in above:
            circle = " → ".join([*above[above.index(func.name) :], func.name])
            raise FreezeError(
                f"the function '{func.name}' calls itself ({circle})", where=f"node '{node.name}'",
                hint="a recursive function has no end to be inlined to; the model must be exported without it",
            )  # fmt: skip
        function = self.graph.functions.get(func.name)
        if function is None:
            raise FreezeError(
                f"the graph's library has no function '{func.name}'", where=f"node '{node.name}'",
                hint=did_you_mean(func.name, self.graph.functions),
            )  # fmt: skip
        if func.attrs:
            return function_def.body(function, func.attrs, self.graph.functions)
        if func.name not in self._bodies:
            self._bodies[func.name] = function_def.body(function, None, self.graph.functions)
        return self._bodies[func.name]

    def _noted(self, made: InlinedBody, node: Node, bodies: Iterable[FunctionBody]) -> InlinedBody:
        """Notes which functions the new nodes stand in, so that one that calls itself is found out."""
        if node.op not in CALLS or node.name in self.inside:
            self.inside.update(new.name for new in made.nodes)
        above = self.callers.pop(node.name, ())
        inside = (*above, *dict.fromkeys(body.name for body in bodies))
        for new in made.nodes:
            if new.op in self.graph.functions or any(isinstance(v, Func | tuple) for v in new.attrs.values()):
                self.callers[new.name] = inside
            self._taken.add(new.name)
        return made

    def _prefix(self, node: Node) -> str:
        """The call's name, or with a number after it where the graph has nodes under that name already."""
        prefix = free_name(node.name, self._folders)
        self._folders.update(prefix[:at] for at in [*_slashes(prefix), len(prefix)])
        return prefix

    def _named(self, node: Node, found: InlinedBody) -> Node:
        """What stands under the name of a call that is an output."""
        if not found.results:
            return Node(node.name, "NoOp", [f"^{name}" for name in found.effects])
        types = tuple(_result_types(self.graph, node))
        if len(types) != len(found.results):
            raise GraphError("it gives more or fewer results than it says", where=f"node '{node.name}'")
        if len(types) == 1:
            return Node(node.name, "Identity", found.results, {"T": types[0]})
        return Node(node.name, "IdentityN", found.results, {"T": types})

    def _redirected(self, node: Node) -> Node:
        if not any(node_name(ref) in self._dones or canonical(ref) in self._tensors for ref in node.inputs):
            return node
        inputs = []
        for ref in node.inputs:
            if ref.startswith("^"):
                inputs.append(f"^{self._dones[ref[1:]]}" if ref[1:] in self._dones else ref)
                continue
            passed = 0
            while canonical(ref) in self._tensors:
                ref = self._tensors[canonical(ref)]
                passed += 1
                if passed > len(self._tensors):
                    raise GraphError("a function's result is its own argument", where=f"node '{node.name}'")
            inputs.append(ref)
        return node.replace(inputs=inputs)


def _in_control_flow(graph: Graph) -> set[str]:
    """The nodes that run only on a branch or in a loop of TensorFlow 1, as far as one Merge."""

    def goes_on(node: Node) -> bool:
        return node.op not in ("Exit", "Merge") or (
            node.op == "Merge" and any(_is_turn(graph, ref) for ref in node.data_inputs)
        )

    return descendants(
        graph, (node.name for node in graph if node.op in ("Switch", "Enter", "RefSwitch", "RefEnter")), goes_on
    )


def _is_turn(graph: Graph, ref: str) -> bool:
    source = graph.find_producer(ref)
    return source is not None and source.op == "NextIteration"


def _slashes(name: str) -> list[int]:
    return [at for at, character in enumerate(name) if character == "/"]


def _waits(found: InlinedBody) -> list[str]:
    return list(dict.fromkeys(f"^{name}" for name in [*found.effects, *map(node_name, found.results)]))


def _func(node: Node, name: str) -> Func:
    value = node.attrs.get(name)
    if not isinstance(value, Func):
        raise GraphError(f"the {node.op} has no function '{name}'", where=f"node '{node.name}'")
    return value


def _types(node: Node, name: str, count: int | None = None) -> list[DType]:
    value = node.attrs.get(name, ())
    if not isinstance(value, tuple) or not all(isinstance(dtype, DType) for dtype in value):
        raise GraphError(f"the {node.op} has no list of types '{name}'", where=f"node '{node.name}'")
    if count is not None and len(value) != count:
        raise GraphError(f"its '{name}' does not fit its inputs", where=f"node '{node.name}'")
    return list(value)


def _argument_types(graph: Graph, node: Node, count: int) -> list[DType]:
    if node.op in graph.functions:
        return []
    found = _types(node, "Tin")
    return found if len(found) == count else []


def _result_types(graph: Graph, node: Node) -> Sequence[DType]:
    if node.op in graph.functions:
        return function_def.body(graph.functions[node.op], node.attrs).types
    return _types(node, "T" if node.op in LOOPS else "Tout")
