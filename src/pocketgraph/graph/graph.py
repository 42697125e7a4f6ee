"""The model in memory: nodes by name, functions, versions and a signature; it does not change, edits make new ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any
from weakref import ref as weak

from pocketgraph.errors import GraphError, UsageError, did_you_mean
from pocketgraph.graph.groups import by_key
from pocketgraph.graph.node import Node, find_source, node_name, parse_ref
from pocketgraph.graph.op_traits import MERGE, PLACEHOLDERS
from pocketgraph.graph.record import Record
from pocketgraph.graph.shape import Shape
from pocketgraph.graph.tensor import Tensor

MERGES = MERGE | {"_XlaMerge"}
"""The ops that run as soon as one of their inputs is there: a cycle through one is a loop."""


class Versions(Record):
    """Which GraphDef version wrote the file (producer) and who may read it; producer 0 means not stated."""

    producer: int = 0
    min_consumer: int = 0
    bad_consumers: tuple[int, ...] = ()


class Function(Record):
    """A function of the graph's library.

    Attributes:
        name: its name.
        nodes: the body.
        encoded: the whole definition as a file held it; formats/ reads and writes it.
    """

    name: str
    nodes: tuple[Node, ...] = ()
    encoded: bytes = b""


DEFAULT_SIGNATURE = "serving_default"
"""The key of the signature that is meant where none is named."""


class Signature(Record):
    """A named entry point: which tensors go in and out under which keys."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    method: str = ""


class _Edits(Record):
    """How a graph came from another one by exchanging nodes for others of the same names.

    Attributes:
        origin: the other graph.
        rewired: the new nodes that read something else than those before them, or are a Merge no more, in graph order.
    """

    origin: weak[Graph]
    rewired: list[Node]


PARTS = ("functions", "versions", "inputs", "outputs", "signatures", "extra", "source", "secret")
"""What a graph has beside its nodes: the constructor's keyword arguments."""


