"""Copies the body of a function into a graph, in the place of a call."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pocketgraph.errors import GraphError
from pocketgraph.graph import opdefs
from pocketgraph.graph.attr import AttrValue, Func, Parameter
from pocketgraph.graph.colocation import COLOCATED
from pocketgraph.graph.dtype import DType
from pocketgraph.graph.graph import Function
from pocketgraph.graph.groups import closure
from pocketgraph.graph.node import DIGITS, Node, node_name, parse_ref


@dataclass(frozen=True)
class FunctionBody:
    """A function's body, its tensors spelled as in graphs: ``node:2``, or the name of an argument.

    Attributes:
        name: of the function.
        arguments: their names, in order.
        nodes: the body; inputs are arguments or outputs of other nodes of it.
        results: the tensor that each result is, in order.
        types: the element types of the results.
        effects: the nodes that run whenever the function is called, results or not.
    """

    name: str
    arguments: tuple[str, ...]
    nodes: tuple[Node, ...]
    results: tuple[str, ...]
    types: tuple[DType, ...]
    effects: tuple[str, ...] = ()


class InlinedBody(NamedTuple):
    """What stands in the place of a call: nodes, the tensors that are its results, and the names of the nodes that have
    effects, for which others may have to wait."""

    nodes: list[Node]
    results: Sequence[str]
    effects: Sequence[str]


def flat_body(
    function: Function,
    arguments: Sequence[str],
    results: Sequence[str],
    types: Sequence[DType],
    effects: Iterable[str] = (),
    attrs: Mapping[str, AttrValue] | None = None,
    called: Mapping[str, Sequence[str]] | None = None,
) -> FunctionBody:
    """The body with ``node:output:0`` spelled as graphs do, and its parameters replaced by a call's attributes.

    Args:
        function: the function, for its nodes.
        arguments, results, types, effects: what its definition says; see formats.function_def.body.
        attrs: the attributes of the call.
        called: the names of the results of functions that the body calls by name, by that name.

    Raises:
        GraphError: an input of the body is neither an argument nor in the body, or an attribute is missing.
    """
    nodes = {node.name: node for node in function.nodes}
    if len(nodes) < len(function.nodes) or not nodes.keys().isdisjoint(arguments):
        raise GraphError("two of its nodes or arguments have one name", where=f"function '{function.name}'")
    given = attrs or {}

    def flat(text: str) -> str:
        control = text.startswith("^")
        name, _, rest = text.removeprefix("^").partition(":")
        if name not in nodes and name not in arguments:
            raise GraphError(f"its input '{text}' is not in it", where=f"function '{function.name}'")
        if control or name not in nodes:
            return f"^{name}" if control else name
        output, _, index = rest.rpartition(":") if ":" in rest else (rest, "", "0")
        if not output or output.isdecimal():
            return text  # the graph's own spelling
        if len(index) > DIGITS:
            raise GraphError(f"its input '{text[:80]}…' is not in it", where=f"function '{function.name}'")
        port = first_port(nodes[name], output, called) + (int(index) if index.isdecimal() else 0)
        return f"{name}:{port}" if port else name

    body = [_filled(node, [flat(text) for text in node.inputs], given) for node in function.nodes]
    return FunctionBody(
        function.name, tuple(arguments), tuple(body), tuple(map(flat, results)), tuple(types), tuple(effects)
    )  # fmt: skip


def first_port(node: Node, output: str, called: Mapping[str, Sequence[str]] | None = None) -> int:
    """The number of the first tensor of one of an op's outputs, by the output's name; 0 for an op nobody knows.

    Args:
        called: the names of the outputs of functions that are used as ops, by function.

    Raises:
        GraphError: the op or function has no such output.
    """
    definition = opdefs.find(node.op)
    named = called.get(node.op) if called is not None else None
    if named is not None and output in named:
        return named.index(output)
    port = 0
    for argument in definition.outputs if definition is not None and named is None else ():
        if argument.name == output:
            return port
        port += len(opdefs.arg_dtypes(node, argument))
    if definition is not None or named is not None:
        raise GraphError(f"a {node.op} has no output '{output}'", where=f"node '{node.name}'")
    return 0


def spelled(ref: str, nodes: Mapping[str, Node]) -> str:
    """A tensor of a body as function definitions spell it, ``node:output:0``; arguments, which are Placeholders among
    the nodes, by their names.

    Raises:
        GraphError: the op has no such output.
    """
    name, port, control = parse_ref(ref)
    node = nodes[name]
    if control or node.op == "Placeholder":
        return ref
    for argument in opdefs.definition(node.op).outputs:
        count = len(opdefs.arg_dtypes(node, argument))
        if port < count:
            return f"{name}:{argument.name}:{port}"
        port -= count
    raise GraphError(f"it has no output {ref}", where=f"node '{name}'")


def copied(body: FunctionBody, prefix: str, arguments: Sequence[str], controls: Iterable[str] = ()) -> InlinedBody:
    """A copy of the body, each node ``prefix/name``.

    Args:
        arguments: the tensors that take the arguments' places.
        controls: control inputs (``^name``) for the nodes that have no input of their own, so that they run in the
            frame and on the branch of the call.

    Raises:
        GraphError: the number of arguments is wrong.
    """
    if len(arguments) != len(body.arguments):
        raise GraphError(
            f"the function takes {len(body.arguments)} values and is called with {len(arguments)}",
            where=f"function '{body.name}'",
        )
    places = dict(zip(body.arguments, arguments, strict=True))

    def moved(text: str) -> str:
        if text.startswith("^"):
            name = text[1:]
            return f"^{node_name(places[name])}" if name in places else f"^{prefix}/{name}"
        name = node_name(text)
        return places.get(name, f"{prefix}/{text}")

    roots = tuple(dict.fromkeys(controls))
    is_placed = any("_class" in node.attrs for node in body.nodes)
    inside = {node.name for node in body.nodes} if is_placed else set()
    nodes = []
    for node in body.nodes:
        inputs = [moved(text) for text in node.inputs] or roots
        attrs = node.attrs
        if "_class" in attrs:
            attrs = {**attrs, "_class": tuple(_moved_class(attrs["_class"], prefix, inside))}
            if not attrs["_class"]:
                attrs = {key: value for key, value in attrs.items() if key != "_class"}
        nodes.append(node.replace(name=f"{prefix}/{node.name}", inputs=inputs, attrs=attrs))
    return InlinedBody(nodes, list(map(moved, body.results)), [f"{prefix}/{name}" for name in body.effects])


def called_functions(node: Node) -> Iterator[str]:
    """The names of the functions in a node's attributes."""
    for value in node.attrs.values():
        if isinstance(value, Func):
            yield value.name
        elif isinstance(value, tuple) and value and isinstance(value[0], Func):
            yield from (member.name for member in value)


