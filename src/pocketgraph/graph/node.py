"""One node: a name, an op, inputs in the file's own spelling, attributes, a device."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from pocketgraph.errors import GraphError
from pocketgraph.graph.attr import AttrValue
from pocketgraph.graph.dtype import DType
from pocketgraph.graph.shape import LAST_PRODUCER_WITHOUT_SCALARS, Shape
from pocketgraph.graph.tensor import Tensor


class Ref(NamedTuple):
    """An input taken apart: ``split:1`` is ("split", 1, False), ``^init`` is ("init", -1, True).

    Attributes:
        name: of the node.
        port: which of its outputs; -1 for a control input.
        control: whether it only orders execution.
    """

    name: str
    port: int
    control: bool


DIGITS = 10
"""Of the longest port: ports are 32-bit numbers."""

_new_tuple = tuple.__new__


def parse_ref(text: str) -> Ref:
    """Takes an input or a tensor's name, ``text``, apart.

    ``node``, ``node:0`` and ``^node`` are the graph's spellings; inside functions ``node:output:0`` is kept as the
    name ``node:output``. A suffix that is not a number, or one of more digits than any port has, is part of the name.
    """
    if ":" not in text and text[:1] != "^":
        return _new_tuple(Ref, (text, 0, False))  # as Ref(…), in two thirds of its time
    if text.startswith("^"):
        return _new_tuple(Ref, (text[1:], -1, True))
    name, colon, port = text.rpartition(":")
    if colon and port.isdecimal() and len(port) <= DIGITS:
        return _new_tuple(Ref, (name, int(port), False))
    return _new_tuple(Ref, (text, 0, False))


def node_name(text: str) -> str:
    """The node's name in ``text``, an input or a tensor's name: ``split`` of ``split:1`` and of ``^split``."""
    if text.startswith("^"):
        return text[1:]
    if ":" not in text:
        return text
    name, _, port = text.rpartition(":")
    return name if port.isdecimal() and len(port) <= DIGITS else text


def canonical(text: str) -> str:
    """``text``, an input or a tensor's name, with the port always written: ``n`` → ``n:0``, ``^n`` stays."""
    if ":" not in text:
        return text if text.startswith("^") else f"{text}:0"
    if text.endswith(":0"):
        return text
    ref = parse_ref(text)
    return text if ref.control else f"{ref.name}:{ref.port}"


_NO_ATTRS: Mapping[str, AttrValue] = MappingProxyType({})


