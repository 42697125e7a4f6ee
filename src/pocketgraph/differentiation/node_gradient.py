"""One node as its gradient sees it: inputs, outputs, the gradients that arrive, and ways to add nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.differentiation.node_builder import GraphBuilder
from pocketgraph.errors import GraphError
from pocketgraph.graph import AttrValue, DType, Node, Shape, opdefs
from pocketgraph.graph.dtype import INT32


class NodeGradient:
    """One node on the way back.

    Attributes:
        inputs: its data inputs.
        grads: for each output, the gradient of ys with respect to it; None when there is none.
        builder: where nodes are added.
    """

    def __init__(self, builder: GraphBuilder, node: Node, grads: Sequence[str | None]) -> None:
        self.builder = builder
        self.node = node
        self.inputs = node.data_inputs
        self.grads = list(grads)

    @property
    def grad(self) -> str:
        """The gradient of the first output."""
        return self.grad_of(0)

    def grad_of(self, port: int) -> str:
        """The gradient of one output, zeros where none arrives."""
        found = self.grads[port]
        if found is None:
            found = self.grads[port] = self.builder.add("ZerosLike", self.output(port), name="zeros_like")
        return found

    def output(self, port: int = 0) -> str:
        """The name of one output."""
        return self.node.name if port == 0 else f"{self.node.name}:{port}"

    def add(self, op: str, *inputs: str | Sequence[str], **attrs: Any) -> str:
        """Adds a node; see ``GraphBuilder.add``."""
        return self.builder.add(op, *inputs, **attrs)

    def const(self, value: Any, dtype: DType = INT32) -> str:
        """Adds a constant."""
        return self.builder.const(value, dtype)

    def number(self, value: float) -> str:
        """Adds a scalar constant of the first output's type."""
        return self.builder.const(value, self.builder.dtype(self.output()).base)

    def mul(self, *factors: str) -> str:
        """The product of tensors that have one shape (or are scalars)."""
        product = factors[0]
        for factor in factors[1:]:
            product = self.add("Mul", product, factor)
        return product

    def attr(self, name: str) -> Any:
        """An attribute or its default; bytes as str."""
        value = opdefs.attr_or_default(self.node, name)
        return value.decode() if isinstance(value, bytes) else value

    def attrs(self, *names: str) -> dict[str, AttrValue]:
        """These attributes of the node, defaults included, for a node of its gradient; those it lacks stay out."""
        known = opdefs.definition(self.node.op).attrs
        return {name: opdefs.attr_or_default(self.node, name) for name in names if name in known}

    def static(self, ref: str) -> Shape:
        """The shape of a tensor of the forward graph, as far as known."""
        return self.builder.static_shape(ref)

    def rank(self, ref: str) -> int:
        """The rank of a tensor of the forward graph.

        Raises:
            GraphError: it is not known.
        """
        found = self.static(ref).rank
        if found is None:
            raise GraphError(f"the gradient of {self.node.op} needs the rank of '{ref}', which is not known")
        return found

    def value(self, index: int) -> np.ndarray[Any, Any] | None:
        """The value of an input that is a small constant; None otherwise."""
        return self.builder.value(self.inputs[index])

    def needs_value(self, index: int, what: str) -> np.ndarray[Any, Any]:
        """The value of an input that is a small constant.

        Raises:
            GraphError: it is none.
        """
        found = self.value(index)
        if found is None:
            raise GraphError(f"the gradient of {self.node.op} needs {what} as a constant")
        return found

    def shape(self, ref: str) -> str:
        """A tensor that holds the shape of a tensor of the forward graph: a constant when it is known."""
        static = self.static(ref)
        if static.is_known:
            return self.builder.const(np.asarray(static.known, np.int32), name="Shape")
        return self.add("Shape", ref)

    def shape_of_input(self, index: int) -> str:
        """A tensor that holds the shape of an input."""
        return self.shape(self.inputs[index])

    def unbroadcast(self, *gradients: str | None) -> tuple[str | None, ...]:
        """Sums the gradients of two inputs that were broadcast, each to its input's shape.

        Args:
            gradients: the gradients with respect to inputs 0 and 1, in the shape of the output.
        """
        result = self.static(self.output())
        statics = [self.static(ref) for ref in self.inputs[:2]]
        if all(shape.is_known and shape == result for shape in statics):
            return gradients
        shapes = [self.shape_of_input(0), self.shape_of_input(1)]
        axes = self.add("BroadcastGradientArgs", *shapes)
        summed = []
        for port, gradient in enumerate(gradients):
            if gradient is None or (statics[port].is_known and statics[port] == result):
                summed.append(gradient)
                continue
            total = self.add("Sum", gradient, axes if port == 0 else f"{axes}:1")
            summed.append(self.add("Reshape", total, shapes[port]))
        return tuple(summed)

    def conj(self, ref: str) -> str:
        """The complex conjugate of a tensor; real ones as they are."""
        return self.add("Conj", ref) if self.builder.dtype(ref).is_complex else ref

    def zeros(self, like: str) -> str:
        """Zeros in the shape of a tensor."""
        return self.add("ZerosLike", like)

    def cast(self, ref: str, dtype: DType) -> str:
        """The tensor in another type."""
        return ref if self.builder.dtype(ref).base is dtype.base else self.add("Cast", ref, DstT=dtype.base)

    def dtype_of_input(self, index: int) -> DType:
        """The element type of an input."""
        return self.builder.dtype(self.inputs[index]).base

    @property
    def dtype(self) -> DType:
        """The element type of the first output."""
        return self.builder.dtype(self.output()).base
