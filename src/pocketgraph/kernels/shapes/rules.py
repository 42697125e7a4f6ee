"""The table of shape rules: for each op, from input shapes (and values) to output shapes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

import numpy as np

from pocketgraph.errors import GraphError
from pocketgraph.graph import Node, Shape
from pocketgraph.graph.shape import UNKNOWN
from pocketgraph.kernels.op_table import OpTable
from pocketgraph.kernels.shapes.algebra import Dim, dims_of
from pocketgraph.kernels.shapes.partial_values import Known


class ShapeCall:
    """One node with what is known of its data inputs.

    Attributes:
        inputs: a shape for each data input.
        known: what is known of each input's value.
        handles: for each input that is a handle, the shape of the variable (or TensorArray element) behind it.
        outputs: how many outputs the op's signature gives the node; None when that is not known.
        producer: the GraphDef version of the graph.
        unread: the inputs whose values are only known where they are read as a shape.
    """

    __slots__ = ("handles", "inputs", "known", "node", "outputs", "producer", "unread")

    def __init__(
        self,
        node: Node,
        inputs: tuple[Shape, ...],
        known: tuple[Known, ...] = (),
        handles: tuple[Shape | None, ...] = (),
        outputs: int | None = None,
        producer: int = 0,
        unread: Collection[int] = (),
    ) -> None:
        self.node = node
        self.inputs = inputs
        self.known = known
        self.handles = handles
        self.outputs = outputs
        self.producer = producer
        self.unread = unread

    def shape(self, index: int) -> Shape:
        """The shape of one data input.

        Raises:
            GraphError: the node has no such input.
        """
        try:
            return self.inputs[index]
        except IndexError:
            raise GraphError(f"the {self.node.op} has no input {index}") from None

    def dims(self, index: int, least: int = 0) -> tuple[Dim, ...]:
        """The dimensions of one data input, ``least`` or more.

        Raises:
            GraphError: it has fewer.
            UnknownRankError: its rank is not known, nor then the outputs' shapes.
        """
        return dims_of(self.shape(index), least)

    def value(self, index: int) -> np.ndarray[Any, Any] | None:
        """The value of one data input when it is small and fully known."""
        found = self.known[index] if index < len(self.known) else None
        return found if isinstance(found, np.ndarray) and index not in self.unread else None

    def integer(self, index: int) -> int | None:
        """The value of a scalar integer input (or of one element) when known."""
        value = self.value(index)
        return int(value.reshape(-1)[0]) if value is not None and value.size == 1 else None

    def integers(self, index: int) -> list[int] | None:
        """The value of an integer vector input when fully known; a scalar counts as a vector of one."""
        value = self.value(index)
        return None if value is None else [int(v) for v in value.reshape(-1)]

    def as_shape(self, index: int) -> Shape:
        """The shape that an input vector of sizes spells; unknown elements and -1 are unknown dimensions."""
        found = self.known[index] if index < len(self.known) else None
        if found is None:
            length = self.shape(index)
            if length.rank == 1 and length[0] is not None:
                return Shape((None,) * min(length[0], 254))
            return UNKNOWN
        if isinstance(found, np.ndarray):
            if found.ndim > 1 or (found.ndim == 0 and int(found) != -1):
                raise GraphError(f"a shape should be a vector, not of shape {list(found.shape)}")
            return UNKNOWN if found.ndim == 0 else Shape(int(v) for v in found)
        if found.known.ndim != 1:
            return UNKNOWN
        return Shape(int(n) if k else None for n, k in zip(found.numbers, found.known, strict=True))

    def sizes(self, index: int) -> Shape:
        """As ``as_shape``, of an op in whose place TensorFlow 1.15 reads the value."""
        return UNKNOWN if index in self.unread else self.as_shape(index)

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute's value, bytes as str."""
        value = self.node.attrs.get(name, default)
        return value.decode("latin-1") if isinstance(value, bytes) else value

    def declared(self, name: str = "shape") -> Shape:
        """A shape attribute's value; of unknown rank when the node has none."""
        found = self.node.shape(name)
        return UNKNOWN if found is None else found

    def handle(self, index: int) -> Shape:
        """The shape of the variable (or TensorArray element) behind an input; of unknown rank when nobody says."""
        found = self.handles[index] if index < len(self.handles) else None
        return UNKNOWN if found is None else found

    def count(self, attribute: str) -> int:
        """An attribute that says how many inputs or outputs there are, within reason."""
        value = int(self.attr(attribute, 1))
        if not 0 <= value <= 1_000_000:
            raise GraphError(f"the {self.node.op} has the unlikely {attribute} of {value}")
        return value


Rule: TypeAlias = Callable[[ShapeCall], "Shape | Sequence[Shape]"]
"""Returns one Shape for each output (or the only one); raises GraphError when the inputs certainly do not
fit, and UnknownRankError where nothing is known of any output."""

SHAPE_RULES: OpTable[Rule] = OpTable("shape rule", "pocketgraph.kernels.shapes", "SHAPE_RULES")
"""What knows the shapes that come out of each op."""

shape_rule = SHAPE_RULES.enters
"""Registers a function as the shape rule of these ops."""
