"""What reads a variable after an assignment of its run takes what was assigned, through calls, branches and loops."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from pocketgraph.errors import FormatError, GraphError
from pocketgraph.formats import function_def
from pocketgraph.freezing.constant_substitution import reading_value
from pocketgraph.freezing.repair.updates import is_update
from pocketgraph.freezing.run_state import without_statistics
from pocketgraph.freezing.variables_in_calls import function_attributes
from pocketgraph.graph import DType, Graph, Node, Shape, canonical, const, node_name, opdefs
from pocketgraph.graph.attr import AttrValue, Func
from pocketgraph.graph.dtype import INT32
from pocketgraph.graph.edit import claim_name
from pocketgraph.graph.function_body import spelled
from pocketgraph.graph.op_traits import FUNCTION_CALLS, LOOPS, REFERENCE_VARIABLES, REFERENCES, ops_with
from pocketgraph.graph.order import descendants, reachable

_NEW_VALUES = {
    "Assign": "",
    "AssignAdd": "AddV2",
    "AssignSub": "Sub",
    "StridedSliceAssign": "TensorStridedSliceUpdate",
    **{f"ScatterNd{end}": f"TensorScatter{end}" for end in ("Update", "Add", "Sub", "Min", "Max")},
}
"""Not a trait: assignments, by what their names have in common (``AssignAdd``, ``AssignAddVariableOp``), and what
computes their variable's new value ("" where it is the operand). ``ScatterAdd`` is ``ScatterNdAdd`` of rows."""
_STAYS = ("VariableShape", "VarIsInitializedOp", "IsVariableInitialized")
"""Not a trait: what no assignment changes."""


