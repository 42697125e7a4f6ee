"""Which axes an op of XLA multiplies or gathers along: its messages DotDimensionNumbers and GatherDimensionNumbers."""

from __future__ import annotations

from typing import NamedTuple

from pocketgraph.protobuf.wire import VARINT, packed_varints, payloads, signed

# Fields of xla_data.proto.
LEFT_CONTRACTING, RIGHT_CONTRACTING, LEFT_BATCH, RIGHT_BATCH = 1, 2, 3, 4
OFFSET, COLLAPSED, START_MAP, VECTOR, OPERAND_BATCH, START_BATCH = 1, 2, 3, 4, 5, 6


def _axes(message: str | bytes) -> dict[int, list[int]]:
    """The numbers of each field, which may be packed."""
    found: dict[int, list[int]] = {}
    for number, wire, value in payloads(message.encode() if isinstance(message, str) else bytes(message)):
        values = [value] if wire == VARINT else packed_varints(value, 0, len(value)).tolist()
        found.setdefault(number, []).extend(signed(int(each)) for each in values)
    return found


def dot_equation(message: str | bytes, left_rank: int, right_rank: int) -> str:
    """The product as Einsum writes it: batch axes first, then the left operand's other axes, then the right one's.

    Raises:
        ValueError: an axis is out of range or named twice, or both sides do not name as many.
    """
    import string  # compiles a pattern, which whoever only imports this module need not wait for

    axes = _axes(message)
    left = [*axes.get(LEFT_BATCH, []), *axes.get(LEFT_CONTRACTING, [])]
    right = [*axes.get(RIGHT_BATCH, []), *axes.get(RIGHT_CONTRACTING, [])]
    batch = len(axes.get(LEFT_BATCH, []))
    if len(left) != len(right) or batch != len(axes.get(RIGHT_BATCH, [])):
        raise ValueError(f"axes {left} of the left and {right} of the right operand are not as many")
    for side, rank in ((left, left_rank), (right, right_rank)):
        if len(set(side)) != len(side) or not set(side) <= set(range(rank)):
            raise ValueError(f"axes {side} of an operand of {rank} dimensions")
    if left_rank + right_rank > len(string.ascii_letters):
        raise ValueError(f"{left_rank} and {right_rank} dimensions are more than there are letters")
    first = string.ascii_letters[:left_rank]
    second = list(string.ascii_letters[left_rank : left_rank + right_rank])
    for of_left, of_right in zip(left, right, strict=True):
        second[of_right] = first[of_left]
    free = [letter for axis, letter in enumerate(first) if axis not in left]
    free += [letter for axis, letter in enumerate(second) if axis not in right]
    return f"{first},{''.join(second)}->{''.join([*(first[axis] for axis in left[:batch]), *free])}"


class GatherAxes(NamedTuple):
    """How XLA gathers windows.

    Attributes:
        offset: the result's axes that lie in a window; the others are those of the starts.
        collapsed: the operand's axes whose windows of one element leave no axis.
        start_map: for each number of a start, the operand's axis that it counts along.
        vector: the axis of the starts along which the numbers of one start lie.
        operand_batch, start_batch: axes of the operand, and of the starts, that are walked along together.
    """

    offset: tuple[int, ...]
    collapsed: tuple[int, ...]
    start_map: tuple[int, ...]
    vector: int
    operand_batch: tuple[int, ...]
    start_batch: tuple[int, ...]

    @staticmethod
    def of(message: str | bytes) -> GatherAxes:
        """Those of a message."""
        axes = _axes(message)
        offset, collapsed, start_map, operand_batch, start_batch = (
            tuple(axes.get(field, ())) for field in (OFFSET, COLLAPSED, START_MAP, OPERAND_BATCH, START_BATCH)
        )
        return GatherAxes(offset, collapsed, start_map, axes.get(VECTOR, [0])[-1], operand_batch, start_batch)

    def window_axes(self, rank: int) -> list[int]:
        """The operand's axes that a window leaves in the result."""
        return [axis for axis in range(rank) if axis not in self.collapsed and axis not in self.operand_batch]

    def check(self, operand: int, starts: int) -> None:
        """Raises ValueError where operands of these ranks have no such axes."""
        result = starts - (self.vector < starts) + len(self.offset)
        named = (*self.collapsed, *self.operand_batch), self.start_map, (*self.start_batch, self.vector), self.offset
        for axes, rank in zip(named, (operand, operand, starts + 1, result), strict=True):
            if len(set(axes)) != len(axes) or not set(axes) <= set(range(rank)):
                raise ValueError(f"axes {list(axes)} of {rank} dimensions")
        if len(self.window_axes(operand)) != len(self.offset) or len(self.operand_batch) != len(self.start_batch):
            raise ValueError(f"windows leave {len(self.window_axes(operand))} axes, and {len(self.offset)} are named")
