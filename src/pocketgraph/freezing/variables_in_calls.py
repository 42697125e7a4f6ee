"""Functions that are called with a variable's handle become functions that are called with its value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from pocketgraph.errors import FreezeError
from pocketgraph.formats import function_def
from pocketgraph.freezing.handles import NodeScope
from pocketgraph.graph import DType, Function, Node, Shape, Tensor, opdefs
from pocketgraph.graph.attr import Func
from pocketgraph.graph.function_body import called_functions
from pocketgraph.graph.groups import by_key, closure
from pocketgraph.graph.op_traits import LOOPS


def function_attributes(op: str) -> list[str]:
    """The attributes by which an op of FUNCTION_CALLS names the functions that it calls, in its signature's order."""
    return [name for name, attr in opdefs.definition(op).attrs.items() if attr.kind in ("func", "list(func)")]


_NUMBERED = re.compile(r"_\d+$")

Rewrite = Callable[
    [NodeScope, Mapping[str, DType], "FrozenFunctions", Mapping[str, Tensor]], "tuple[list[Node], dict[str, str]]"
]
"""What constants.rewritten does to a scope."""


class FrozenFunctions:
    """The functions of a graph, and those of them that were rewritten for the types of a call."""

    def __init__(self, functions: Mapping[str, Function], rewrite: Rewrite) -> None:
        self._functions = functions
        self._rewrite = rewrite
        self._names: dict[tuple[str, tuple[tuple[int, DType], ...], bool], str] = {}
        self._taken = set(functions)
        self._made: dict[str, tuple[str, Function]] = {}  # by name: from which function, and the new one

    def call(self, node: Node, positions: Mapping[int, DType]) -> Node:
        """The call with the values of variables at these input positions, of functions that take them.

        Raises:
            FreezeError: a function is missing, returns a handle, or uses it in a way that a constant cannot be used.
        """
        arguments = opdefs.definition(node.op).inputs  # the last of them is the list that goes to the functions
        listing = arguments[-1].type_list_attr
        types = {position - len(arguments) + 1: dtype for position, dtype in positions.items()}
        listed = node.attrs.get(listing)
        if not isinstance(listed, tuple) or any(not 0 <= index < len(listed) for index in types):
            raise FreezeError(f"its '{listing}' does not fit its inputs", where=f"node '{node.name}'")
        attrs = dict(node.attrs)
        attrs[listing] = tuple(types.get(index, dtype) for index, dtype in enumerate(listed))
        for name in ("output_shapes", "_output_shapes"):  # a loop gives back what it takes; a handle is a scalar
            shapes = attrs.get(name)
            if node.op in LOOPS and isinstance(shapes, tuple):
                attrs[name] = tuple(Shape(None) if index in types else shape for index, shape in enumerate(shapes))
        for name in function_attributes(node.op):
            value = node.attrs.get(name)
            returns = node.op in LOOPS and name == "body"
            if isinstance(value, Func):
                attrs[name] = self._called(value, types, returns)
            elif isinstance(value, tuple):
                attrs[name] = tuple(self._called(v, types, returns) if isinstance(v, Func) else v for v in value)
        return node.replace(attrs=attrs)

    def after(self, nodes: Iterable[Node]) -> dict[str, Function]:
        """The library of the rewritten graph: a rewritten function takes the place of the one it was made from, which
        stays only where something still calls it."""
        if not self._made:
            return dict(self._functions)
        made_from = by_key(self._made.values())
        kept = [f for name, f in self._functions.items() if name not in made_from]
        called = {name for node in nodes for name in called_functions(node)}
        for function in [*kept, *(function for _, function in self._made.values())]:
            called |= {name for node in function.nodes for name in called_functions(node)}

        def callees(name: str) -> Iterable[str]:
            return (other for node in self._functions[name].nodes for other in called_functions(node))

        called |= set(closure(called, callees, made_from.__contains__))  # an original that stays keeps what it calls
        result: dict[str, Function] = {}
        for name, function in self._functions.items():
            if name not in made_from or name in called:
                result[name] = function
            for new_function in made_from.get(name, ()):
                result[new_function.name] = new_function
        return result

    def _called(self, func: Func, types: Mapping[int, DType], returns: bool) -> Func:
        return Func(self._specialised(func.name, types, returns), func.attrs)

    def _specialised(self, name: str, types: Mapping[int, DType], returns: bool) -> str:
        """The name of the function for these argument types; ``returns`` for a loop's body, which gives back what it
        takes."""
        key = (name, tuple(sorted(types.items(), key=lambda item: item[0])), returns)
        if key in self._names:
            return self._names[key]
        function = self._functions.get(name)
        if function is None:
            raise FreezeError(f"the graph's library has no function '{name}'")
        new_name = self._names[key] = self._unused(_NUMBERED.sub("", name) + "_frozen_")
        names = function_def.arguments(function)
        if any(index >= len(names) for index in types):
            raise FreezeError(f"it takes {len(names)} arguments and is called with more", where=f"function '{name}'")
        scope = NodeScope(function.nodes, in_function=True)
        handles = scope.follow({names[index]: dtype for index, dtype in types.items()})
        given = function_def.results(function)
        results = {index: handles[tensor] for index, tensor in enumerate(given) if tensor in handles}
        if results != (dict(types) if returns else {}):
            raise FreezeError("a function returns a variable, which cannot be followed", where=f"function '{name}'")
        nodes, renamed = self._rewrite(scope, handles, self, {})
        made = function_def.retyped(
            function, new_name, nodes, argument_types=types, result_types=results, renamed=renamed
        )
        self._made[new_name] = (name, made)
        return new_name

    def _unused(self, base: str) -> str:
        number = len(self._names)
        while f"{base}{number}" in self._taken:
            number += 1
        self._taken.add(f"{base}{number}")
        return f"{base}{number}"


def has_function(node: Node) -> bool:
    """Whether a node names a function."""
    return any(called_functions(node))
