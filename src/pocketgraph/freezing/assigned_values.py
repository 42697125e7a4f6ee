"""What reads a variable after an assignment of its run takes what was assigned, through calls, branches and loops."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from pocketgraph.formats import function_def
from pocketgraph.freezing.assignments import new_value, value_op
from pocketgraph.freezing.constant_substitution import reading_value
from pocketgraph.freezing.handle_uses import UNCHANGED, Use
from pocketgraph.freezing.shared_memory import RESHAPED
from pocketgraph.freezing.variable_accesses import Accesses, AccessFinder, results_and_effects
from pocketgraph.freezing.variables_in_calls import function_attributes
from pocketgraph.freezing.written_loops import RoundValue, beside, frame_of
from pocketgraph.graph import DType, Graph, Node, Shape, canonical, node_name, opdefs, parse_ref
from pocketgraph.graph.attr import Func
from pocketgraph.graph.dtype import RESOURCE
from pocketgraph.graph.edit import claim_name
from pocketgraph.graph.function_body import spelled
from pocketgraph.graph.op_traits import (
    BINARY_SWITCHES,
    ENTER,
    FUNCTION_CALLS,
    LOOPS,
    MERGE,
    REFERENCE_VARIABLES,
    VIEWS,
)
from pocketgraph.pages.quantities import listed

T = TypeVar("T")
STORED_VALUE = "the stored value is taken"
"""How a line ends that says of which variable a frozen graph may have another value than TensorFlow."""


def with_assigned_values(
    graph: Graph, outputs: Collection[str], variables: Iterable[str], *, out_of_calls: bool = False
) -> tuple[Graph, list[str]]:
    """The graph in which what reads a variable after an assignment of the same run takes what was assigned; and a line
    for each variable of which outputs read the value before or after an assignment, as it happens.

    ::

        write = AssignVariableOp(window, frames)
        now = ReadVariableOp(window, ^write)       ->   now = Identity(frames, ^write)

        count = AssignAddVariableOp(steps, one)
        now = ReadVariableOp(steps, ^count)        ->   count/before = ReadVariableOp(steps)
                                                        count/value = AddV2(count/before, one)
                                                        now = Identity(count/value, ^count)

        choice = If(p, steps, then_branch=f)       ->   choice = If(p, choice/before, then_branch=f_assigned)
        now = ReadVariableOp(steps, ^choice)            now = Identity(choice, ^choice)

    A frozen graph has the stored value for all reads. One stays that some assignment may come before or after, that no
    output is computed with but for a batch norm's statistics or the range of a fake quantization, or whose variable is
    changed by an op that is not known here.

    Args:
        graph: with its calls inlined, If, Case and While as they are.
        outputs: what is computed.
        variables: the nodes of those that become constants.
        out_of_calls: no branch or loop assigns to one any more, whether what it assigns is read or not.
    """
    waiting = [name for name in variables if name in graph]
    lines: dict[str, str] = {}
    functions = _ThreadedFunctions(graph, out_of_calls)
    while True:  # what was assigned to one variable may have been read from another
        left = []
        for name in waiting:
            found = functions.accesses(functions.graph, outputs, name)
            if not found.writers:
                continue
            writers = listed([node.name for node in found.writers], 2, quoted=True)
            readers = sorted(found.unordered & found.live)
            if readers:
                lines[name] = (
                    f"no edge says whether {listed(readers, 2, quoted=True)} read '{name}' before or after {writers}, "
                    f"so that TensorFlow's answers may differ from run to run; {STORED_VALUE}"
                )
            readers = sorted(one for one, after in found.readers.items() if after and one in found.live)
            if not found.followed:
                if readers:
                    lines[name] = (
                        f"what {listed(readers, 2, quoted=True)} read of '{name}' after {writers} is not followed; "
                        f"{STORED_VALUE}"
                    )
                left.append(name)
            elif found.needs or (out_of_calls and any(use.writes for use in found.calls.values())):
                nodes, _ = functions.threaded(functions.graph, found, name, graph[name].dtype("dtype").base)
                functions.graph = functions.graph.replace(nodes)
            else:
                left.append(name)
        if len(left) == len(waiting):
            return functions.graph, [*lines.values()]
        waiting = left


class _ThreadedFunctions(AccessFinder):
    """The functions of a graph, and those of them that take and give a variable's value."""

    def __init__(self, graph: Graph, out_of_calls: bool) -> None:
        super().__init__(graph, looks_everywhere=out_of_calls)
        self._out_of_calls = out_of_calls
        self._made: dict[tuple[str, int, int | None], str] = {}

    def threaded(
        self, graph: Graph, found: Accesses, root: str, dtype: DType, *, in_function: bool = False
    ) -> tuple[list[Node], str]:
        """The nodes of a graph in which reads take the values that assignments leave, and the last of these values.

        Args:
            in_function: the root is the value before the first assignment; assignments go, as the caller has the last.
        """
        threading = _Threading(self, graph, found, dtype, in_function=in_function)
        value = threading.assign(root)
        return threading.nodes(), value

    def hands_on(self, use: Use, earlier: int, *, in_function: bool) -> bool:
        """Whether a call that writes, behind so many writers, is given a value and gives what it leaves."""
        return in_function or self._out_of_calls or use.needs or (use.reads and earlier > 0)

    def reading(self, node: Node, found: Accesses, value: str, copies: _Copies) -> Iterable[Node]:
        """What reads a variable, reading a value."""
        if node.name in found.calls:
            return [self.handing_on(node, found.calls[node.name], value, copies.dtype)[0]]
        inputs, waits = list[str](), list(node.control_inputs)
        nodes = list[Node]()
        for ref in node.data_inputs:
            inputs.append(copies.of(ref, value, nodes))
            if inputs[-1] != ref and node_name(ref) in {writer.name for writer in found.writers}:
                waits.append(f"^{node_name(ref)}")
        node = node.replace(inputs=inputs)
        if node.name in found.others and node.op not in UNCHANGED:
            nodes.append(node.with_attrs(T=copies.dtype))
        else:
            nodes += reading_value(node, copies.dtype, copies.taken)
        return [*nodes[:-1], nodes[-1].replace(inputs=[*nodes[-1].data_inputs, *waits])]

    def handing_on(self, node: Node, use: Use, value: str, dtype: DType) -> tuple[Node, str]:
        """A call that is given a variable's value in its place, and the tensor of what it leaves, where it changes
        it."""
        definition = opdefs.definition(node.op)
        attrs = dict(node.attrs)
        index = use.position - (len(definition.inputs) - 1)
        types, given = definition.inputs[-1].type_list_attr, definition.outputs[-1].type_list_attr
        port = index if node.op in LOOPS else len(node.attr(given, ()))
        attrs[types] = _with(node.attr(types), index, dtype)
        for name in ("output_shapes", "_output_shapes"):
            if node.attr(name, ()) and (use.writes or node.op in LOOPS):
                attrs[name] = _with(node.attr(name), port, Shape(None))
        if node.op not in LOOPS and use.writes:
            attrs[given] = _with(node.attr(given, ()), port, dtype)
        for name in function_attributes(node.op):
            result = (port if use.writes or name == "body" else None) if name != "cond" else None
            held = node.attrs[name]
            changed = [
                Func(self._specialised(func.name, index, result, dtype), func.attrs)
                for func in (held if isinstance(held, tuple) else (held,))
                if isinstance(func, Func)
            ]
            attrs[name] = tuple(changed) if isinstance(held, tuple) else changed[0]
        inputs = [*_with(node.data_inputs, use.position, value), *node.control_inputs]
        return node.replace(inputs=inputs, attrs=attrs), f"{node.name}:{port}" if port else node.name

    def _specialised(self, name: str, index: int, result: int | None, dtype: DType) -> str:
        """The name of the function that takes the variable's value for its handle, and gives what it leaves as this
        result: the one of a loop's body that was the handle, or one more."""
        key = (name, index, result)
        if key in self._made:
            return self._made[key]
        scope, function = self.scope(name), self.graph.functions[name]
        assert scope is not None, "accesses() looked at it"
        root = list(scope)[index].name
        found = self.accesses(scope, results_and_effects(scope), root)
        nodes, value = self.threaded(scope, found, root, dtype, in_function=True)
        table = {node.name: node for node in nodes}
        count = len(function_def.arguments(function))
        body = [node.replace(inputs=[spelled(ref, table) for ref in node.inputs]) for node in nodes[count:]]
        before, names = function_def.results(function), function_def.result_names(function)
        after = [value if canonical(ref) in found.holders else ref for ref in scope.outputs]
        is_further = result is not None and result == len(names)
        self._made[key] = new_name = claim_name(f"{name}_assigned", set(self.graph.functions))
        made = function_def.retyped(
            function, new_name, body, argument_types={index: dtype},
            result_types={} if is_further or result is None else {result: dtype},
            renamed={old: spelled(ref, table) for old, ref in zip(before, after, strict=True)},
            further=(claim_name(root, set(names)), dtype, spelled(value, table)) if is_further else None,
        )  # fmt: skip
        self.graph = self.graph.replace(functions={**self.graph.functions, new_name: made})
        return new_name


