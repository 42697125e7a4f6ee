"""How two programs that were lowered for different sizes are the same, and what takes the place of what differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from pocketgraph.litert.constant import Constant
from pocketgraph.litert.operator_traits import BINARY, ELEMENTWISE, GIVING_BOOL
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.sizes.operator_sizes import RESIZES
from pocketgraph.litert.sizes.size_operands import constant

BROADCASTS = BINARY | {"SELECT_V2"} | (GIVING_BOOL & ELEMENTWISE)
"""Operators for which a constant of size 1 serves a larger operand."""
OWN_SIZE = -1
"""The place of what tells how an operation takes a size off the shape of its input."""
TAKES_SIZES = {
    "RESHAPE": 1, "BROADCAST_TO": 1, "TILE": 1, "FILL": 0, **dict.fromkeys(RESIZES, 1),
}  # fmt: skip
"""Which operand of an operator holds sizes, which may be those of what it is made of."""


Patch: TypeAlias = "tuple[Operation, int, Value | list[int]]"
"""An operation, the place of its constant that differs, and what takes its place: a constant, or what is found for
these numbers of other sizes."""


class SizeComparison(NamedTuple):
    """How two programs are the same.

    Attributes:
        pairs: the values that belong together.
        patched: what takes the place of constants that differ.
        why: they are not the same for any size; "" where they are.
    """

    pairs: dict[Value, Value]
    patched: list[Patch]
    why: str


def are_alike(patched: Sequence[Patch], further: Sequence[Patch]) -> bool:
    """Whether the same takes the place of the same constants; numbers may be others."""
    return [place[:2] for place in patched] == [place[:2] for place in further] and all(
        isinstance(a, list) == isinstance(b, list) if isinstance(a, list) or isinstance(b, list) else _equal(a, b)
        for (_, _, a), (_, _, b) in zip(patched, further, strict=True)
    )


def compared(first: Program, other: Program) -> SizeComparison:
    """Compares two programs, operation by operation."""
    counts = [(len(each.inputs), len(each.operations), len(each.outputs)) for each in (first, other)]
    found = SizeComparison(dict(zip(first.inputs, other.inputs, strict=False)), [], "")
    if counts[0] != counts[1]:
        return found._replace(why="other sizes need other operators")
    for one, two in zip(first.operations, other.operations, strict=True):
        said = _same(one, two, found.pairs, found.patched)
        if said:
            return found._replace(why=said)
    if any(found.pairs.get(a) is not b and (a.constant is None or not _equal(a, b))
           for a, b in zip(first.outputs, other.outputs, strict=True)):  # fmt: skip
        return found._replace(why="other sizes need other operators")
    return found


def _same(one: Operation, two: Operation, pairs: dict[Value, Value], patched: list[Patch]) -> str:
    """Why two operations are not the same for any size; else "", and the values that belong together are paired."""
    where = one.where
    if one.code != two.code or len(one.inputs) != len(two.inputs) or len(one.outputs) != len(two.outputs):
        return f"other sizes need other operators{where}"
    for body, other in zip(one.bodies, two.bodies, strict=True):
        inside = compared(body, other)
        if inside.why:
            return inside.why
        pairs.update(inside.pairs)
        patched += inside.patched
    options = {key: value for key, value in one.options.items() if key != "new_shape"}
    if options != {key: value for key, value in two.options.items() if key != "new_shape"}:
        return f"{one.code} depends on the size{where}"
    for at, (a, b) in enumerate(zip(one.inputs, two.inputs, strict=True)):
        if a is None or b is None:
            if a is not b:
                return f"other sizes need other operators{where}"
        elif a.constant is None:
            if pairs.get(a) is not b:
                return f"other sizes need other operators{where}"
        elif not _equal(a, b):
            merged: Value | list[int] | None = _merged(a, b) if one.code == "RESHAPE" and at == 1 else None
            if one.code in BROADCASTS:
                merged = _repeated(one, two, at)
            if merged is None and at == 1 and one.code in RESIZES:
                merged = _times(one, two)
                at = at if merged is None else OWN_SIZE
            if merged is None and one.code == "SLICE":
                merged, at = _places(one, two), OWN_SIZE
            if merged is None and at == TAKES_SIZES.get(one.code) and a.shape == b.shape and a.constant and b.constant:
                merged = b.constant.numpy().tolist()
            if merged is None:
                return takes_a_size(one)
            patched.append((one, at, merged))
    pairs.update(zip(one.outputs, two.outputs, strict=True))
    return ""


def takes_a_size(operation: Operation) -> str:
    """What to say of an operation for which no size can be left open."""
    return f"{operation.code} takes a constant that depends on the size{operation.where}"


def _times(one: Operation, two: Operation) -> Value | None:
    """How many times as high and as wide both make a picture; None where that is no whole number, or not the same."""
    made = []
    for operation in (one, two):
        source, size = operation.operands
        times, rest = np.divmod(size.content.numpy(), source.shape[1:3])
        if rest.any():
            return None
        made.append(times.tolist())
    return constant(made[0]) if made[0] == made[1] else None


def _equal(a: Value, b: Value) -> bool:
    if a is b:
        return True
    if a.constant is None or b.constant is None or a.shape != b.shape or a.dtype is not b.dtype:
        return False
    return bool(np.array_equal(a.constant.numpy(), b.constant.numpy(), equal_nan=a.dtype.numpy.kind == "f"))


def _repeated(operation: Operation, two: Operation, at: int) -> Value | None:
    """The constant of size 1 where both repeat it along the axes that they differ in, as states of zeros do, and
    another operand has these."""
    a, b = operation.operands[at], two.operands[at]
    axes = [axis for axis, (x, y) in enumerate(zip(a.shape, b.shape, strict=False)) if x != y]
    if len(a.shape) != len(b.shape) or not axes or a.dtype is not b.dtype:
        return None
    behind = [axis - len(a.shape) for axis in axes]
    others = [(x.shape, y.shape) for x, y in zip(operation.operands, two.operands, strict=True) if x.constant is None]
    if not all(
        any((x[axis], y[axis]) == (a.shape[axis], b.shape[axis]) for x, y in others if len(x) >= -axis)
        for axis in behind
    ):
        return None
    first, other = a.content.numpy(), b.content.numpy()
    one = first[tuple(slice(1 if axis in axes else None) for axis in range(first.ndim))]
    if not ((first == one).all() and (other == one).all()):
        return None
    constant = Constant.of(one)
    return Value(a.name, a.dtype, constant.shape, constant)


def _places(one: Operation, two: Operation) -> Value | None:
    """Where both slices begin and end in each axis, as STRIDED_SLICE says it; 0 as an end is the axis's."""
    found = []
    for source, begin, size in (one.operands, two.operands):
        if begin.constant is None or size.constant is None:
            return None
        starts, sizes = begin.constant.numpy(), np.array(source.shape)
        ends = starts + size.constant.numpy()
        found.append(([starts, starts - sizes], [np.where(ends == sizes, 0, ends), ends - sizes]))
    made = []
    for counted, other in zip(*found, strict=True):
        same = [a == b for a, b in zip(counted, other, strict=True)]
        if not (same[0] | same[1]).all():
            return None
        made.append(np.where(same[0], *counted))
    return constant(np.stack(made).reshape(-1).tolist())


def _merged(a: Value, b: Value) -> Value | None:
    """The shape constant that stands for both, with -1 where they differ; None where that is in several places."""
    first, other = a.content.numpy(), b.content.numpy()
    if first.shape != other.shape or np.count_nonzero(first != other) != 1:
        return None
    constant = Constant.of(np.where(first == other, first, -1).astype(np.int32))
    return Value(a.name, a.dtype, constant.shape, constant)
