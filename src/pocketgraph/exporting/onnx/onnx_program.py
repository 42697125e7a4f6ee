"""An ONNX graph in the making: values, operations, and bodies (the graph itself, a loop's body, a branch)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pocketgraph.graph import DType, Shape
from pocketgraph.graph.groups import closure
from pocketgraph.graph.shape import UNKNOWN
from pocketgraph.litert.constant import Constant


@dataclass(eq=False, slots=True)
class OnnxValue:
    """A tensor of the ONNX graph.

    Attributes:
        name: unique in the whole model; set anew where the model's own name is known.
        dtype: its element type.
        shape: as far as known.
        constant: what it is, where that is known when exporting.
        home: the body whose operations make it; None for a constant.
        first: the same tensor with its channels moved from the last axis to the second, where that is how it is made.
        is_made: whether an operation makes it; False for one that so far exists as ``first`` only.
    """

    name: str
    dtype: DType
    shape: Shape = UNKNOWN
    home: Body | None = None
    constant: Constant | None = None
    first: OnnxValue | None = field(default=None, init=False)
    is_made: bool = field(default=True, init=False)

    @property
    def rank(self) -> int | None:
        """The number of axes, None where it is not known."""
        return self.shape.rank

    def __repr__(self) -> str:
        return f"{self.name} {self.dtype}{self.shape}"


@dataclass(eq=False)
class OnnxOperation:
    """One ONNX operator.

    Attributes:
        code: its name in the standard (domain ``ai.onnx``).
        inputs: what it takes; None for an optional input that is left out.
        outputs: what it makes; None for an optional output that is left out.
        attrs: int, float, str, bytes, arrays, and sequences of int and float.
        bodies: its graphs by attribute name.
        node: the node of the model that it comes from.
    """

    code: str
    inputs: list[OnnxValue | None]
    outputs: list[OnnxValue | None]
    attrs: dict[str, Any]
    bodies: Mapping[str, Body]
    node: str


@dataclass(eq=False)
class Body:
    """A graph: operations in an order in which they can run.

    Attributes:
        outer: the body that it stands in; None for the model's graph.
        inputs: what it is given.
        outputs: what it gives.
        operations: what it does.
    """

    outer: Body | None = None
    inputs: list[OnnxValue] = field(default_factory=list)
    outputs: list[OnnxValue] = field(default_factory=list)
    operations: list[OnnxOperation] = field(default_factory=list)


def all_operations(body: Body) -> list[OnnxOperation]:
    """The operations of a body and of the bodies in it."""
    bodies = closure([body], lambda one: chain.from_iterable(each.bodies.values() for each in one.operations))
    return [operation for one in bodies for operation in one.operations]


def used_by(operation: OnnxOperation) -> Sequence[OnnxValue]:
    """What an operation takes, and what the bodies in it take or give."""
    found = [value for value in operation.inputs if value is not None]
    for body in operation.bodies.values():
        found.extend(body.outputs)
        for inner in body.operations:
            found.extend(used_by(inner))
    return found
