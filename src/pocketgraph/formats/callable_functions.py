"""Signatures of a SavedModel that has none: its functions as Python calls them, such as a module's ``__call__``.

``tf.saved_model.save(module, path)`` without ``signatures=`` keeps functions in the library only; which values they
capture stands in the objects beside the graph.

Source: tensorflow/core/protobuf/{saved_object_graph,struct}.proto, and tensorflow/python/checkpoint for the keys of
checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pocketgraph.formats.function_def import argument_types, arguments, result_types
from pocketgraph.formats.tensor_proto import dimensions
from pocketgraph.graph import AttrValue, Func, Graph, Node, Shape, Signature, Tensor, node_name
from pocketgraph.graph.edit import claim_name
from pocketgraph.graph.graph import DEFAULT_SIGNATURE
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import DEEPEST, LEN, VARINT, Buffer, WireError, damage_told

OBJECT_GRAPH = 7  # of MetaGraphDef
NODES, CONCRETE = 1, 2  # of SavedObjectGraph
CHILDREN, FUNCTION, VARIABLE, CONSTANT = 1, 6, 7, 9  # of SavedObject
BOUND, TAKES, GIVES = 2, 3, 4  # of SavedConcreteFunction
TENSOR_SPEC, TYPE_SPEC, BOUNDED_SPEC, LIST, TUPLE, DICT, NAMED_TUPLE = 33, 34, 35, 51, 52, 53, 54  # of StructuredValue
TRUE = b"\x70\x01"  # a StructuredValue's bool_value
MAIN = "__call__"
_KEY = "/.ATTRIBUTES/VARIABLE_VALUE"

Span = tuple[int, int]


@dataclass
class _Object:
    """An object of the module: what it holds by name, and what it is; of a function also its arguments' defaults."""

    children: dict[str, int] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    defaults: list[bytes] = field(default_factory=list)
    variable: str = ""
    constant: str = ""


@dataclass
class _Spec:
    """A tensor that a function takes or gives: its key in a dictionary and its own name, "" without, and its shape."""

    key: str
    name: str
    shape: Shape


@dataclass
class _Call:
    """A function with fixed types: the objects that it captures, what it takes and what it gives."""

    captures: list[int]
    takes: list[_Spec]
    gives: list[_Spec]
    values: list[bytes]  # of its arguments, encoded: specs of tensors, and the values of Python that it is made for

    def unlike(self, defaults: list[bytes]) -> tuple[int, int]:
        """How many of its last arguments are not their defaults, and how many are True, as ``training`` may be."""
        last = self.values[max(len(self.values) - len(defaults), 0) :]
        return sum(a != b for a, b in zip(last, defaults, strict=False)), self.values.count(TRUE)


def with_callable_functions(graph: Graph, encoded: bytes) -> Graph:
    """The graph with a node that calls each function of the module, and signatures of their names.

    ``__call__`` is ``serving_default``. Of a function for several values of Python the first is that for its defaults,
    such as ``training=False``. One is left out that captures what is no variable and no constant, such as a table.

    Raises:
        FormatError: the objects are damaged.
    """
    with damage_told("the objects of the module are damaged"):
        objects, calls = _read(encoded)
    if not objects:
        return graph
    handles = _handles(graph, objects)
    nodes: list[Node] = []
    signatures: dict[str, Signature] = {}
    children = objects[0].children.items()
    names = {name: child for name, child in children if name == MAIN or (name.isidentifier() and name[0] != "_")}
    taken = {*graph.nodes, *names}
    for name, child in names.items():
        for number, function in enumerate(_by_default(objects[child], calls) if child < len(objects) else ()):
            captured = [handles.get(place, "") for place in calls[function].captures]
            key = (DEFAULT_SIGNATURE if name == MAIN else name) + (f"_{number}" if number else "")
            if function not in graph.functions or not all(captured):
                continue
            key = key if key == name and key not in graph else claim_name(key, taken)
            made, signatures[key] = _called(graph, key, function, calls[function], captured, taken)
            nodes += made
    return graph.replace([*graph, *nodes], signatures={**graph.signatures, **signatures}) if nodes else graph


def _by_default(one: _Object, calls: dict[str, _Call]) -> list[str]:
    """The functions of an object that are known; first the one that a call without optional arguments takes."""
    return sorted((name for name in one.functions if name in calls), key=lambda name: calls[name].unlike(one.defaults))


