"""Functions of a graph's library: calls, branches and loops of TensorFlow 2 (PartitionedCall, If, Case, While, For)."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.errors import RunError, did_you_mean
from pocketgraph.graph import AttrValue, Func, Function, Graph, Node, Parameter
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import LOOPS, ops_with
from pocketgraph.runtime.engines.compilation_units import DynamicPlanner

if TYPE_CHECKING:
    from pocketgraph.runtime.engines.step_program import StepProgram

CALLS = ops_with("call") | {"BatchFunction"}
BRANCHES = ops_with("branch")
COUNTED = "For"
REMOTE = "RemoteCall"
FUNCTIONAL = frozenset((*CALLS, *BRANCHES, *LOOPS, COUNTED, REMOTE))
HERE = r"(?i)(/job:localhost)?(/replica:0)?(/task:0)?/(device:)?cpu:0"
"""The names of the one device that a RemoteCall can reach."""

DEEPEST = 100  # functions inside of each other; real graphs have a handful

Call = Callable[..., tuple[Any, ...]]


class FunctionLibrary:
    """The functions of a graph, compiled when first called."""

    def __init__(self, graph: Graph, dynamic: DynamicPlanner | None = None, *, without: Collection[str] = ()) -> None:
        """``dynamic`` plans the heavy parts of the functions when they run; ``without``: step passes to leave out."""
        self.without = without
        self.graph = graph
        self.dynamic = dynamic
        self._programs: dict[str, StepProgram] = {}

    def is_call(self, node: Node) -> bool:
        """Whether a node runs functions: one of the functional ops, or a function's own name as the op."""
        return node.op in FUNCTIONAL or node.op in self.graph.functions

    def with_bodies(self, nodes: Iterable[Node]) -> Iterator[Node]:
        """The nodes, and those of all functions that they may run."""
        if not self.graph.functions:
            yield from nodes
            return
        seen: set[str] = set()
        waiting = deque(nodes)
        while waiting:
            node = waiting.popleft()
            yield node
            for name in self._called(node):
                if name not in seen:
                    seen.add(name)
                    waiting.extend(self.graph.functions[name].nodes)

    def inlined_nodes(self, nodes: Iterable[Node]) -> float:
        """How many nodes there were with the nodes of its functions in place of each call; infinite if one recurs."""
        counts: dict[str, float] = {}

        def total(body: Iterable[Node]) -> float:
            return sum(1 + sum(counts.get(name, math.inf) for name in self._called(node)) for node in body)

        nodes = list(nodes)
        stack = [name for node in nodes for name in self._called(node)]
        begun: set[str] = set()
        while stack:  # callees before callers; what is begun twice calls itself
            name = stack[-1]
            if name in counts:
                stack.pop()
                continue
            body = self.graph.functions[name].nodes
            left = [other for node in body for other in self._called(node) if other not in counts]
            if name not in begun and left:
                begun.add(name)
                stack.extend(dict.fromkeys(left))
            else:
                counts[name] = total(body)
                stack.pop()
        return total(nodes)

    def _called(self, node: Node) -> list[str]:
        """The names of the graph's functions that a node may run."""
        functions = self.graph.functions
        return [name for name in (*[func.name for func in _functions_of(node)], node.op) if name in functions]

    def call(self, node: Node) -> Call:
        """What such a node does: takes the Run and the inputs, gives the outputs.

        Raises:
            RunError: it names a function that the graph does not have.
        """
        if node.op in self.graph.functions:
            return _CompiledBody(self, Func(node.op, node.attrs), node)
        if node.op in CALLS:
            return _CompiledBody(self, _func(node, "f"), node)
        if node.op == REMOTE:
            return _on_device(_CompiledBody(self, _func(node, "f"), node))
        if node.op in ("If", "StatelessIf"):
            branches = [_func(node, "else_branch"), _func(node, "then_branch")]
            return _branches([_CompiledBody(self, func, node) for func in branches], truth)
        if node.op in BRANCHES:
            bodies = [_CompiledBody(self, func, node) for func in node.attr("branches", ()) if isinstance(func, Func)]
            return _branches(bodies, lambda index: int(index) if 0 <= int(index) < len(bodies) else len(bodies) - 1)
        if node.op == COUNTED:
            return _for(node.name, _CompiledBody(self, _func(node, "body"), node))
        return _while(
            node.name, _CompiledBody(self, _func(node, "cond"), node), _CompiledBody(self, _func(node, "body"), node)
        )

    def program(self, func: Func) -> StepProgram:
        """The compiled body of a function, its parameters replaced by ``func``'s attributes.

        Raises:
            RunError: there is no such function, or its body is not what it should be.
        """
        key = f"{func.name} {sorted((name, repr(value)) for name, value in func.attrs.items())}"
        if key not in self._programs:
            function = self.graph.functions.get(func.name)
            if function is None:
                raise RunError(
                    f"the graph has no function '{func.name}'", hint=did_you_mean(func.name, self.graph.functions)
                )
            self._programs[key] = self._compiled(function, func.attrs)
        return self._programs[key]

    def _compiled(self, function: Function, attrs: Mapping[str, AttrValue]) -> StepProgram:
        from pocketgraph.formats.function_def import arguments, result_names, results
        from pocketgraph.graph import opdefs
        from pocketgraph.graph.function_body import flat_body
        from pocketgraph.runtime.engines.step_program import StepProgram

        functions = self.graph.functions
        called = {node.op: result_names(functions[node.op]) for node in function.nodes if node.op in functions}
        own = {v.name: v for node in function.nodes for v in node.attrs.values() if isinstance(v, Parameter)}
        body = flat_body(function, arguments(function), results(function), (), (), {**own, **attrs}, called)
        nodes = [Node(name, "Placeholder") for name in body.arguments]
        graph = self.graph.replace([*nodes, *body.nodes], inputs=(), outputs=())
        effects = []
        for node in function.nodes:
            definition = opdefs.find(node.op)
            if definition is not None and definition.stateful and not definition.outputs:
                effects.append(node.name)
        feeds, wanted = [Endpoint(name, 0) for name in body.arguments], list(map(Endpoint.of, body.results))
        return StepProgram(graph, feeds, wanted, effects, library=self, dynamic=self.dynamic)


