"""The operands of the node at hand: as values, and what is known of them."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager

import numpy as np

from pocketgraph.exporting.onnx.element_types import plain_type
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.graph import DType, Graph, Node, Shape
from pocketgraph.graph.dtype import STRING
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.operands import KNOWN, Operands
from pocketgraph.litert.static_values import Statics


class OnnxOperands(Operands[OnnxValue]):
    """Reads what a node takes.

    Attributes:
        graph: the graph being exported.
        inferred: what is known of its tensors.
        needed: the names of the nodes that are exported.
        bound: the value of each tensor name (``n:0``) that is known so far.
        taken: names that something has.
    """

    def __init__(self, graph: Graph, inferred: Inferred, statics: Statics, needed: Container[str]) -> None:
        super().__init__()
        self.graph = graph
        self.needed = needed
        self.inferred = inferred
        self.statics = statics
        self.bound: dict[str, OnnxValue] = {}
        self.taken: set[str] = set()

    @contextmanager
    def at(self, node: Node) -> Iterator[None]:
        """Operators belong to ``node``."""
        before, self._node = self._node, node
        try:
            yield
        finally:
            self._node = before

    # Operands

    def unsupported(self, reason: str) -> Unsupported:
        """The error for the node at hand, to be raised."""
        return Unsupported(reason, self._node.name)

    @property
    def takers(self) -> list[Node]:
        """The exported nodes that take what the node at hand makes."""
        return [other for other in self.graph.consumers.get(self._node.name, ()) if other.name in self.needed]

    @property
    def count(self) -> int:
        """How many data inputs the node at hand has."""
        return len(self._node.data_inputs)

    def value(self, ref: str) -> OnnxValue:
        """The value of a tensor name."""
        known = self.bound.get(ref)
        if known is not None:
            return known
        constant = self.known(ref)
        if constant is None:
            raise self.unsupported(f"its input {ref} is not available here")
        dtype = self.dtype(ref)
        value = OnnxValue(self.name(ref.removesuffix(":0")), dtype, Shape(constant.shape), None, constant)
        self.bound[ref] = value
        return value

    def known(self, ref: str) -> Constant | None:
        """The constant that a tensor name stands for, if it does."""
        bound = self.bound.get(ref)
        if bound is not None:
            return bound.constant
        found = self.statics.constant(ref)
        return found if found is not None else self._text(ref)

    def _text(self, ref: str) -> Constant | None:
        node = self.graph.find_producer(ref, ("Identity", "StopGradient"))
        if node is None or node.op != "Const" or node.tensor.dtype is not STRING:
            return None
        return Constant.of(node.tensor.numpy())

    def numbers(self, index: int) -> list[int | None] | None:
        """The elements of an integer vector of which some may be known; None where not even their count is."""
        array = self.static_or_none(index)
        if array is not None:
            return [int(number) for number in np.asarray(array).reshape(-1)]
        find = getattr(self.inferred, "numbers", None)
        found: list[int | None] | None = None if find is None else find(self.ref(index))
        return found

    def rank(self, value: OnnxValue) -> int:
        """A value's rank, which must be known."""
        if value.shape.rank is None:
            raise self.unsupported("the rank of its input is not known; state the shapes of the model's inputs")
        return value.shape.rank

    def known_size(self, value: OnnxValue, axis: int, what: str) -> int:
        """The size of an axis, which must be known; ``what`` calls it in the message."""
        dims = value.shape.dims
        size = None if dims is None or axis >= len(dims) else dims[axis]
        if size is None:
            raise self.unsupported(f"{what} must be {KNOWN}")
        return size

    def known_sizes(self, value: OnnxValue, what: str) -> tuple[int, ...]:
        """A value's shape, which must be known; ``what`` calls it in the message."""
        if not value.shape.is_known:
            raise self.unsupported(f"{what} must be {KNOWN}")
        return value.shape.known

    # Facts

    def dtype(self, ref: str) -> DType:
        """The element type of a tensor name, which must be known."""
        dtype = self.inferred.dtype(ref)
        if dtype is None:
            raise self.unsupported(f"the element type of {ref} is not known")
        return plain_type(dtype)

    def output(self, port: int = 0) -> tuple[DType, Shape]:
        """The element type and what is known of the shape of one output of the node at hand."""
        ref = f"{self._node.name}:{port}"
        return self.dtype(ref), self.inferred.shape(ref)

    # Names

    def name(self, wanted: str) -> str:
        """A name that nothing else has: the one wanted, or with a number after it."""
        name, number = wanted, 0
        while name in self.taken or not name:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        return name

    def _made(self, what: str) -> str:
        return f"{self._node.name}/{what}" if self._node.name else what
