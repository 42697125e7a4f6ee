"""Functions of a graph's library in text, for tests: the text form of graphs has none.

::

    body(counter: int32, x: float) -> counter: int32 = add:z:0, x: float = x, ^write = Assign
    attributes = Function(_construction_context="kEagerRuntime")
    x = Argument(_output_shapes=[[2]])
    one = Const(int32 1)
    add = AddV2(counter, one:output:0, T=int32)

A head, with ``stateful`` before it where the function is: arguments; results, each with the tensor of the body that it
is; nodes that run whenever the function does, behind a ``^``. A type ``$T`` is the call's attribute; ``-> add:z:0, x``
is short for results of type float called result0 and result1. Then what the definition says besides, of the function
and of arguments, and the nodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pocketgraph import formats
from pocketgraph.formats import function_def
from pocketgraph.formats.attr_value import decode_entry, encode_attr_map
from pocketgraph.graph import AttrValue, DType, Function, Graph, Node
from pocketgraph.graph.text_format import parse, print_node
from pocketgraph.protobuf import wire

HEAD = re.compile(r"(stateful )?([\w./>-]+)\((.*)\) -> (.*)")
RESULT = re.compile(r"(?:(\w+): (\$?\w+) = )?(\S+)")
STATEFUL, CONTROL_OUTPUT = 17, 20  # fields of OpDef
ARG, ATTRS = "Argument", "Function"


def with_functions(graph: Graph, lines: Iterable[str]) -> Graph:
    """The graph with the functions of these lines in its library."""
    definitions: list[tuple[re.Match[str], list[str]]] = []
    for line in lines:
        if head := HEAD.fullmatch(line.strip()):
            definitions.append((head, []))
        else:
            definitions[-1][1].append(line)
    if not definitions:
        return graph
    library = b"".join(wire.bytes_field(1, _definition(head, parse("\n".join(body)))) for head, body in definitions)
    return graph.replace(functions=formats.from_bytes(wire.bytes_field(2, library)).functions)


def function_lines(function: Function, line: Callable[[Node], str] = print_node) -> Iterator[str]:
    """A function's lines, for ``with_functions``.

    Args:
        line: prints a node of the body.
    """
    data, stateful, attrs = function.encoded, False, dict[str, AttrValue]()
    types: dict[int, list[str]] = {function_def.INPUT_ARG: [], function_def.OUTPUT_ARG: []}
    arguments = function_def.arguments(function)
    effects: list[str] = []
    extra: list[Node] = []
    for number, start, stop in _fields(data):
        if number == function_def.SIGNATURE:
            for inner, a, b in _fields(data, start, stop):
                if inner in types:
                    types[inner].append(_argument_type(data[a:b]))
                stateful |= inner == STATEFUL
                assert inner in (function_def.NAME, *types, STATEFUL, CONTROL_OUTPUT), inner
        elif number == function_def.ATTR:
            attrs |= [decode_entry(data, start, stop, "")]
        elif number == function_def.CONTROL_RET:
            effects.append("^" + " = ".join(_pair(data[start:stop])))
        elif number == function_def.ARG_ATTR:
            index, said = _argument_attrs(data[start:stop])
            extra += [Node(arguments[index], ARG, (), dict(sorted(said.items())))] if said else []
        else:
            assert number in (3, function_def.RET), number
    given = ", ".join(f"{name}: {dtype}" for name, dtype in zip(arguments, types[function_def.INPUT_ARG], strict=True))
    results = zip(
        function_def.result_names(function),
        types[function_def.OUTPUT_ARG],
        function_def.results(function),
        strict=True,
    )
    outputs = ", ".join([*(f"{name}: {dtype} = {tensor}" for name, dtype, tensor in results), *effects])
    yield f"{'stateful ' * stateful}{function.name}({given}) -> {outputs}"
    if attrs:
        yield print_node(Node("attributes", ATTRS, (), dict(sorted(attrs.items()))), full=True)
    yield from (print_node(node, full=True) for node in extra)
    yield from map(line, function.nodes)


def _definition(head: re.Match[str], lines: Graph) -> bytes:
    """A FunctionDef."""
    stateful, name, given, returned = head.groups()
    nodes = [node for node in lines if node.op not in (ARG, ATTRS)]
    arguments = [part.split(": ") for part in given.split(", ") if part]
    signature = wire.bytes_field(function_def.NAME, name)
    for argument, dtype in arguments:
        signature += wire.bytes_field(function_def.INPUT_ARG, _argument(argument, dtype))
    values = controls = b""
    for place, part in enumerate(part for part in returned.split(", ") if part):
        found = RESULT.fullmatch(part)
        if found is None:
            key, _, value = part.removeprefix("^").partition(" = ")
            signature += wire.bytes_field(CONTROL_OUTPUT, key)
            controls += _entry(function_def.CONTROL_RET, key, value)
        else:
            result = found[1] or f"result{place}"
            signature += wire.bytes_field(function_def.OUTPUT_ARG, _argument(result, found[2] or "float"))
            values += _entry(function_def.RET, result, found[3])
    signature += wire.number_field(STATEFUL, 1) if stateful else b""
    encoded = [wire.bytes_field(function_def.SIGNATURE, signature)]
    encoded += [wire.bytes_field(3, wire.joined(formats.graphdef.encode_node(node))) for node in nodes]
    encoded += [values]
    encoded += _attrs(function_def.ATTR, [node.attrs for node in lines if node.op == ATTRS])
    encoded += [controls]
    places = [argument for argument, _ in arguments]
    for node in lines:
        if node.op == ARG:
            said = wire.joined(_attrs(1, [node.attrs]))
            index = wire.number_field(1, places.index(node.name))
            encoded.append(wire.bytes_field(function_def.ARG_ATTR, index + wire.bytes_field(2, said)))
    return wire.joined(encoded)


def _attrs(number: int, maps: Sequence[Mapping[str, AttrValue]]) -> list[bytes]:
    return [wire.joined(encode_attr_map(number, attrs)) for attrs in maps]


def _argument(name: str, dtype: str) -> bytes:
    if dtype.startswith("$"):
        return wire.bytes_field(1, name) + wire.bytes_field(function_def.ARG_TYPE_ATTR, dtype[1:])
    return wire.bytes_field(1, name) + wire.number_field(function_def.ARG_TYPE, DType.named(dtype).number)


def _argument_type(data: bytes) -> str:
    for number, value, stop in _fields(data):
        if number == function_def.ARG_TYPE:
            return DType.of(value).name
        if number == function_def.ARG_TYPE_ATTR:
            return f"${data[value:stop].decode()}"
    raise AssertionError("an argument without a type")


def _argument_attrs(data: bytes) -> tuple[int, dict[str, AttrValue]]:
    index, attrs = 0, dict[str, AttrValue]()
    for number, start, stop in _fields(data):
        if number == 1:
            index = start
        else:
            attrs |= [decode_entry(data, a, b, "") for _, a, b in _fields(data, start, stop)]
    return index, attrs


def _entry(number: int, key: str, value: str) -> bytes:
    return wire.bytes_field(number, wire.bytes_field(1, key) + wire.bytes_field(2, value))


def _pair(data: bytes) -> list[str]:
    return [data[start:stop].decode() for _, start, stop in _fields(data)]


def _fields(data: bytes, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, int, int]]:
    for _, number, _, a, b in wire.fields(data, start, len(data) if stop is None else stop):
        yield number, a, b
