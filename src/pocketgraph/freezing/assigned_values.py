"""What reads a variable after an assignment of its run takes what was assigned, through calls, branches and loops."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from pocketgraph.errors import FormatError, GraphError
from pocketgraph.formats import function_def
from pocketgraph.freezing.assignments import new_value, value_op
from pocketgraph.freezing.constant_substitution import reading_value
from pocketgraph.freezing.repair.updates import is_update
from pocketgraph.freezing.run_state import without_statistics
from pocketgraph.freezing.variables_in_calls import function_attributes
from pocketgraph.graph import DType, Graph, Node, Shape, canonical, node_name, opdefs
from pocketgraph.graph.attr import Func
from pocketgraph.graph.edit import claim_name
from pocketgraph.graph.function_body import spelled
from pocketgraph.graph.op_traits import FUNCTION_CALLS, LOOPS, PASSES, REFERENCE_VARIABLES, REFERENCES, ops_with
from pocketgraph.graph.order import descendants, reachable

T = TypeVar("T")
_STAYS = ("VariableShape", "VarIsInitializedOp", "IsVariableInitialized")
"""Not a trait: what no assignment changes."""


def with_assigned_values(
    graph: Graph, outputs: Collection[str], variables: Iterable[str], *, out_of_calls: bool = False
) -> Graph:
    """The graph in which what reads a variable after an assignment of the same run takes what was assigned.

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
    library = _Library(graph, out_of_calls)
    while True:  # what was assigned to one variable may have been read from another
        for name in waiting:
            found = library.accesses(library.graph, outputs, name)
            if found is None:
                continue
            if found.needs or (out_of_calls and any(use.writes for use in found.calls.values())):
                dtype = graph[name].dtype("dtype").base
                nodes, _ = library.threaded(library.graph, found, name, dtype)
                library.graph = library.graph.replace(nodes)
                waiting.remove(name)
                break
        else:
            return library.graph


class _Accesses(NamedTuple):
    """What uses a variable.

    Attributes:
        holders: the tensors that are its handle or reference.
        writers: what changes it, first to last.
        readers: what reads it and does not change it, and after how many of the writers.
        calls: what the calls do that are given it.
        others: what reads nothing that assignments change, or hands the handle on.
        is_ordered: each reader is among ``readers``; else some come before or after an assignment as it happens.
        live: the nodes that results are computed with.
        needs: some live one reads what another one changed.
    """

    holders: set[str]
    writers: list[Node]
    readers: dict[str, int]
    calls: dict[str, _Use]
    others: set[str]
    is_ordered: bool
    live: set[str]
    needs: bool


class _Use(NamedTuple):
    """What a call does with a variable that it is given, at this position of its inputs."""

    position: int
    reads: bool
    writes: bool
    needs: bool
    returns: bool = False