def _called(
    graph: Graph, key: str, name: str, call: _Call, captured: list[str], taken: set[str]
) -> tuple[list[Node], Signature]:
    """The nodes that feed and call a function, and their signature."""
    function = graph.functions[name]
    types, given = tuple(argument_types(function)), tuple(result_types(function))
    names = arguments(function)
    nodes: list[Node] = []
    inputs: dict[str, str] = {}
    for at, argument in enumerate(names[: len(names) - len(captured)]):
        spec = call.takes[at] if at < len(call.takes) else _Spec("", "", Shape(None))
        fed = claim_name(f"{key}_{argument}", taken)
        nodes.append(Node(fed, "Placeholder", (), {"dtype": types[at], "shape": spec.shape}))
        inputs[claim_name(spec.key or spec.name or argument, set(inputs))] = f"{fed}:0"
    operands = [*(node.name for node in nodes), *captured]
    attrs: dict[str, AttrValue] = {"Tin": types, "Tout": given, "f": Func(name, {})}
    if len(call.gives) == len(given):
        attrs["_output_shapes"] = tuple(spec.shape for spec in call.gives)
    nodes.append(Node(key, "StatefulPartitionedCall", operands, attrs))
    keys = [spec.key for spec in call.gives]
    if len(set(keys) - {""}) < len(given):
        keys = [f"output_{at}" for at in range(len(given))]
    return nodes, Signature(inputs, {output: f"{key}:{at}" for at, output in enumerate(keys)})


def _handles(graph: Graph, objects: list[_Object]) -> dict[int, str]:
    """The node that holds each object: of a variable the one that is restored under its key, of a constant its own."""
    restored = dict(_restored(graph))
    named: dict[str, str] = {}
    for node in graph:
        if node.op == "VarHandleOp":
            shared = node.attr("shared_name", b"")
            named[shared.decode("utf-8", "replace") if isinstance(shared, bytes) else ""] = node.name
    found: dict[int, str] = {}
    waiting, seen = [(0, "")], {0}
    for place, path in waiting:
        one = objects[place]
        if one.variable:
            found[place] = restored.get(path + _KEY) or named.get(one.variable, "")
        elif one.constant in graph:
            found[place] = one.constant
        for name, child in one.children.items():
            if child not in seen and child < len(objects):
                seen.add(child)
                escaped = name.replace(".", "..").replace("/", ".S")
                waiting.append((child, f"{path}/{escaped}" if path else escaped))
    return found


def _restored(graph: Graph) -> Iterator[tuple[str, str]]:
    """Which key of the checkpoint goes into which variable's handle, as the function that restores them says."""
    for node in graph:
        called = node.attr("f")
        function = graph.functions.get(called.name) if isinstance(called, Func) else None
        if function is None or not any(inner.op == "RestoreV2" for inner in function.nodes):
            continue
        inside = {inner.name: inner for inner in function.nodes}
        places = {name: at for at, name in enumerate(arguments(function))}
        for inner in function.nodes:
            argument, value = _input(inner, 0), inside.get(_producer(_input(inner, 1)))
            if inner.op != "AssignVariableOp" or argument not in places or value is None or value.op != "Identity":
                continue
            source, _, at = _input(value, 0).rpartition(":")
            reader = inside.get(_producer(source))
            listed = inside.get(_producer(_input(reader, 1))) if reader is not None else None
            keys = listed.attr("value") if listed is not None else None
            if isinstance(keys, Tensor) and at.isdigit() and int(at) < keys.size:
                key = keys.numpy().ravel()[int(at)]
                handle = _input(node, places[argument])
                if isinstance(key, bytes) and handle:
                    yield key.decode("utf-8", "replace"), node_name(handle)


def _input(node: Node, at: int) -> str:
    return node.inputs[at] if at < len(node.inputs) else ""


def _producer(text: str) -> str:
    """The node that an input of a function's body, ``node:output:0``, comes from."""
    return text.partition(":")[0]