def with_assigned_values(graph: Graph, outputs: Collection[str], variables: Iterable[str]) -> Graph:
    """The graph in which what reads a variable after an assignment of the same run takes what was assigned.

    ::

        write = AssignVariableOp(window, frames)
        now = ReadVariableOp(window, ^write)       ->   now = Identity(frames, ^write)

        count = AssignAddVariableOp(steps, one)
        now = ReadVariableOp(steps, ^count)        ->   count/before = ReadVariableOp(steps)
                                                        count/value = AddV2(count/before, one)
                                                        now = Identity(count/value, ^count)

        choice = If(p, steps, then_branch=f)       ->   choice = If(p, steps, choice/before, then_branch=f_assigned)
        now = ReadVariableOp(steps, ^choice)            now = Identity(choice, ^choice)

    A frozen graph has the stored value for all reads. One stays that some assignment may come before or after, that no
    output is computed with but for a batch norm's statistics or the range of a fake quantization, or whose variable is
    changed by an op that is not known here.

    Args:
        graph: with its calls inlined, If, Case and While as they are.
        outputs: what is computed.
        variables: the nodes of those that become constants.
    """
    waiting = [name for name in variables if name in graph]
    library = _Library(graph)
    while True:  # what was assigned to one variable may have been read from another
        for name in waiting:
            found = library.accesses(library.graph, outputs, name)
            if found is not None and found.needs:
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
        calls: those of them that are calls.
        live: the nodes that results are computed with.
        needs: some live one reads what another one changed.
    """

    holders: set[str]
    writers: list[Node]
    readers: dict[str, int]
    calls: dict[str, _Use]
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

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._scopes: dict[str, Graph | None] = {}
        self._uses: dict[tuple[str, int], _Use | None] = {}
        self._made: dict[tuple[str, int, bool], str] = {}

    def accesses(self, graph: Graph, outputs: Iterable[str], root: str) -> _Accesses | None:
        """What uses a variable; None where assignments are in no order or not known."""
        is_reference = graph[root].op in REFERENCE_VARIABLES
        holders, writers, reads = {canonical(root)}, list[Node](), set[str]()
        calls: dict[str, _Use] = {}
        waiting = [canonical(root)]
        while waiting:
            tensor = waiting.pop()
            for node in graph.consumers.get(node_name(tensor), ()):
                places = [at for at, ref in enumerate(node.data_inputs) if canonical(ref) == tensor]
                given: str | None = None
                if not places or node.op in _STAYS:
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
                elif places == [0] and _computes(node.op) is not None:
                    writers.append(node)
                    given = node.name if is_reference else None
                elif is_update(node) and 0 in places:
                    return None
                elif is_reference and node.op not in REFERENCES:
                    reads.add(node.name)
                elif node.op in ops_with("passes") and not is_reference:
                    given = node.name
                elif node.op in ("ReadVariableOp", "ResourceGather", "ResourceGatherNd"):
                    reads.add(node.name)
                else:
                    return None
                if given is not None:
                    holders.add(canonical(given))
                    waiting.append(canonical(given))
        before = {node.name: reachable(graph, [node.name]) for node in writers}
        behind = {node.name: descendants(graph, [node.name]) for node in writers}
        writers.sort(key=lambda node: sum(other.name in before[node.name] for other in writers))
        for at, node in enumerate(writers):
            is_sure = not any(graph[name].op in ops_with("control_flow") for name in before[node.name])
            if not is_sure or any(other.name not in before[node.name] for other in writers[:at]):
                return None
        readers = {}
        for name in reads:
            after = sum(name in behind[node.name] for node in writers)
            if all(name in before[node.name] for node in writers[after:]):
                readers[name] = after
        live = reachable(graph.map_nodes(without_statistics), outputs, data_only=True, missing_ok=True)
        needs = any(after and name in live for name, after in readers.items())
        for at, node in enumerate(writers):
            use = calls.get(node.name)
            needs = needs or (use is not None and node.name in live and (use.needs or (use.reads and at > 0)))
        return _Accesses(holders, writers, readers, calls, live, needs)

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
            argument = list(scope)[index].name if scope is not None else ""
            found = self.accesses(scope, _results(scope), argument) if scope is not None else None
            if found is not None and scope is not None:
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
        self, graph: Graph, found: _Accesses, root: str, dtype: DType, given: str = ""
    ) -> tuple[list[Node], str]:
        """The nodes of a graph in which reads take the values that assignments leave, and the last of these values.

        Args:
            given: in a function the tensor of the value before the first; assignments go, as the caller has the last.
        """
        states = {after for after in found.readers.values() if after}
        states |= {len(found.writers)} if given else set()
        for at, node in enumerate(found.writers):
            use = found.calls.get(node.name)
            if use is not None and (use.needs or (use.reads and (at or given))):
                states.add(at + 1)
        for at in range(len(found.writers), 0, -1):
            if at in states and _computes(found.writers[at - 1].op) != "":
                states.add(at - 1)
        taken = set(graph.nodes)
        made: dict[str, list[Node]] = {}
        value = given
        if 0 in states and not given:
            value = claim_name(f"{found.writers[0].name}/before", taken)
            op, attr = ("Identity", "T") if graph[root].op in REFERENCE_VARIABLES else ("ReadVariableOp", "dtype")
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
                nodes += _computed(node, value, dtype, taken)
                value = nodes[-1].name if _computes(node.op) else node.data_inputs[1]
            values[at] = value
        result: list[Node] = []
        written = {node.name for node in found.writers}
        for node in graph:
            after = found.readers.get(node.name, -1)
            if node.name in written:
                result += made.get(node.name, [])
                if node.name in found.calls:
                    result += [node] if not made.get(node.name) else []
                else:
                    result.append(node.replace(op="NoOp", inputs=node.control_inputs, attrs={}) if given else node)
            elif after > 0 or (after == 0 and given):
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
        nodes = list(reading_value(node.replace(inputs=inputs), dtype, taken))
        return [*nodes[:-1], nodes[-1].replace(inputs=[*nodes[-1].data_inputs, *waits])]

    def _handing_on(self, node: Node, use: _Use, value: str, dtype: DType) -> tuple[Node, str]:
        """A call that is given a variable's value, too, and the tensor of what it leaves, where it changes it."""
        definition = opdefs.definition(node.op)
        attrs = dict(node.attrs)
        index = use.position - (len(definition.inputs) - 1)
        gives = use.writes or node.op in LOOPS
        lists = {definition.inputs[-1].type_list_attr} | ({definition.outputs[-1].type_list_attr} if gives else set())
        port = len(node.attr(definition.outputs[-1].type_list_attr, ()))
        for name in lists:
            attrs[name] = (*node.attr(name, ()), dtype)
        for name in ("output_shapes", "_output_shapes"):
            if gives and node.attr(name, ()):
                attrs[name] = (*node.attr(name), Shape(None))
        for name in function_attributes(node.op):
            has_result = gives and name != "cond"
            held = node.attrs[name]
            changed = [
                Func(self._specialised(func.name, index, has_result, dtype), func.attrs)
                for func in (held if isinstance(held, tuple) else (held,))
                if isinstance(func, Func)
            ]
            attrs[name] = tuple(changed) if isinstance(held, tuple) else changed[0]
        inputs = [*node.data_inputs, value, *node.control_inputs]
        return node.replace(inputs=inputs, attrs=attrs), f"{node.name}:{port}" if port else node.name

    def _specialised(self, name: str, index: int, has_result: bool, dtype: DType) -> str:
        """The name of the function that takes the variable's value as its last argument, and gives it as its last
        result."""
        key = (name, index, has_result)
        if key in self._made:
            return self._made[key]
        scope, function = self._scope(name), self.graph.functions[name]
        assert scope is not None, "accesses() looked at it"
        count = len(function_def.arguments(function))
        argument = claim_name("value", set(scope.nodes))
        given = Node(argument, "Placeholder", [], {"dtype": dtype})
        root = list(scope)[index].name
        nodes = list(scope)
        scope = scope.replace([*nodes[:count], given, *nodes[count:]])
        found = self.accesses(scope, _results(scope), root)
        assert found is not None, "it was looked at"
        nodes, value = self.threaded(scope, found, root, dtype, argument)
        table = {node.name: node for node in nodes}
        body = [node.replace(inputs=[spelled(ref, table) for ref in node.inputs]) for node in nodes[count + 1 :]]
        results = [spelled(ref, table) for ref in scope.outputs]
        self._made[key] = new_name = claim_name(f"{name}_assigned", set(self.graph.functions))
        made = function_def.retyped(
            function, new_name, body, argument_types={}, result_types={},
            renamed=dict(zip(function_def.results(function), results, strict=True)),
            further=(argument, dtype, spelled(value, table) if has_result else ""),
        )  # fmt: skip
        self.graph = self.graph.replace(functions={**self.graph.functions, new_name: made})
        return new_name