class Node:
    """A node. It does not change; ``replace`` makes a changed copy.

    A file reader may make nodes of a class of its own, which decode their attributes when somebody asks (``decoded``)
    and tell the writer where they lie; a changed copy is a plain Node.

    >>> from pocketgraph.graph.dtype import FLOAT
    >>> node = Node("y", "MatMul", ["x", "split:1", "^init"], {"T": FLOAT, "transpose_a": False})
    >>> node.data_inputs, node.control_inputs, node.attr("T")
    (('x', 'split:1'), ('^init',), float)
    >>> node.replace(inputs=["x", "w"]).with_attrs(transpose_a=None)
    y = MatMul(x, w, T=float)

    Args:
        name, op, inputs, attrs, device, extra: the attributes of these names.

    Attributes:
        name: unique in its graph.
        op: the op type.
        inputs: data inputs first, as ``name`` or ``name:port``, then control inputs as ``^name``.
        attrs: the attributes by name, read-only: int, float, bool, bytes, DType, Shape, Tensor, Func, tuples of these.
        device: the requested device, mostly ``""``.
        extra: encoded fields of the node that pocketgraph has no use for, kept for writing.
    """

    __slots__ = ("_attrs", "_extra", "device", "inputs", "name", "op")

    def __init__(
        self,
        name: str,
        op: str,
        inputs: Iterable[str] = (),
        attrs: Mapping[str, AttrValue] | None = None,
        device: str = "",
        *,
        extra: bytes = b"",
    ) -> None:
        self.name = name
        self.op = op
        self.inputs: tuple[str, ...] = tuple(inputs)
        self.device = device
        self._extra = extra
        self._attrs: Mapping[str, AttrValue] | None = (
            _NO_ATTRS
            if attrs is None
            else attrs
            if isinstance(attrs, MappingProxyType)
            else MappingProxyType(dict(attrs))
        )

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _unpickled, (self.name, self.op, self.inputs, dict(self.attrs), self.device, bytes(self.extra))

    @property
    def attrs(self) -> Mapping[str, AttrValue]:
        """The attributes by name, read-only."""
        table = self._attrs
        if table is None:
            table = self._attrs = self.decoded()
        return table

    def decoded(self) -> Mapping[str, AttrValue]:
        """The attributes of a node that was made without them; called once, by ``attrs``.

        Returns:
            The attributes by name.
        """
        return _NO_ATTRS

    @property
    def extra(self) -> bytes:
        """Encoded fields of the NodeDef that this version does not know; written back as they came."""
        return self._extra

    def replace(
        self,
        *,
        name: str | None = None,
        op: str | None = None,
        inputs: Iterable[str] | None = None,
        attrs: Mapping[str, AttrValue] | None = None,
        device: str | None = None,
    ) -> Node:
        """A copy with some parts exchanged.

        Args:
            name, op, inputs, attrs, device: the new parts; None for what stays as it is.

        Returns:
            The copy; this node stays as it is.
        """
        return Node(
            self.name if name is None else name,
            self.op if op is None else op,
            self.inputs if inputs is None else inputs,
            self.attrs if attrs is None else attrs,
            self.device if device is None else device,
            extra=self.extra,
        )

    def without_waits(self, gone: Collection[str]) -> Node:
        """The node without its control inputs from some nodes.

        Args:
            gone: names of these nodes.

        Returns:
            The node without them; the same node where it has none.
        """
        if not any(ref[1:] in gone for ref in self.control_inputs):
            return self
        return self.replace(inputs=[ref for ref in self.inputs if not (ref.startswith("^") and ref[1:] in gone)])

    def with_attrs(self, **changes: AttrValue | None) -> Node:
        """A copy with other attributes.

        Args:
            changes: attributes to set, by name; None drops one.

        Returns:
            The copy; this node stays as it is.
        """
        attrs = dict(self.attrs)
        for key, value in changes.items():
            if value is None:
                attrs.pop(key, None)
            else:
                attrs[key] = value
        return self.replace(attrs=attrs)

    @property
    def data_inputs(self) -> tuple[str, ...]:
        """The inputs that carry tensors."""
        inputs = self.inputs
        if "^" not in "".join(inputs):  # this asks all of them at once
            return inputs
        return tuple([i for i in inputs if not i.startswith("^")])

    @property
    def control_inputs(self) -> tuple[str, ...]:
        """The inputs that only order execution, each with its ``^``."""
        return tuple([i for i in self.inputs if i.startswith("^")])

    def attr(self, name: str, default: Any = None) -> Any:
        """One attribute's value.

        Args:
            name: of the attribute.
            default: what to give when the node has none; defaults of ops are in graph.opdefs.

        Returns:
            The value, or the default.
        """
        return self.attrs.get(name, default)

    def dtype(self, name: str = "T", default: DType | None = None) -> DType:
        """The value of a type attribute.

        Args:
            name: of the attribute.
            default: what to give when the node has none.

        Returns:
            The type.

        Raises:
            GraphError: the attribute is missing and there is no default, or it is no type.
        """
        value = self.attrs.get(name, default)
        if not isinstance(value, DType):
            raise GraphError(f"the {self.op} has no type attribute '{name}'", where=f"node '{self.name}'")
        return value

    def shape(self, name: str = "shape") -> Shape | None:
        """The value of a shape attribute.

        Args:
            name: of the attribute.

        Returns:
            The shape, or None when it is missing.
        """
        value = self.attrs.get(name)
        return value if isinstance(value, Shape) else None

    def declared_shape(self, producer: int) -> Shape | None:
        """The shape that a placeholder declares.

        [] says up to version 21 of a GraphDef that none is known: then what was inferred in training, if it has a rank.

        Args:
            producer: the version of the GraphDef.

        Returns:
            The shape; None where the node has none.
        """
        shape, inferred = self.shape(), self.attrs.get("_output_shapes")
        if shape is None or shape.rank != 0 or producer > LAST_PRODUCER_WITHOUT_SCALARS or not inferred:
            return shape
        first = inferred[0] if isinstance(inferred, tuple) else None
        return first if isinstance(first, Shape) and first.rank else shape

    @property
    def tensor(self) -> Tensor:
        """The value of a ``Const``.

        Raises:
            GraphError: there is none.
        """
        value = self.attrs.get("value")
        if not isinstance(value, Tensor):
            raise GraphError(f"the {self.op} has no tensor attribute 'value'", where=f"node '{self.name}'")
        return value

    def __repr__(self) -> str:
        from pocketgraph.graph.text_printer import node_line  # seldom needed, and it compiles expressions

        return node_line(self.name, self.op, self.inputs, self.attrs, self.device)


def const(name: str, value: Any, dtype: DType | None = None, *, inputs: Iterable[str] = (), device: str = "") -> Node:
    """A ``Const`` node.

    Args:
        name: of the node.
        value: an array, a number, nested lists, or a Tensor.
        dtype: the element type; by default the value's own. A Tensor keeps its own.
        inputs: control inputs, such as ``^init``.
        device: as for a Node.
    """
    tensor = value if isinstance(value, Tensor) else Tensor.from_numpy(value, dtype)
    return Node(name, "Const", inputs, {"dtype": tensor.dtype, "value": tensor}, device)


def _unpickled(
    name: str, op: str, inputs: tuple[str, ...], attrs: dict[str, AttrValue], device: str, extra: bytes
) -> Node:
    return Node(name, op, inputs, attrs, device, extra=extra)


def further_outputs(nodes: Iterable[Node], sources: Collection[str]) -> list[Ref]:
    """The outputs beyond the first of ``sources`` (names of nodes) that some of these nodes read; sorted."""
    refs = {parse_ref(ref) for node in nodes for ref in node.data_inputs}
    return sorted(ref for ref in refs if ref.port and ref.name in sources)


def find_source(nodes: Mapping[str, Node], ref: str, through: Collection[str], fed: Collection[str] = ()) -> str | None:
    """The tensor behind the nodes that hand it on, as its reader spells it; None where ``Graph.find_producer`` is.

    Args:
        nodes: by name.
        ref, through: as for ``Graph.find_producer``.
        fed: tensors (``node:0``) whose values come from outside, behind which is nothing to look for.
    """
    for _ in range(len(nodes) + 1):
        node = nodes.get(node_name(ref))
        if node is None:
            return None
        by_number = node.op == "IdentityN" and ("Identity" in through or node.op in through)
        port = parse_ref(ref).port if by_number else 0
        if not (by_number or node.op in through) or not 0 <= port < len(node.data_inputs):
            return ref
        if fed and canonical(ref) in fed:
            return ref
        ref = node.data_inputs[port]
    return None
