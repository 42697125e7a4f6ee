"""Adds nodes to a graph: unique names in scopes, attributes from the inputs' types and the op's defaults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from pocketgraph.errors import GraphError
from pocketgraph.graph import AttrValue, DType, Graph, Node, Shape, const, node_name, opdefs, parse_ref
from pocketgraph.graph.attr import same_value
from pocketgraph.graph.dtype import INT32, RESOURCE
from pocketgraph.graph.groups import closure
from pocketgraph.kernels.shapes.infer import Inferred, infer


class _Surroundings(Protocol):
    """A loop that nodes are added to.

    Attributes:
        own: the names of its nodes.
        pivot: what runs first in each round.
    """

    own: set[str]
    pivot: str

    def resolved(self, ref: str) -> str:
        """What stands for a tensor in the loop."""
        ...


class GraphBuilder:
    """A graph that nodes are added to.

    Attributes:
        graph: the graph that it began with.
        inferred: what is known of that graph's tensors.
        added: the new nodes, producers first.
        device: the device of nodes that are added.
        loop: the loop that nodes are added to.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.inferred: Inferred = infer(graph)
        self.added: dict[str, Node] = {}
        self.device = ""
        self.loop: _Surroundings | None = None
        self._scope = ""
        self._taken = {name.lower() for name in graph.nodes}
        self._taken |= {name[:end] for name in self._taken for end, letter in enumerate(name) if letter == "/"}

    @contextmanager
    def scope(self, name: str, device: str = "") -> Iterator[str]:
        """Nodes that are added inside get names below this scope; it gets a number where it is taken."""
        before, device_before = self._scope, self.device
        self._scope, self.device = self.unique(name) + "/", device
        try:
            yield self._scope
        finally:
            self._scope, self.device = before, device_before

    def unique(self, name: str) -> str:
        """The name in the present scope, with a number behind it where it is taken; case does not count."""
        return self.unique_in(self._scope, name)

    def unique_in(self, scope: str, name: str) -> str:
        """The same in another scope."""
        wanted = found = scope + name
        count = 0
        while found.lower() in self._taken:
            count += 1
            found = f"{wanted}_{count}"
        self._taken.add(found.lower())
        return found

    @property
    def top_scope(self) -> str:
        """The first part of the present scope."""
        return self._scope.partition("/")[0]

    def put(self, node: Node) -> str:
        """Adds a node as it is; returns its name."""
        self._taken.add(node.name.lower())
        self.added[node.name] = node
        return node.name

    def add(
        self, op: str, *inputs: str | Sequence[str], name: str = "", control: Iterable[str] = (), **attrs: AttrValue
    ) -> str:
        """Adds a node.

        Args:
            inputs: one entry an argument of the op's signature: a tensor, or several for an argument that is a list.
            name: its name in the scope; by default the op's.
            control: names of nodes that run before.
            attrs: attributes; those that the inputs' types and counts say, and defaults, need not be given.

        Returns:
            The name of its first output; the others are ``NAME:1`` and so on.

        Raises:
            GraphError: the op is unknown, or an input's type is not known.
        """
        definition = opdefs.definition(op)
        if len(inputs) != len(definition.inputs):
            raise GraphError(f"{op} takes {len(definition.inputs)} arguments, not {len(inputs)}")
        inferred_attrs: dict[str, AttrValue] = {}  # by the inputs
        refs: list[str] = []
        for argument, given in zip(definition.inputs, inputs, strict=True):
            tensors = [given] if isinstance(given, str) else list(given)
            refs += tensors
            if argument.number_attr:
                inferred_attrs[argument.number_attr] = len(tensors)
            if argument.type_list_attr:
                inferred_attrs[argument.type_list_attr] = tuple(self.dtype(ref).base for ref in tensors)
            elif argument.type_attr and tensors:
                inferred_attrs[argument.type_attr] = self.dtype(tensors[0]).base
        written = definition.written_defaults
        found: dict[str, AttrValue] = {}
        for key, value in {**inferred_attrs, **attrs}.items():
            default = definition.attrs[key].default
            if key in written or default is None or not same_value(value, default):
                found[key] = value
        table = {key: found.get(key, written.get(key)) for key in definition.attrs}
        complete = {key: value for key, value in table.items() if value is not None}
        if self.loop is not None:
            refs = [self.loop.resolved(ref) for ref in refs]
            control = control or ([] if refs else [self.loop.pivot])
        refs += [f"^{node}" for node in control]
        return self._placed(Node(self.unique(name or op), op, refs, complete, self.device))

    def zeros_like(self, ref: str, *, name: str = "") -> str:
        """Zeros in the shape of a tensor, or of the variable behind a handle."""
        if self.dtype(ref) is RESOURCE:
            ref = self.add("ReadVariableOp", ref, dtype=self.graph.producer(ref).dtype("dtype"))
        return self.add("ZerosLike", ref, name=name)

    def const(self, value: Any, dtype: DType = INT32, *, name: str = "Const") -> str:
        """Adds a constant."""
        made = const(self.unique(name), np.asarray(value, dtype.numpy), dtype, device=self.device)
        return self._placed(made if self.loop is None else made.replace(inputs=[f"^{self.loop.pivot}"]))

    def _placed(self, node: Node) -> str:
        if self.loop is not None:
            self.loop.own.add(node.name)
        return self.put(node)

    def dtype(self, ref: str) -> DType:
        """The element type of a tensor.

        Raises:
            GraphError: it is not known.
        """
        name, port, _ = parse_ref(ref)
        node = self.added.get(name)
        dtype: DType | None = None
        if node is not None:
            dtype = opdefs.output_dtypes(node)[port]
        else:
            dtype = self.inferred.dtype(ref)
        if dtype is None:
            raise GraphError("the element type of its output is not known", where=f"node '{name}'")
        return dtype

    def static_shape(self, ref: str) -> Shape:
        """The shape of a tensor of the first graph, as far as known."""
        return self.inferred.shape(ref)

    def value(self, ref: str) -> np.ndarray[Any, Any] | None:
        """The value of a small constant, given or added; None when it is not known."""
        node = self.added.get(node_name(ref))
        if node is not None:
            return node.tensor.numpy() if node.op == "Const" else None
        return self.inferred.value(ref)

    def finished(self, keep: Iterable[str]) -> Graph:
        """The graph with those added nodes that these tensors need."""
        added = self.added
        needed = set(closure(map(node_name, keep), lambda name: map(node_name, added[name].inputs), added.__contains__))
        return self.graph.replace([*self.graph, *(node for node in self.added.values() if node.name in needed)])
