"""What a lowering reads of its node: its operands, in whatever form a program has them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np

from pocketgraph.graph import Node, canonical
from pocketgraph.litert.constant import Array, Constant

Form = TypeVar("Form")
KNOWN = "known beforehand"
"""What a reason says where an operand is computed that a form has to hold; ``refusal_help`` of exports asks for it."""


class Operands(Generic[Form]):
    """The data inputs of the node at hand."""

    def __init__(self) -> None:
        self._node = Node("", "NoOp")

    @abstractmethod
    def unsupported(self, reason: str) -> Exception:
        """The error for the node at hand, to be raised."""

    @abstractmethod
    def value(self, ref: str) -> Form:
        """The value of a tensor name."""

    @abstractmethod
    def known(self, ref: str) -> Constant | None:
        """The constant that a tensor name stands for, if it does."""

    def ref(self, index: int) -> str:
        """The tensor name of one data input."""
        try:
            return canonical(self._node.data_inputs[index])
        except IndexError:
            raise self.unsupported(f"{self._node.op} has no input {index}") from None

    def input(self, index: int) -> Form:
        """One data input."""
        return self.value(self.ref(index))

    def inputs(self, start: int = 0, stop: int | None = None) -> list[Form]:
        """Several data inputs."""
        return [self.value(canonical(ref)) for ref in self._node.data_inputs[start:stop]]

    def static(self, index: int, what: str) -> Array:
        """A data input that must be known beforehand; ``what`` names it in the reason."""
        array = self.static_or_none(index)
        if array is None:
            raise self.unsupported(f"{what} must be {KNOWN}, not computed")
        return array

    def static_or_none(self, index: int) -> Array | None:
        """A data input as an array where it is known beforehand."""
        constant = self.known(self.ref(index))
        return None if constant is None else constant.numpy()

    def axes(self, index: int, rank: int, what: str = "the axis") -> list[int]:
        """A static input that names axes, each from 0 to ``rank`` - 1."""
        axes = [int(axis) for axis in np.asarray(self.static(index, what)).reshape(-1)]
        if any(not -rank <= axis < rank for axis in axes):
            raise self.unsupported(f"{what} {axes} is out of range for rank {rank}")
        return [axis % rank for axis in axes]


def attr_text(node: Node, name: str, default: str = "") -> str:
    """A string attribute as text."""
    value = node.attr(name)
    return value.decode("ascii", "replace") if isinstance(value, bytes) else default


def attr_list(node: Node, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
    """A list attribute."""
    value = node.attr(name)
    return tuple(value) if isinstance(value, tuple) and value else tuple(default)
