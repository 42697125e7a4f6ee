"""If, Case and While of TensorFlow 2 as the Switch, Merge, Enter and Exit of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from pocketgraph.errors import FreezeError
from pocketgraph.graph import AttrValue, DType, Graph, Node, canonical, const, node_name, parse_ref
from pocketgraph.graph.dtype import BOOL, INT32
from pocketgraph.graph.edit import claim_name, rename_inputs
from pocketgraph.graph.function_body import FunctionBody, InlinedBody, copied

PARALLEL = 10  # iterations of a loop that says nothing; TensorFlow's own default


Branch = Callable[[str, Sequence[str], Sequence[str]], InlinedBody]
"""Builds one branch under a prefix, from the tensors that it may use and the control inputs of its roots."""


def branch_of(body: FunctionBody) -> Branch:
    """A branch that is a copy of a function."""

    def build(prefix: str, arguments: Sequence[str], controls: Sequence[str]) -> InlinedBody:
        return copied(body, prefix, arguments, controls)

    return build


def lowered_if(
    prefix: str,
    predicate: str,
    arguments: Sequence[str],
    types: Sequence[DType],
    then: Branch,
    otherwise: Branch,
    result_types: Sequence[DType],
    controls: Sequence[str],
) -> InlinedBody:
    """A branch each way behind Switches, and a Merge for each result.

    ::

        y = If(p, x)   ->   y/switch_0 = Switch(x, p)
                            y/then/… of y/switch_0:1,  y/else/… of y/switch_0
                            y/merge_0 = Merge(y/else/…, y/then/…)
    """
    pivot = f"{prefix}/pivot"
    nodes = [Node(pivot, "Switch", [predicate, predicate, *controls], {"T": BOOL})]
    for index, (argument, dtype) in enumerate(zip(arguments, types, strict=True)):
        nodes.append(Node(f"{prefix}/switch_{index}", "Switch", [argument, predicate, *controls], {"T": dtype}))
    sides: list[InlinedBody] = []
    for name, port, build in (("else", 0, otherwise), ("then", 1, then)):
        mark = f"{prefix}/pivot_{name}"
        nodes.append(Node(mark, "Identity", [_port(pivot, port)], {"T": BOOL}))
        switched = [_port(f"{prefix}/switch_{index}", port) for index in range(len(arguments))]
        side = build(f"{prefix}/{name}", switched, [f"^{mark}"])
        nodes.extend(side.nodes)
        sides.append(side)
    if any(len(side.results) != len(result_types) for side in sides):
        raise FreezeError("its branches do not give as many results as it says", where=f"node '{prefix}'")
    results = []
    for index, dtype in enumerate(result_types):
        merge = Node(f"{prefix}/merge_{index}", "Merge", [side.results[index] for side in sides], _merged(dtype))
        nodes.append(merge)
        results.append(merge.name)
    ends = []
    for name, side in zip(("else", "then"), sides, strict=True):
        mark = f"{prefix}/pivot_{name}"
        ends.append(f"{prefix}/{name}_done")
        nodes.append(Node(ends[-1], "Identity", [mark, *(f"^{effect}" for effect in side.effects)], {"T": BOOL}))
    nodes.append(Node(f"{prefix}/branch_done", "Merge", ends, _merged(BOOL)))
    return InlinedBody(nodes, results, [f"{prefix}/branch_done"])


def lowered_case(
    prefix: str,
    index: str,
    arguments: Sequence[str],
    types: Sequence[DType],
    branches: Sequence[Branch],
    result_types: Sequence[DType],
    controls: Sequence[str],
) -> InlinedBody:
    """A chain of branches: the first if the index is 0, else the second if it is 1 …; the last for any other index."""
    if len(branches) == 1:
        return branches[0](prefix, arguments, controls)

    def rest(inner: str, values: Sequence[str], waits: Sequence[str]) -> InlinedBody:
        one = const(f"{inner}/one", np.int32(1), inputs=waits)
        less = Node(f"{inner}/index", "Sub", [values[-1], one.name], {"T": INT32})
        found = lowered_case(f"{inner}/rest", less.name, values[:-1], types, branches[1:], result_types, waits)
        return InlinedBody([one, less, *found.nodes], found.results, found.effects)

    def first(inner: str, values: Sequence[str], waits: Sequence[str]) -> InlinedBody:
        return branches[0](inner, values[:-1], waits)

    zero = const(f"{prefix}/zero", np.int32(0), inputs=[f"^{node_name(index)}", *controls])
    same = Node(f"{prefix}/is_first", "Equal", [index, zero.name], {"T": INT32})
    choice = lowered_if(
        prefix, same.name, [*arguments, index], [*types, INT32], first, rest, result_types, controls
    )  # fmt: skip
    return InlinedBody([zero, same, *choice.nodes], choice.results, choice.effects)


def lowered_while(
    prefix: str,
    arguments: Sequence[str],
    types: Sequence[DType],
    condition: FunctionBody,
    body: FunctionBody,
    controls: Sequence[str],
    parallel_iterations: int = PARALLEL,
) -> InlinedBody:
    """A loop of Enter, Merge, LoopCond, Switch, NextIteration and Exit; a value that the body only hands on does not go
    round.

    ::

        y = While(x)   ->   y/merge_0 = Merge(y/enter_0, y/next_0)        y/loop = LoopCond(y/cond/…)
                            y/switch_0 = Switch(y/merge_0, y/loop)        y/exit_0 = Exit(y/switch_0)
                            y/next_0 = NextIteration(y/body/…)
    """
    if not arguments or len(arguments) != len(types) or len(body.results) != len(arguments):
        raise FreezeError("its body does not give what it takes", where=f"node '{prefix}'")
    same = [_handed_on(body, index) for index in range(len(arguments))]
    if all(same):
        same[0] = False  # a loop needs something that goes round
    frame: dict[str, AttrValue] = {"frame_name": prefix.encode(), "parallel_iterations": parallel_iterations}
    nodes: list[Node] = []
    merges, values, results = [], [], []
    for index, (argument, dtype) in enumerate(zip(arguments, types, strict=True)):
        enter = f"{prefix}/enter_{index}"
        attrs: dict[str, AttrValue] = {"T": dtype, "is_constant": same[index], **frame}
        nodes.append(Node(enter, "Enter", [argument, *controls], attrs))
        if same[index]:
            merges.append(enter)
            values.append(enter)
            results.append(argument)
            continue
        merge, switch, inside = (f"{prefix}/{kind}_{index}" for kind in ("merge", "switch", "value"))
        nodes.append(Node(merge, "Merge", [enter, f"{prefix}/next_{index}"], _merged(dtype)))
        nodes.append(Node(switch, "Switch", [merge, f"{prefix}/loop"], {"T": dtype}))
        nodes.append(Node(inside, "Identity", [_port(switch, 1)], {"T": dtype}))
        nodes.append(Node(f"{prefix}/exit_{index}", "Exit", [switch], {"T": dtype}))
        merges.append(merge)
        values.append(inside)
        results.append(f"{prefix}/exit_{index}")
    first = same.index(False)
    test = copied(condition, f"{prefix}/cond", merges, [f"^{prefix}/merge_{first}"])
    turn = copied(body, f"{prefix}/body", values, [f"^{prefix}/value_{first}"])
    if len(test.results) != 1:
        raise FreezeError("its condition does not give one value", where=f"node '{prefix}'")
    nodes.extend(test.nodes)
    held, extra = as_bool(f"{prefix}/holds", test.results[0], condition.types[0])
    nodes += [*extra, Node(f"{prefix}/loop", "LoopCond", [held])]
    nodes.extend(turn.nodes)
    # a result that hangs on nothing that goes round must wait too, or it would begin a turn after the last one
    waits = [f"^{prefix}/value_{first}"]
    for index, dtype in enumerate(types):
        if not same[index]:
            effects = [f"^{effect}" for effect in turn.effects] if index == first else []
            inputs = [turn.results[index], *waits, *effects]
            nodes.append(Node(f"{prefix}/next_{index}", "NextIteration", inputs, {"T": dtype}))
    return InlinedBody(nodes, results, [f"{prefix}/exit_{first}"])


def with_binary_switches(graph: Graph, outputs: Collection[str] = ()) -> Graph:
    """The graph with a chain of Switches for each of several ways, and one of Merges that join these again.

    ::

        y = _SwitchN(x, i)      ->   y/way_0 = Switch(x, i == 0)    y/way_1 = Switch(y/way_0, i == 1)   …
        z = Merge(a, b, c)      ->   z/rest_1 = Merge(b, c)         z = Merge(a, z/rest_1)

    A Merge of which it is asked which input it takes, by a node or as one of the outputs, stays.
    """
    if not any(node.op == "_SwitchN" for node in graph):
        return graph
    renamed: dict[str, str] = {}
    tests: dict[tuple[str, int], str] = {}
    taken = set(graph.nodes)
    told = {canonical(ref) for node in graph for ref in node.data_inputs} | {canonical(ref) for ref in outputs}
    nodes: list[Node] = []
    for node in graph:
        if node.op == "_SwitchN":
            value, index = node.data_inputs
            ways = int(node.attr("num_outs", 1))
            for way in range(ways - 1):
                test = tests.get((canonical(index), way))
                if test is None:
                    test = claim_name(f"{node_name(index)}/{parse_ref(index).port}/is_{way}", taken)
                    nodes.append(const(claim_name(f"{test}/number", taken), np.int32(way)))
                    nodes.append(Node(test, "Equal", [index, nodes[-1].name], {"T": INT32}))
                    tests[canonical(index), way] = test
                name = claim_name(f"{node.name}/way_{way}", taken)
                nodes.append(Node(name, "Switch", [value, test, *node.control_inputs], {"T": node.dtype("T")}))
                value = nodes[-1].name
                renamed[_port(node.name, way)] = _port(value, 1)
            renamed[_port(node.name, ways - 1)] = value
            nodes.append(Node(node.name, "NoOp", node.control_inputs))
        elif node.op == "Merge" and len(node.data_inputs) > 2 and f"{node.name}:1" not in told:
            *first, rest = node.data_inputs
            for at in range(len(first) - 1, 0, -1):
                name = claim_name(f"{node.name}/rest_{at}", taken)
                nodes.append(Node(name, "Merge", [first[at], rest], _merged(node.dtype("T"))))
                rest = nodes[-1].name
            nodes.append(Node(node.name, "Merge", [first[0], rest, *node.control_inputs], _merged(node.dtype("T"))))
        else:
            nodes.append(node)
    return rename_inputs(graph.replace(nodes), renamed)


def as_bool(name: str, tensor: str, dtype: DType) -> tuple[str, list[Node]]:
    """A predicate as a bool tensor, and the nodes that make it so."""
    if dtype is BOOL:
        return tensor, []
    if dtype.name == "string":
        return name, [Node(name, "ToBool", [tensor], {"T": dtype})]
    zero = const(f"{name}/zero", 0, dtype, inputs=[f"^{node_name(tensor)}"])
    return name, [zero, Node(name, "NotEqual", [tensor, zero.name], {"T": dtype})]


def _merged(dtype: DType) -> dict[str, AttrValue]:
    return {"T": dtype, "N": 2}


def _port(name: str, port: int) -> str:
    return f"{name}:{port}" if port else name


def _handed_on(body: FunctionBody, index: int) -> bool:
    """Whether a body gives an argument back as it got it."""
    nodes = {node.name: node for node in body.nodes}
    ref = body.results[index]
    for _ in range(len(nodes) + 1):
        if ref == body.arguments[index]:
            return True
        node = nodes.get(node_name(ref))
        if node is None or node.op != "Identity" or not node.data_inputs:
            return False
        ref = node.data_inputs[0]
    return False