class _Threading:
    """The values of one variable in a graph: which of them somebody needs, what computes and what reads each.

    Args:
        functions: those of the graph.
        graph: where the variable is, or the scope of a function that is given it.
        found: what uses the variable.
        dtype: of its values.
        in_function: as for ``_ThreadedFunctions.threaded``.
    """

    def __init__(
        self, functions: _ThreadedFunctions, graph: Graph, found: Accesses, dtype: DType, *, in_function: bool
    ) -> None:
        self._functions = functions
        self._graph = graph
        self._found = found
        self._dtype = dtype
        self._in_function = in_function
        self._taken = set(graph.nodes)
        self._states = self._needed()
        self._values: dict[int, str] = {}  # behind so many of the writers
        self._made: dict[str, list[Node]] = {}  # what stands in front of each writer
        self._rounds: dict[str, RoundValue] = {}
        self._within: dict[tuple[str, int], str] = {}  # values in a loop

    def _needed(self) -> set[int]:
        """Behind how many of the writers somebody takes the value, 0 for what it was before them."""
        found = self._found
        states = {after for after in found.readers.values() if after}
        states |= {len(found.writers)} if self._in_function else set()
        for at, node in enumerate(found.writers):
            use = found.calls.get(node.name)
            if use is not None and self._functions.hands_on(use, at, in_function=self._in_function):
                states.add(at + 1)
        for at in range(len(found.writers), 0, -1):
            node = found.writers[at - 1]
            takes = any(canonical(ref) in found.holders for ref in node.data_inputs[1:])
            loop = found.loops.get(node.name)
            if loop is not None and (at in states or any(found.loops.get(name) == loop for name in found.readers)):
                states |= {at - 1, at}  # what goes round is known at the end of a round
            if at in states and (value_op(node.op) != "" or found.branches[node.name] or takes):
                states.add(at - 1)
        return states

    def assign(self, root: str) -> str:
        """Makes the nodes that compute the values that are needed; the last of these."""
        value = self._values[0] = self._before(root)
        for at, node in enumerate(self._found.writers, 1):
            if at in self._states:
                value = self._values[at] = self._assigned(at, node, value)
        return value

    def _before(self, root: str) -> str:
        """What the variable is before the first assignment."""
        if 0 not in self._states or self._in_function:
            return root
        is_reference = self._graph[root].op in REFERENCE_VARIABLES
        op, attr = ("Identity", "T") if is_reference else ("ReadVariableOp", "dtype")
        first = self._found.writers[0].name
        value = claim_name(f"{first}/before", self._taken)
        self._made[first] = [Node(value, op, [root], {attr: self._dtype})]
        return value

    def _assigned(self, at: int, node: Node, value: str) -> str:
        """What an assignment, or a call, leaves of a value, in its loop and behind its branches."""
        found, nodes = self._found, self._made.setdefault(node.name, [])
        loop = found.loops.get(node.name)
        if loop is not None and loop.condition not in self._rounds:
            self._rounds[loop.condition] = held = RoundValue(loop, value, self._dtype, self._taken)
            nodes += held.nodes
            value = self._within[loop.condition, at - 1] = held.begins
        switches = self._into_branches(node, value)
        nodes += [switch for switch, _ in switches]
        value = f"{switches[-1][0].name}:{switches[-1][1]}" if switches else value
        if node.name in found.calls:
            call, value = self._functions.handing_on(node, found.calls[node.name], value, self._dtype)
            nodes.append(call)
        else:
            earlier = self._values.get(at - 1, "") if loop is None else self._within[loop.condition, at - 1]
            copies = _Copies(self._graph, found, self._dtype, self._taken)
            operands = [copies.of(ref, earlier, nodes) for ref in node.data_inputs[1:]]
            assigning = node.replace(inputs=[node.data_inputs[0], *operands])
            computed = new_value(assigning, value, self._dtype, self._taken)
            nodes += computed if loop is None else beside(self._rounds[loop.condition].begins, computed)
            value = nodes[-1].name if value_op(node.op) else operands[0]
        for switch, port in switches[::-1]:
            name = claim_name(f"{node.name}/after", self._taken)
            nodes.append(Node(name, "Merge", [f"{switch.name}:{1 - port}", value], {"T": self._dtype, "N": 2}))
            value = name
        if loop is not None:
            self._within[loop.condition, at] = value
            if all(found.loops.get(later.name) != loop for later in found.writers[at:]):
                nodes += self._rounds[loop.condition].ended(value)
                value = nodes[-1].name
        return value

    def _into_branches(self, node: Node, value: str) -> list[tuple[Node, int]]:
        """The Switches through which a value comes to the branch of an assignment, and their outputs there."""
        switches: list[tuple[Node, int]] = []
        for ref in self._found.branches[node.name]:
            name, port, _ = parse_ref(ref)
            operands = [value, self._graph[name].data_inputs[1]]
            switch = Node(claim_name(f"{node.name}/way", self._taken), "Switch", operands, {"T": self._dtype})
            switches.append((switch, port))
            value = f"{switch.name}:{port}"
        return switches

    def nodes(self) -> list[Node]:
        """The nodes of the graph, in which reads take these values."""
        found, result = self._found, list[Node]()
        copies = _Copies(self._graph, found, self._dtype, self._taken)
        written = {node.name for node in found.writers}
        for node in self._graph:
            after = found.readers.get(node.name, 0)
            if node.name in written:
                result += self._writer(node)
            elif node.name in found.readers and (loop := found.loops.get(node.name)) is not None:
                decides = node.name in loop.decides
                then = self._rounds[loop.condition].decided_with if decides else self._within[loop.condition, after]
                result += beside(then, self._functions.reading(node, found, then, copies))
            elif after or (self._in_function and node.name in {*found.readers, *found.calls, *found.others}):
                result += self._functions.reading(node, found, self._values[after], copies)
            else:
                result.append(node)
        return result

    def _writer(self, node: Node) -> list[Node]:
        """What stands for an assignment, or for a call that assigns."""
        found, made = self._found, self._made.get(node.name, [])
        if node.name in found.readers:  # an output that is a reference: what it holds then
            update = claim_name(f"{node.name}/update", self._taken)
            value = self._values[found.readers[node.name]]
            return [
                *made,
                node.replace(name=update),
                Node(node.name, "Identity", [value, f"^{update}"], {"T": self._dtype}),
            ]
        if node.name not in found.calls:
            gone = node.replace(op="NoOp", inputs=node.control_inputs, attrs={})
            return [*made, gone if self._in_function else node]
        return made or [node]


