"""The values that a node's attributes take."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from pocketgraph.graph.dtype import DType
from pocketgraph.graph.record import Record
from pocketgraph.graph.shape import Shape
from pocketgraph.graph.tensor import Tensor

POOLING = ("ksize", "strides", "padding", "explicit_paddings", "data_format")
"""The attributes that pooling shares with its gradients."""


class Func(Record):
    """A function of the graph's library, as the value of an attribute.

    Attributes:
        name: of the function.
        attrs: values for the function's own attributes.
    """

    name: str
    attrs: Mapping[str, AttrValue] = MappingProxyType({})

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Func, (self.name, dict(self.attrs))


class Parameter(Record):
    """An attribute inside a function body that takes its value from the caller's attribute of this name."""

    name: str


class Opaque(Record):
    """An attribute value that says more than this program knows; it is kept as it was encoded."""

    encoded: bytes


Scalar: TypeAlias = int | float | bool | bytes | DType | Shape | Tensor | Func
AttrValue: TypeAlias = Scalar | Parameter | Opaque | tuple[Any, ...]
"""A list is a tuple whose members are all of one scalar kind; an empty list is ``()``. bool is not int here: True
is the boolean, 1 the integer; 1.0 the float."""


def kind_of(value: AttrValue) -> str:
    """The value's kind in the words of op signatures: int, float, bool, string, type, shape, tensor, func,
    ``list(int)``…, ``list`` for an empty list, ``placeholder``, ``opaque``."""
    if isinstance(value, tuple):
        return f"list({kind_of(value[0])})" if value else "list"
    for cls, kind in _KINDS:
        if isinstance(value, cls):
            return kind
    raise TypeError(f"{type(value).__name__} is not an attribute value")


_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "bool"), (int, "int"), (float, "float"), (bytes, "string"), (DType, "type"), (Shape, "shape"),
    (Tensor, "tensor"), (Func, "func"), (Parameter, "placeholder"), (Opaque, "opaque"),
)  # fmt: skip


def same_value(a: AttrValue, b: AttrValue) -> bool:
    """Whether two attribute values are equal: kinds too, tensors element by element, floats by their bits or ==."""
    if kind_of(a) != kind_of(b):
        return False
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.same_values(b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same_value(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Func) and isinstance(b, Func):
        return a.name == b.name and same_attrs(a.attrs, b.attrs)
    return bool(a == b) or (a != a and b != b)


def same_attrs(a: Mapping[str, AttrValue], b: Mapping[str, AttrValue]) -> bool:
    """Whether two attribute tables have the same names with the same values."""
    return a.keys() == b.keys() and all(same_value(a[name], b[name]) for name in a)