class Graph:
    """An ordered set of nodes with unique names. It does not change; ``replace`` and ``map_nodes`` make changed copies.

    >>> from pocketgraph.graph import Graph, Node, const
    >>> from pocketgraph.graph.dtype import FLOAT
    >>> graph = Graph([const("w", [0.5, 2.0], FLOAT), Node("y", "Neg", ["w"], {"T": FLOAT})], outputs=["y"])
    >>> graph["y"]
    y = Neg(w, T=float)
    >>> changed = graph.map_nodes(lambda node: node.replace(op="Abs") if node.op == "Neg" else node)
    >>> changed["y"].op, graph["y"].op, changed["w"] is graph["w"]
    ('Abs', 'Neg', True)

    Args:
        nodes: in the file's order.
        functions, versions, inputs, outputs, signatures, extra, source, secret: the attributes of these names.

    Raises:
        GraphError: two nodes share a name.

    Attributes:
        nodes: the nodes by name, in the file's order, read-only.
        functions: the library's functions by name.
        versions: see Versions.
        inputs: tensor or node names that will be fed, when known.
        outputs: tensor or node names that will be fetched, when known.
        signatures: named entry points, when the file carried some.
        extra: encoded parts of the file that have no place here, kept for writing.
        source: the file or directory that it was loaded from, where the values of its variables are found; else "".
        secret: it was decrypted, so nothing of it goes to the disk (caches, temporary files) but what ``save`` writes.
    """

    def __init__(
        self,
        nodes: Iterable[Node] = (),
        *,
        functions: Mapping[str, Function] | None = None,
        versions: Versions | None = None,
        inputs: Iterable[str] = (),
        outputs: Iterable[str] = (),
        signatures: Mapping[str, Signature] | None = None,
        extra: bytes = b"",
        source: str = "",
        secret: bool = False,
    ) -> None:
        ordered = nodes if isinstance(nodes, list | tuple) else list(nodes)
        table = {node.name: node for node in ordered}
        if len(table) != len(ordered):
            seen: set[str] = set()
            for node in ordered:
                if node.name in seen:
                    raise GraphError("two nodes have this name", where=f"node '{node.name}'")
                seen.add(node.name)
        self._table = table
        self.nodes: Mapping[str, Node] = MappingProxyType(table)
        self.functions: Mapping[str, Function] = MappingProxyType(dict(functions or {}))
        self.versions = versions or Versions()
        self.inputs: tuple[str, ...] = tuple(inputs)
        self.outputs: tuple[str, ...] = tuple(outputs)
        self.signatures: Mapping[str, Signature] = MappingProxyType(dict(signatures or {}))
        self.extra = extra
        self.source = source
        self.secret = secret
        self._edits: _Edits | None = None

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Pickling, for workers of a cluster; whoever gets it reads no file.

        Raises:
            GraphError: the graph was decrypted; workers may write what they are sent to their disks.
        """
        if self.secret:
            raise GraphError("a model that was decrypted does not leave this process", hint="work without a cluster")
        tables = {"functions": dict(self.functions), "signatures": dict(self.signatures), "extra": bytes(self.extra)}
        return partial(Graph, **{**self._parts(), **tables, "source": ""}), (list(self._table.values()),)

    def _parts(self) -> dict[str, Any]:
        """What makes a copy, beside the nodes: the constructor's keyword arguments."""
        return {name: getattr(self, name) for name in PARTS}

    def replace(self, nodes: Iterable[Node] | None = None, **changes: Any) -> Graph:
        """A copy with other nodes, or other keyword parts of the constructor.

        Args:
            nodes: all nodes of the copy; by default those of this graph.
            changes: other parts, by the constructor's names, such as ``outputs=["y"]``.

        Returns:
            The copy; this graph stays as it is.

        Raises:
            GraphError: two nodes share a name.
            TypeError: ``changes`` names what a Graph has not.
        """
        parts = self._parts()
        unknown = set(changes) - set(parts)
        if unknown:
            raise TypeError(f"a Graph has no {', '.join(sorted(unknown))}")
        parts.update(changes)
        if nodes is not None:
            return Graph(nodes, **parts)
        graph = Graph((), **parts)
        graph._table, graph.nodes, graph._edits = self._table, self.nodes, self._edits
        return graph

    def __iter__(self) -> Iterator[Node]:
        return iter(self._table.values())

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, name: object) -> bool:
        return name in self._table

    def __getitem__(self, name: str) -> Node:
        """The node of this name.

        Raises:
            GraphError: there is none; the message suggests near names.
        """
        try:
            return self.nodes[name]
        except KeyError:
            raise GraphError(f"the graph has no node '{name}'", hint=did_you_mean(name, self.nodes)) from None

    def producer(self, ref: str) -> Node:
        """The node that an input or tensor name refers to.

        Args:
            ref: ``"name"``, ``"name:1"`` or ``"^name"``.

        Returns:
            The node.

        Raises:
            GraphError: there is none; the message suggests near names.
        """
        return self[node_name(ref)]

    def find_producer(self, ref: str, through: Collection[str] = ()) -> Node | None:
        """The node that makes a tensor.

        Args:
            ref: as for ``producer``.
            through: ops that hand on their first input; what makes that is looked for then. With Identity an IdentityN
                does as well, of each of its tensors the input of the same number.

        Returns:
            The node; None when the graph has no such node, or a circle hands on what it takes.
        """
        source = find_source(self.nodes, ref, through)
        return None if source is None else self.nodes[node_name(source)]

    def declared_shape(self, name: str) -> Shape | None:
        """The shape that a placeholder declares; see ``Node.declared_shape``.

        Args:
            name: of the node.

        Returns:
            The shape; None where the node has none.
        """
        return self.nodes[name].declared_shape(self.versions.producer)

    @property
    def public_signatures(self) -> dict[str, Signature]:
        """The signatures but those that TensorFlow 2's loader has for itself (``__saved_model_init_op``)."""
        return {key: signature for key, signature in self.signatures.items() if not key.startswith("__")}

    @cached_property
    def ops(self) -> frozenset[str]:
        """The ops that occur; those of functions' bodies do not count."""
        return frozenset([node.op for node in self._table.values()])

    @cached_property
    def consumers(self) -> Mapping[str, tuple[Node, ...]]:
        """For each node name the nodes that refer to it, data or control, once a reference, in graph order.

        A name that nobody refers to has no entry; a name that no node has may have one.
        """
        table = by_key((node_name(ref), node) for node in self for ref in node.inputs)
        return {name: tuple(nodes) for name, nodes in table.items()}

    def dangling(self, among: Iterable[Node] | None = None) -> list[tuple[str, str]]:
        """(node name, missing bare input name) for every input that refers to no node, in graph order.

        Args:
            among: only the inputs of these nodes.

        Returns:
            A pair for each such input; none for a graph that is whole.
        """
        return self._leading_nowhere(among) if among is not None else list(self._dangling)

    @cached_property
    def _dangling(self) -> tuple[tuple[str, str], ...]:
        return tuple(self._leading_nowhere(self))

    def _leading_nowhere(self, among: Iterable[Node]) -> list[tuple[str, str]]:
        have = self._table
        return [
            (node.name, node_name(ref))
            for node in among
            for ref in node.inputs
            if (ref not in have or ":" in ref or ref.startswith("^")) and node_name(ref) not in have
        ]

    def map_nodes(self, change: Callable[[Node], Node]) -> Graph:
        """The graph with ``change`` applied to every node.

        Args:
            change: takes a node and gives the one that takes its place, or the same.

        Returns:
            A changed copy, or the same graph when nothing changed.

        Raises:
            GraphError: two nodes share a name afterwards.
        """
        table: dict[str, Node] | None = None  # made in the same pass, while the nodes are in the processor's caches
        renamed = False
        rewired = []
        for name, node in self._table.items():
            new = change(node)
            if new is not node:
                if table is None:
                    table = self._table.copy()
                table[name] = new
                renamed = renamed or new.name != name
                if is_rewired(node, new):
                    rewired.append(new)
        if table is None:
            return self
        return self.replace(table.values()) if renamed else self._of_table(table, rewired)

    def reorder(self, nodes: Iterable[Node]) -> Graph:
        """The graph with its own nodes in another order.

        Args:
            nodes: all nodes of this graph, each once.

        Returns:
            The copy in that order.
        """
        return self._of_table({node.name: node for node in nodes}, [])

    def rewired_since(self, origin: Graph) -> list[Node] | None:
        """What reads something else than in the graph that this one was made of, where that is known.

        Args:
            origin: the graph that this one was made of.

        Returns:
            The nodes that have other inputs than the node of the same name in ``origin``, or are no Merge as it was,
            in graph order. None when the graphs may differ in their names, or nobody took note.
        """
        edits = self._edits
        return None if edits is None or edits.origin() is not origin else edits.rewired

    def _of_table(self, table: dict[str, Node], rewired: list[Node]) -> Graph:
        """A copy with these nodes, each under its name."""
        graph = self.replace()
        graph._table = table
        graph.nodes = MappingProxyType(table)
        graph._edits = _Edits(weak(self), rewired)
        return graph

    def constant(self, ref: str) -> Tensor | None:
        """The value that a tensor always has, seen through Identity.

        Args:
            ref: a tensor name.

        Returns:
            The value, or None when it is no constant.
        """
        for _ in range(len(self.nodes) + 1):
            name, port, control = parse_ref(ref)
            node = self.nodes.get(name)
            if node is None or port != 0 or control:
                return None
            if node.op == "Const":
                value = node.attrs.get("value")
                return value if isinstance(value, Tensor) else None
            if node.op not in ("Identity", "StopGradient", "Snapshot") or not node.data_inputs:
                return None
            ref = node.data_inputs[0]
        return None

    def _repr_html_(self) -> str:
        from pocketgraph.graph.notebook import as_html

        return as_html(self.nodes, self._fed(), self.outputs, len(self.functions))

    def __repr__(self) -> str:
        from pocketgraph.pages.quantities import counted

        return f"Graph({counted(len(self), 'node')}, inputs={self._fed()}, outputs={list(self.outputs)})"

    def _fed(self) -> list[str]:
        """The inputs, or the placeholders where nothing states them."""
        return list(self.inputs) or [node.name for node in self if node.op in PLACEHOLDERS]


def is_rewired(old: Node, new: Node) -> bool:
    """Whether a node that takes another one's place may make a cycle or a reference that leads nowhere."""
    return (old.inputs is not new.inputs and old.inputs != new.inputs) or (old.op in MERGES and old.op != new.op)


def check_graph(graph: object, caller: str) -> None:
    """Makes sure that a function for graphs was given one, and not the path of its file.

    Raises:
        UsageError: it was not.
    """
    if not isinstance(graph, Graph):
        raise UsageError(f"{caller} takes a Graph, not {type(graph).__name__}", hint="pocketgraph.load(path) gives one")
