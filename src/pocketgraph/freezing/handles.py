"""Follows the handles of resource variables through one scope: the graph itself, or the body of a function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pocketgraph.errors import FreezeError, option
from pocketgraph.graph import DType, Node, canonical, node_name
from pocketgraph.graph.groups import by_key
from pocketgraph.graph.node import find_source
from pocketgraph.graph.op_traits import ENTER, LOOPS, PASSES_OR_ROUTES

"""Ops that hand a variable's handle on."""
_BODY_PORTS = {"Switch": ("output_false:0", "output_true:0")}  # how function bodies name outputs; else output:0


class NodeScope:
    """One list of nodes, and how its tensors are named.

    In the graph itself a tensor is ``node:1``, in a function's body ``node:output:1`` or an argument's name.
    """

    def __init__(self, nodes: Sequence[Node], *, in_function: bool) -> None:
        self.nodes = nodes
        self.in_function = in_function
        self._users = by_key(
            (self.tensor(ref), (node, at)) for node in nodes for at, ref in enumerate(node.data_inputs)
        )

    def tensor(self, ref: str) -> str:
        """The one spelling of an input."""
        return ref if self.in_function else canonical(ref)

    def outputs(self, node: Node) -> list[str]:
        """The tensors on which a carrier hands its value on."""
        if self.in_function:
            return [f"{node.name}:{port}" for port in _BODY_PORTS.get(node.op, ("output:0",))]
        return [f"{node.name}:{port}" for port in range(2 if node.op == "Switch" else 1)]

    def loop_output(self, node: Node, position: int) -> str:
        """The tensor that a loop gives for one of its variables."""
        return f"{node.name}:output:{position}" if self.in_function else f"{node.name}:{position}"

    def follow(self, handles: Mapping[str, DType]) -> dict[str, DType]:
        """All tensors that hold one of these handles, each with the element type of the variable.

        Raises:
            FreezeError: handles of variables of different types meet, or a handle and something else.
        """
        found: dict[str, DType] = {}
        waiting = list(handles.items())
        while waiting:
            tensor, dtype = waiting.pop()
            known = found.get(tensor)
            if known is not None:
                if known is not dtype:
                    raise FreezeError(
                        f"variables of types {known.name} and {dtype.name} meet in '{tensor}'",
                        hint=f"keep one of them with {option('variable_names_blacklist')}",
                    )
                continue
            found[tensor] = dtype
            for node, position in self._users.get(tensor, ()):
                if node.op in PASSES_OR_ROUTES and (position == 0 or node.op == "Merge"):
                    waiting.extend((output, dtype) for output in self.outputs(node))
                elif node.op in LOOPS:
                    waiting.append((self.loop_output(node, position), dtype))
        for node in self.users(found):
            strangers = [ref for ref in node.data_inputs if self.tensor(ref) not in found]
            if node.op == "Merge" and strangers:
                raise FreezeError(
                    f"a variable that is frozen and one that is not ('{strangers[0]}') meet here",
                    where=f"node '{node.name}'",
                    hint=f"freeze both, or neither ({option('variable_names_blacklist')})",
                )
        return found

    def users(self, tensors: Iterable[str]) -> Iterator[Node]:
        """The nodes that take any of these tensors; a node may come more than once."""
        for tensor in tensors:
            for node, _ in self._users.get(tensor, ()):
                yield node

    def is_entered(self, ref: str) -> bool:
        """Whether a handle comes through the Enter of a loop, which a function's body has none of."""
        nodes = {} if self.in_function else {node.name: node for node in self.nodes}
        source = find_source(nodes, ref, PASSES_OR_ROUTES - ENTER)
        return source is not None and nodes[node_name(source)].op in ENTER

    def taken(self, node: Node, found: Mapping[str, DType]) -> dict[int, DType]:
        """Which of a node's data inputs are handles, by position."""
        tensors = enumerate(map(self.tensor, node.data_inputs))
        return {position: found[tensor] for position, tensor in tensors if tensor in found}