class _Copies:
    """Values behind copies of the Switches, Merges, Enters and views that a variable's handle comes through."""

    def __init__(self, graph: Graph, found: Accesses, dtype: DType, taken: set[str]) -> None:
        self.dtype = dtype
        self.taken = taken
        self._graph = graph
        self._holders = found.holders
        self._frames = {frame_of(loop.enter) for loop in found.loops.values()}
        self._made: dict[tuple[str, str], str] = {}

    def of(self, holder: str, value: str, nodes: list[Node]) -> str:
        """A value where the handle was, behind copies, each made once; what is no holder of the variable itself."""
        waiting = [canonical(holder)] if canonical(holder) in self._holders else []
        begun: set[str] = set()  # what is met again before it is made is a cycle, which others tell of
        while waiting:
            name, port, _ = parse_ref(waiting[-1])
            node = self._graph[name]
            count = len(node.data_inputs) if node.op in MERGE else 1 + (node.op == "Split")
            sources = node.data_inputs[port:] if node.op == "IdentityN" else node.data_inputs
            is_inside = node.op in ENTER and frame_of(node) in self._frames  # where the value goes round
            sources = () if node.op in FUNCTION_CALLS or is_inside else sources[:count]
            left = [ref for ref in map(canonical, sources) if ref in self._holders and (ref, value) not in self._made]
            if left and waiting[-1] not in begun:
                begun.add(waiting[-1])
                waiting += left[::-1]
                continue
            inner = [self._made.get((canonical(ref), value), ref) for ref in sources]
            copy = inner[-1] if inner else value
            changes = node.attr("new_axis_mask", 0) or node.attr("shrink_axis_mask", 0)
            if inner and (node.op in BINARY_SWITCHES | ENTER | VIEWS | MERGE | RESHAPED or changes):
                copy = claim_name(f"{name}/value", self.taken)
                op = node.op.removeprefix("Ref")
                kept = {key: held for key, held in node.attrs.items() if key != "_output_shapes"}  # of the handle
                held = node.dtype("T", RESOURCE)
                kept["T"] = self.dtype if held is RESOURCE else held.base
                nodes.append(Node(copy, op, [*inner, *node.inputs[count:]], kept))
                copy = f"{copy}:{port}" if port else copy
            self._made[waiting.pop(), value] = copy
        return self._made.get((canonical(holder), value), holder)


def _with(values: Sequence[T], place: int, value: T) -> tuple[T, ...]:
    """The values with this one in its place, or behind the last."""
    return (*values[:place], value, *values[place + 1 :])