def reachable_functions(nodes: Iterable[Node], functions: Mapping[str, Function]) -> dict[str, Function]:
    """The functions that these nodes call, and those that they call, in the library's order."""

    def callees(nodes: Iterable[Node]) -> Iterable[str]:
        return (name for node in nodes for name in (node.op, *called_functions(node)) if name in functions)

    found = set(closure(callees(nodes), lambda name: callees(functions[name].nodes)))
    return {name: function for name, function in functions.items() if name in found}


def _filled(node: Node, inputs: Sequence[str], given: Mapping[str, AttrValue]) -> Node:
    attrs: dict[str, AttrValue] = {}
    for key, value in node.attrs.items():
        if isinstance(value, Parameter):
            if value.name not in given:
                raise GraphError(f"the call does not say its attribute '{value.name}'", where=f"node '{node.name}'")
            attrs[key] = given[value.name]
        elif isinstance(value, Func) and any(isinstance(inner, Parameter) for inner in value.attrs.values()):
            filled = {
                name: given.get(inner.name, inner) if isinstance(inner, Parameter) else inner
                for name, inner in value.attrs.items()
            }
            attrs[key] = Func(value.name, filled)
        else:
            attrs[key] = value
    return node.replace(inputs=inputs, attrs=attrs)


def _moved_class(value: AttrValue, prefix: str, inside: Collection[str]) -> Iterator[bytes]:
    """Colocations with nodes of the body follow the copy. Those with an argument, which Keras spells ``table/18021``
    where the argument is ``table_18021``, are dropped: TensorFlow loads no graph with a colocation of a node that is
    not there."""
    for entry in value if isinstance(value, tuple) else ():
        if not isinstance(entry, bytes):
            continue
        target = entry.removeprefix(COLOCATED).decode("utf-8", "replace")
        if not entry.startswith(COLOCATED):
            yield entry
        elif target in inside:
            yield COLOCATED + f"{prefix}/{target}".encode()