def _read(data: bytes) -> tuple[list[_Object], dict[str, _Call]]:
    objects: list[_Object] = []
    calls: dict[str, _Call] = {}
    for graph in _inside(data, (0, len(data)), OBJECT_GRAPH):
        objects += [_object(data, span) for span in _inside(data, graph, NODES)]
        for entry in _inside(data, graph, CONCRETE):
            name = _text(data, entry, 1)
            for span in _inside(data, entry, 2):
                takes, gives = (
                    [spec for part in _inside(data, span, number) for spec in _specs(data, part)]
                    for number in (TAKES, GIVES)
                )
                values = [value for part in _inside(data, span, TAKES) for value in _arguments(data, part)]
                calls[name] = _Call(_numbers(data, span, BOUND), takes, gives, values)
    return objects, calls


def _object(data: bytes, span: Span) -> _Object:
    found = _Object()
    for child in _inside(data, span, CHILDREN):
        found.children[_text(data, child, 2)] = next(iter(_numbers(data, child, 1)), 0)
    for function in _inside(data, span, FUNCTION):
        found.functions += [wire.text(data, *part) for part in _inside(data, function, 1)]
        for spec in _inside(data, function, 2):
            found.defaults += _defaults(data, spec)
    for variable in _inside(data, span, VARIABLE):
        found.variable = _text(data, variable, 6) or "Variable"
    for constant in _inside(data, span, CONSTANT):
        found.constant = _text(data, constant, 1)
    return found


def _defaults(data: bytes, spec: Span) -> list[bytes]:
    """The defaults of the last arguments of a function's FunctionSpec, encoded: Python's ``FullArgSpec.defaults``."""
    listed = [part for whole in _inside(data, spec, 1) for part in _inside(data, whole, NAMED_TUPLE)]
    entries = [entry for part in listed for entry in _inside(data, part, 2) if _text(data, entry, 1) == "defaults"]
    return [value for entry in entries for part in _inside(data, entry, 2) for value in _values(data, part)]


def _arguments(data: bytes, span: Span) -> list[bytes]:
    """The arguments by position of the pair of them and those by name, encoded."""
    pairs = [_inside(data, part, 1) for part in _inside(data, span, TUPLE)]
    return [value for pair in pairs for value in _values(data, pair[0])] if all(pairs) else []


def _values(data: bytes, span: Span) -> list[bytes]:
    """The values of a tuple, encoded."""
    return [bytes(data[a:b]) for part in _inside(data, span, TUPLE) for a, b in _inside(data, part, 1)]


def _specs(data: bytes, span: Span, key: str = "", depth: int = 0) -> Iterator[_Spec]:
    """The tensors of a structure in the order in which functions take them: those of a dictionary by their keys."""
    if depth > DEEPEST:
        raise WireError(span[0], f"structures lie in each other more than {DEEPEST} deep")
    for _, number, kind, start, stop in wire.fields(data, *span):
        if kind != LEN:
            continue
        inner = (start, stop)
        if number in (TENSOR_SPEC, BOUNDED_SPEC):
            sizes = next((dimensions(data, *part) for part in _inside(data, inner, 2)), None)
            yield _Spec(key, _text(data, inner, 1), Shape(sizes))
        elif number == TYPE_SPEC:  # of several tensors, such as a ragged one's values and where its rows begin
            for _ in range(next(iter(_numbers(data, inner, 4)), 0)):
                yield _Spec(key, "", Shape(None))
        elif number in (LIST, TUPLE):
            for part in _inside(data, inner, 1):
                yield from _specs(data, part, key, depth + 1)
        elif number in (DICT, NAMED_TUPLE):
            entries = _inside(data, inner, 1 if number == DICT else 2)
            keyed = [(_text(data, entry, 1), _inside(data, entry, 2)) for entry in entries]
            for name, values in sorted(keyed) if number == DICT else keyed:
                for part in values:
                    yield from _specs(data, part, name, depth + 1)


def _inside(data: Buffer, span: Span, number: int) -> list[Span]:
    """Where the messages or strings of one field lie."""
    return wire.spans(data, *span, number)


def _text(data: Buffer, span: Span, number: int) -> str:
    return "".join(wire.text(data, *part) for part in _inside(data, span, number))


def _numbers(data: Buffer, span: Span, number: int) -> list[int]:
    """The numbers of one field, packed or not."""
    found: list[int] = []
    for _, n, kind, value, stop in wire.fields(data, *span):
        if (n, kind) == (number, VARINT):
            found.append(value)
        elif (n, kind) == (number, LEN):
            found += wire.packed_varints(data, value, stop).tolist()
    return found