class _CompiledBody:
    """Runs one function."""

    traces_itself = True

    def __init__(self, library: FunctionLibrary, func: Func, node: Node) -> None:
        self.library = library
        self.func = func
        self.call = f"{node.name}/{func.name}/"

    def __call__(self, run: Any, *inputs: Any) -> tuple[Any, ...]:
        program = self.library.program(self.func)
        if len(inputs) != len(program.feeds):
            raise RunError(f"the function '{self.func.name}' takes {len(program.feeds)} values, not {len(inputs)}")
        if run.depth >= DEEPEST:
            raise RunError(f"functions call each other more than {DEEPEST} deep", where=f"function '{self.func.name}'")
        if run.depth:  # functions that call functions may stand for any number of nodes
            run.spend_call(1 + len(program), self.func.name)
        caller = run.caller
        run.depth, run.caller = run.depth + 1, caller + self.call
        try:
            return program.evaluate(inputs, run)
        finally:
            run.depth, run.caller = run.depth - 1, caller


def _traces_itself(call: Call) -> Call:
    """Marks a call whose nodes are traced one by one."""
    call.traces_itself = True  # type: ignore[attr-defined]
    return call


def _on_device(body: _CompiledBody) -> Call:
    """Runs one function on the device that the first input names, as long as that is this machine's processor."""

    def call(run: Any, target: Any, *inputs: Any) -> tuple[Any, ...]:
        array = np.asarray(target)
        name = array.item().decode(errors="replace") if array.size == 1 and array.dtype.kind == "O" else str(array)
        if not re.fullmatch(HERE, name):
            raise RunError(f"a RemoteCall to the device '{name}': only '/device:CPU:0' of this process is here")
        return body(run, *inputs)

    return _traces_itself(call)


def _branches(bodies: list[_CompiledBody], choose: Callable[[Any], int]) -> Call:
    """Runs the function that the first input chooses."""

    def call(run: Any, chosen: Any, *inputs: Any) -> tuple[Any, ...]:
        return bodies[choose(chosen)](run, *inputs)

    return _traces_itself(call)


def _while(name: str, condition: _CompiledBody, body: _CompiledBody) -> Call:
    """Runs a function on its own results as long as another says so."""

    def call(run: Any, *values: Any) -> tuple[Any, ...]:
        while truth(condition(run, *values)[0]):
            run.spend(1 + len(body.library.program(body.func)), name)
            values = body(run, *values)
        return values

    return _traces_itself(call)


def _for(name: str, body: _CompiledBody) -> Call:
    """Runs a function on a count and its own results, for each number from a start to a limit."""

    def call(run: Any, start: Any, limit: Any, delta: Any, *values: Any) -> tuple[Any, ...]:
        first, end, step = (int(np.asarray(bound).item()) for bound in (start, limit, delta))
        if (end - first) * step < 0 or (not step and first != end):
            raise RunError(f"Invalid start/limit/delta: {first} {end} {step}", where=f"node '{name}'")
        for count in range(first, end, step or 1):
            run.spend(1 + len(body.library.program(body.func)), name)
            values = body(run, np.array(count, np.int32), *values)
        return values

    return _traces_itself(call)


def truth(value: Any) -> int:
    """Whether a branch or loop condition holds: a number that is not 0, a string or other tensor that is not empty."""
    array = np.asarray(value)
    if array.ndim:
        return int(array.size > 0)
    return int(bool(array[()]))


def _functions_of(node: Node) -> list[Func]:
    found: list[Func] = []
    for value in node.attrs.values():
        if isinstance(value, Func):
            found.append(value)
        elif isinstance(value, tuple):
            found += [member for member in value if isinstance(member, Func)]
    return found


def _func(node: Node, name: str) -> Func:
    value = node.attr(name)
    if not isinstance(value, Func):
        raise RunError(f"the {node.op} has no function '{name}'", where=f"node '{node.name}'")
    return value