def _results(scope: Graph) -> list[str]:
    """What a function gives, and what it does besides."""
    return [*scope.outputs, *(node.name for node in scope if is_update(node) or node.op in FUNCTION_CALLS)]


def _functions(node: Node) -> list[str]:
    """The functions of a call; none where it gives them attributes."""
    held = [node.attrs.get(name) for name in function_attributes(node.op)]
    found = [func for value in held for func in (value if isinstance(value, tuple) else (value,))]
    return [func.name for func in found if isinstance(func, Func) and not func.attrs]


def _computes(op: str) -> str | None:
    """What computes the value that an assignment leaves; "" where it is the operand, None where it is not known."""
    kind = op.removeprefix("Resource").removesuffix("VariableOp")
    is_rows = kind.startswith("Scatter") and not kind.startswith("ScatterNd")
    if kind == op and not opdefs.updates_variable(op):
        return None
    return _NEW_VALUES.get(kind.replace("Scatter", "ScatterNd") if is_rows else kind)


def _computed(node: Node, before: str, dtype: DType, taken: set[str]) -> list[Node]:
    """The nodes that compute what an assignment leaves in its variable, the last of them the value; none where that is
    the operand."""
    op = _computes(node.op)
    if not op:
        return []
    nodes = []
    operands = list(node.data_inputs[1:])
    name = claim_name(f"{node.name}/value", taken)
    if "Scatter" in node.op and "ScatterNd" not in node.op:  # of rows: updates may be one number for all
        rows, updates = operands
        types: dict[str, AttrValue] = {"T": node.dtype("Tindices")}
        last, zero = const(f"{name}/axis", -1, INT32), const(f"{name}/zero", 0, INT32)
        nodes = [
            last, zero,
            Node(f"{name}/rows", "ExpandDims", [rows, last.name], {**types, "Tdim": INT32}),
            Node(f"{name}/old", "GatherV2", [before, rows, zero.name],
                 {"Tparams": dtype, "Tindices": types["T"], "Taxis": INT32}),
            Node(f"{name}/shape", "Shape", [f"{name}/old"], {"T": dtype, "out_type": INT32}),
            Node(f"{name}/updates", "BroadcastTo", [updates, f"{name}/shape"], {"T": dtype, "Tidx": INT32}),
        ]  # fmt: skip
        operands = [f"{name}/rows", f"{name}/updates"]
    kept = {key: held for key, held in node.attrs.items() if key in opdefs.definition(op).attrs}
    return [*nodes, Node(name, op, [before, *operands], {**kept, "T": dtype})]
