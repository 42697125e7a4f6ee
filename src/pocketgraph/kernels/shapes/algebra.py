"""Arithmetic on shapes that may be partly unknown: merging, broadcasting, windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import UNKNOWN, Shape

Dim: TypeAlias = "int | None"
"""One size, or None where it is not known."""


class UnknownRankError(Exception):
    """A rule counts on a rank that is not known; nothing is known of what comes out."""


def dims_of(shape: Shape, least: int = 0) -> tuple[Dim, ...]:
    """The dimensions of a shape that must have ``least`` or more.

    Raises:
        GraphError: it has fewer.
        UnknownRankError: nobody knows.
    """
    dims = at_least(shape, least).dims
    if dims is None:
        raise UnknownRankError
    return dims


def merge_dim(a: Dim, b: Dim) -> Dim:
    """The size that both describe.

    Raises:
        GraphError: they are known and differ.
    """
    if a is None:
        return b
    if b is not None and a != b:
        raise GraphError(f"sizes {a} and {b} differ")
    return a


def merge(a: Shape, b: Shape) -> Shape:
    """The shape that both describe.

    Raises:
        GraphError: ranks or known sizes differ.
    """
    if a.dims is None:
        return b
    if b.dims is None:
        return a
    if not a.fits(b):
        raise GraphError(f"shapes {a} and {b} differ")
    return Shape(merge_dim(x, y) for x, y in zip(a.dims, b.dims, strict=True))


def common(shapes: Iterable[Shape]) -> Shape:
    """What holds for every one of these shapes: a size where all agree, unknown rank when ranks differ."""
    result: Shape | None = None
    for shape in shapes:
        if result is None:
            result = shape
        elif result.dims is None or shape.dims is None or len(result.dims) != len(shape.dims):
            return UNKNOWN
        else:
            result = Shape(x if x == y else None for x, y in zip(result.dims, shape.dims, strict=True))
    return UNKNOWN if result is None else result


def broadcast(a: Shape, b: Shape) -> Shape:
    """The shape of an elementwise operation on both, by NumPy's rule.

    Raises:
        GraphError: two known sizes differ and neither is 1.
    """
    if a.dims is None or b.dims is None:
        return UNKNOWN
    rank = max(len(a.dims), len(b.dims))
    left = (1,) * (rank - len(a.dims)) + a.dims
    right = (1,) * (rank - len(b.dims)) + b.dims
    out: list[Dim] = []
    for x, y in zip(left, right, strict=True):
        if x == y:
            out.append(x)
        elif x == 1:
            out.append(y)
        elif y == 1:
            out.append(x)
        elif x is None or y is None:
            known = x if y is None else y
            out.append(known)  # an unknown size against n > 1 (or 0) can only be 1 or n
        else:
            raise GraphError(f"shapes {a} and {b} cannot be broadcast")
    return Shape(out)


def of_rank(shape: Shape, rank: int) -> tuple[Dim, ...]:
    """The dimensions of a shape that must have this rank.

    Raises:
        GraphError: it has another.
    """
    if shape.dims is None:
        return (None,) * rank
    if len(shape.dims) != rank:
        raise GraphError(f"shape {shape} should have rank {rank}")
    return shape.dims


def at_least(shape: Shape, rank: int) -> Shape:
    """The shape itself; GraphError when its rank is less than ``rank``."""
    if shape.dims is not None and len(shape.dims) < rank:
        raise GraphError(f"shape {shape} should have rank {rank} or more")
    return shape


def total(*sizes: Dim) -> Dim:
    """The sum, unknown when a part is."""
    result = 0
    for size in sizes:
        if size is None:
            return None
        result += size
    return result


def product(*sizes: Dim) -> Dim:
    """The product; zero when a factor is, else unknown when a factor is."""
    if 0 in sizes:
        return 0
    result = 1
    for size in sizes:
        if size is None:
            return None
        result *= size
    return result


def exact_quotient(size: Dim, by: Dim) -> Dim:
    """``size / by``.

    Raises:
        GraphError: there is a remainder.
    """
    if size is None or not by:
        return None
    if size % by:
        raise GraphError(f"size {size} is not a multiple of {by}")
    return size // by


def axis_of(axis: int, rank: int) -> int:
    """A possibly negative axis as a position.

    Raises:
        GraphError: there is no such axis.
    """
    if not -rank <= axis < rank:
        raise GraphError(f"axis {axis} is not in a tensor of rank {rank}")
    return axis + rank if axis < 0 else axis


def window(
    size: Dim, kernel: Dim, stride: int, padding: str, *, dilation: int = 1, pads: tuple[int, int] = (0, 0)
) -> Dim:
    """How many positions a sliding window takes.

    Args:
        size: elements along the axis.
        kernel: elements of the window.
        stride: elements between positions.
        padding: ``SAME``, ``VALID`` or ``EXPLICIT``.
        dilation: elements from one window element to the next.
        pads: elements added before and after, for ``EXPLICIT``.

    Raises:
        GraphError: the window does not fit, or the stride is not positive.
    """
    if stride < 1:
        raise GraphError(f"a stride of {stride} is not positive")
    if size is None:
        return None
    if padding == "SAME":
        return -(-size // stride)
    if kernel is None:
        return None
    span = size + sum(pads) - ((kernel - 1) * dilation + 1)
    if span + stride < 0:
        raise GraphError(f"a window of {kernel} does not fit into {size}")
    return max(0, span // stride + 1)


def replaced(dims: Sequence[Dim], changes: dict[int, Dim]) -> Shape:
    """These dimensions with some exchanged."""
    return Shape(changes.get(i, d) for i, d in enumerate(dims))