class _Library:
    """The functions of a graph, and those of them that take and give a variable's value."""

    def __init__(self, graph: Graph, out_of_calls: bool) -> None:
        self.graph = graph
        self._out_of_calls = out_of_calls
        self._scopes: dict[str, Graph | None] = {}
        self._uses: dict[tuple[str, int], _Use | None] = {}
        self._made: dict[tuple[str, int, int | None], str] = {}
        self._looked_at: Graph | None = None
        self._found: set[str] = set()

    def accesses(self, graph: Graph, outputs: Iterable[str], root: str) -> _Accesses | None:
        """What uses a variable; None where assignments are in no order or not known."""
        is_reference = graph[root].op in REFERENCE_VARIABLES
        holders, writers, reads = {canonical(root)}, list[Node](), set[str]()
        calls: dict[str, _Use] = {}
        others: set[str] = set()
        waiting = [canonical(root)]
        while waiting:
            tensor = waiting.pop()
            for node in graph.consumers.get(node_name(tensor), ()):
                places = [at for at, ref in enumerate(node.data_inputs) if canonical(ref) == tensor]
                given: str | None = None
                if not places or node.op in _STAYS:
                    others |= {node.name} if places else set()
                    continue
                if node.op in FUNCTION_CALLS:
                    use = self._called(node, places[0]) if len(places) == 1 and node.name not in calls else None
                    if use is None:
                        return None
                    calls[node.name] = use
                    if use.writes:
                        writers.append(node)
                    elif use.reads:
                        reads.add(node.name)
                    given = f"{node.name}:{places[0]}" if node.op in LOOPS else None
                elif places == [0] and value_op(node.op) is not None:
                    writers.append(node)
                    given = node.name if is_reference else None
                elif is_update(node) and 0 in places:
                    return None
                elif is_reference and node.op not in REFERENCES:
                    reads.add(node.name)
                elif node.op in PASSES and not is_reference:
                    given = node.name
                    others.add(node.name)
                elif node.op in ("ReadVariableOp", "ResourceGather", "ResourceGatherNd"):
                    reads.add(node.name)
                else:
                    return None
                if given is not None:
                    holders.add(canonical(given))
                    waiting.append(canonical(given))
        asked = {node_name(name) for name in outputs} if is_reference else set()
        live = self._live(graph, outputs)
        if not writers or (
            graph is self.graph and not self._out_of_calls and live.isdisjoint(reads | calls.keys() | asked)
        ):
            return _Accesses(holders, writers, dict.fromkeys(reads, 0), calls, others, True, live, False)
        before = {node.name: reachable(graph, [node.name]) for node in writers}
        behind = {node.name: descendants(graph, [node.name]) for node in writers}
        writers = sorted(writers, key=lambda node: len(before.keys() & before[node.name]))
        for at, node in enumerate(writers):
            is_sure = not any(graph[name].op in ops_with("control_flow") for name in before[node.name])
            if not is_sure or any(other.name not in before[node.name] for other in writers[:at]):
                return None
        readers = {}
        for name in reads:
            after = sum(name in behind[node.name] for node in writers)
            if all(name in before[node.name] for node in writers[after:]):
                readers[name] = after
        readers |= {node.name: at for at, node in enumerate(writers, 1) if node.name in asked}
        needs = any(after and name in live for name, after in readers.items())
        for at, node in enumerate(writers):
            use = calls.get(node.name)
            needs = needs or (use is not None and node.name in live and (use.needs or (use.reads and at > 0)))
        return _Accesses(holders, writers, readers, calls, others, len(readers) == len(reads), live, needs)

    def _live(self, graph: Graph, outputs: Iterable[str]) -> set[str]:
        """What outputs are computed with."""
        if self._looked_at is not graph:
            self._looked_at = graph
            self._found = reachable(graph.map_nodes(without_statistics), outputs, data_only=True, missing_ok=True)
        return self._found

    def _called(self, node: Node, position: int) -> _Use | None:
        """What the functions of a call do with the variable at this position of its inputs."""
        index = position - (len(opdefs.definition(node.op).inputs) - 1)
        uses = []
        for name in _functions(node):
            use = self._use(name, index)
            if use is None or (use.returns and node.op not in LOOPS):
                return None
            uses.append(use)
        if index < 0 or not uses:
            return None
        reads, writes, needs = (any(use[field] for use in uses) for field in (1, 2, 3))
        return _Use(position, reads, writes, needs or (node.op in LOOPS and reads and writes))

    def _use(self, name: str, index: int) -> _Use | None:
        key = (name, index)
        if key not in self._uses:
            self._uses[key] = None  # for one that calls itself
            scope = self._scope(name)
            argument = next(islice(scope or (), index, None), None) if index >= 0 else None
            found = None
            if scope is not None and argument is not None and argument.op == "Placeholder":
                found = self.accesses(scope, _results(scope), argument.name)
            if found is not None and scope is not None and found.is_ordered:
                returns = any(canonical(ref) in found.holders for ref in scope.outputs)
                reads = bool(found.readers) or any(use.reads for use in found.calls.values())
                self._uses[key] = _Use(index, reads, bool(found.writers), found.needs, returns)
        return self._uses[key]

    def _scope(self, name: str) -> Graph | None:
        """A function's body as a graph whose first nodes are placeholders for its arguments; None where it says too
        little of its types."""
        if name not in self._scopes:
            self._scopes[name] = None
            function = self.graph.functions.get(name)
            if function is not None and all(opdefs.find(node.op) for node in function.nodes):
                try:
                    body = function_def.body(function)
                    types = function_def.argument_types(function)
                except (FormatError, GraphError):
                    return None
                given = [
                    Node(argument, "Placeholder", [], {"dtype": dtype})
                    for argument, dtype in zip(body.arguments, types, strict=True)
                ]
                self._scopes[name] = Graph([*given, *body.nodes], outputs=body.results)
        return self._scopes[name]

    def threaded(
        self, graph: Graph, found: _Accesses, root: str, dtype: DType, *, in_function: bool = False
    ) -> tuple[list[Node], str]:
        """The nodes of a graph in which reads take the values that assignments leave, and the last of these values.

        Args:
            in_function: the root is the value before the first assignment; assignments go, as the caller has the last.
        """
        states = {after for after in found.readers.values() if after}
        states |= {len(found.writers)} if in_function else set()
        for at, node in enumerate(found.writers):
            use = found.calls.get(node.name)
            if use is not None and (in_function or self._out_of_calls or use.needs or (use.reads and at)):
                states.add(at + 1)
        for at in range(len(found.writers), 0, -1):
            if at in states and value_op(found.writers[at - 1].op) != "":
                states.add(at - 1)
        taken = set(graph.nodes)
        made: dict[str, list[Node]] = {}
        value = root
        if 0 in states and not in_function:
            op, attr = "ReadVariableOp", "dtype"
            if graph[root].op in REFERENCE_VARIABLES:
                op, attr = "Identity", "T"
            value = claim_name(f"{found.writers[0].name}/before", taken)
            made[found.writers[0].name] = [Node(value, op, [root], {attr: dtype})]
        values = {0: value}
        for at, node in enumerate(found.writers, 1):
            if at not in states:
                continue
            nodes = made.setdefault(node.name, [])
            if node.name in found.calls:
                call, value = self._handing_on(node, found.calls[node.name], value, dtype)
                nodes.append(call)
            else:
                nodes += new_value(node, value, dtype, taken)
                value = nodes[-1].name if value_op(node.op) else node.data_inputs[1]
            values[at] = value
        result: list[Node] = []
        written = {node.name for node in found.writers}
        for node in graph:
            after = found.readers.get(node.name, 0)
            if node.name in written:
                result += made.get(node.name, [])
                if node.name in found.readers:  # an output that is a reference: what it holds then
                    update = claim_name(f"{node.name}/update", taken)
                    read = Node(node.name, "Identity", [values[found.readers[node.name]], f"^{update}"], {"T": dtype})
                    result += [node.replace(name=update), read]
                elif node.name not in found.calls:
                    result.append(
                        node.replace(op="NoOp", inputs=node.control_inputs, attrs={}) if in_function else node
                    )
                elif not made.get(node.name):
                    result.append(node)
            elif after or (in_function and node.name in {*found.readers, *found.calls, *found.others}):
                result += self._reading(node, found, values[after], dtype, taken)
            else:
                result.append(node)
        return result, value

    def _reading(self, node: Node, found: _Accesses, value: str, dtype: DType, taken: set[str]) -> Iterable[Node]:
        """What reads a variable, reading a value."""
        if node.name in found.calls:
            return [self._handing_on(node, found.calls[node.name], value, dtype)[0]]
        inputs, waits = list[str](), list(node.control_inputs)
        for ref in node.data_inputs:
            inputs.append(value if canonical(ref) in found.holders else ref)
            if inputs[-1] != ref and node_name(ref) in {writer.name for writer in found.writers}:
                waits.append(f"^{node_name(ref)}")
        node = node.replace(inputs=inputs)
        nodes = [node.with_attrs(T=dtype)] if node.name in found.others and node.op not in _STAYS else []
        nodes = nodes or list(reading_value(node, dtype, taken))
        return [*nodes[:-1], nodes[-1].replace(inputs=[*nodes[-1].data_inputs, *waits])]

    def _handing_on(self, node: Node, use: _Use, value: str, dtype: DType) -> tuple[Node, str]:
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
        scope, function = self._scope(name), self.graph.functions[name]
        assert scope is not None, "accesses() looked at it"
        root = list(scope)[index].name
        found = self.accesses(scope, _results(scope), root)
        assert found is not None, "it was looked at"
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


def _with(values: Sequence[T], place: int, value: T) -> tuple[T, ...]:
    """The values with this one in its place, or behind the last."""
    return (*values[:place], value, *values[place + 1 :])


def _results(scope: Graph) -> list[str]:
    """What a function gives, and what it does besides."""
    return [*scope.outputs, *(node.name for node in scope if is_update(node) or node.op in FUNCTION_CALLS)]


def _functions(node: Node) -> list[str]:
    """The functions of a call; none where it gives them attributes."""
    held = [node.attrs.get(name) for name in function_attributes(node.op)]
    found = [func for value in held for func in (value if isinstance(value, tuple) else (value,))]
    return [func.name for func in found if isinstance(func, Func) and not func.attrs]
