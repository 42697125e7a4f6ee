"""The sizes of what a LiteRT operator makes, from those of its operands: known ones, or some that are open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

from pocketgraph.litert.operator_traits import CONVOLUTIONS, ELEMENTWISE, PADS, POOLS, REDUCTIONS
from pocketgraph.litert.program import Operation, Value
from pocketgraph.litert.sizes.unit_axes import Axes

Sizes: TypeAlias = "tuple[int | None, ...]"
"""A shape; None is a size that is open."""
Numbers: TypeAlias = "Sequence[int | None]"

ALONG_ONE = frozenset(("DEQUANTIZE", "LOCAL_RESPONSE_NORMALIZATION", "LOG_SOFTMAX", "QUANTIZE", "SOFTMAX"))
RESIZES = frozenset(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"))


class NotCertain(Exception):  # noqa: N818 - no error
    """A size that cannot be followed, or that an operator does not take."""


class OperatorSizes:
    """Follows sizes through a program.

    Args:
        sizes: of tensors that others follow from; those of all others are their shapes.
        vectors: the elements of tensors of whole numbers that are no constants; None where they are open.

    Attributes:
        axes: for vectors that are made of the shape of what a reshape takes, which of its axes they are of.
        rows: for vectors that begin with the sizes of some tensor, that and how many these are.
    """

    def __init__(self, sizes: Mapping[Value, Sizes], vectors: Mapping[Value, Numbers]) -> None:
        self.sizes = dict(sizes)
        self.vectors = vectors
        self.axes: dict[Value, Axes] = {}
        self.rows: dict[Value, tuple[Value, int]] = {}

    def of(self, value: Value | None) -> Sizes:
        if value is None:
            raise NotCertain
        return self.sizes.get(value, value.shape)

    def numbers(self, value: Value | None) -> list[int | None]:
        """The elements of an operand that says sizes, places or axes."""
        if value is not None and value in self.vectors:
            return list(self.vectors[value])
        return list(constant_numbers(value))

    def result(self, operation: Operation) -> Sizes:
        """The sizes of each result of an operator.

        Raises:
            NotCertain: they do not follow from those of its operands, or it does not take these.
        """
        code, operands = operation.code, operation.inputs
        first = self.of(operands[0])
        if code in ELEMENTWISE and code != "SELECT":  # which takes a truth for each row
            return self._broadcast([self.of(value) for value in operands], len(operation.outputs[0].shape))
        if code in ALONG_ONE:
            return first
        if code in CONVOLUTIONS:
            return self._convolved(operation, first)
        if code in POOLS:
            windows = [operation.options.get("filter_h"), operation.options.get("filter_w")]
            return (first[0], *self._slid(operation, first, windows), first[3])
        if code == "TRANSPOSE_CONV":
            return self._transposed(operation)
        if code in RESIZES:
            height, width = self.numbers(operands[1])
            return first[0], height, width, first[3]
        if code == "TILE":
            pairs = zip(first, self.numbers(operands[1]), strict=True)
            return tuple([None if size is None or count is None else size * count for size, count in pairs])
        if code in PADS:
            return self._padded(operation, first)
        if code == "STRIDED_SLICE":
            return self._sliced(operation, first)
        if code == "CONCATENATION":
            return self._joined(operation)
        if code == "SPLIT":
            return self._split(operation)
        if code == "RESHAPE":
            moved = self.axes.get(operands[1]) if operands[1] is not None else None
            if moved is not None:
                return tuple([1 if axis is None else first[axis] for axis in moved])
            if operands[1] in self.rows:
                joined, count = self.rows[operands[1]]
                return (*self.of(joined)[:count], *operation.outputs[0].shape[count:])
            return self._reshaped(first, self.numbers(operands[1]))
        if code in ("DEPTH_TO_SPACE", "SPACE_TO_DEPTH"):
            return _blocks(operation, first)
        if code == "FULLY_CONNECTED":
            weights = self.of(operands[1])
            if len(first) != 2 or first[1] is None or None in weights or operation.options.get("keep_num_dims"):
                raise NotCertain
            return first[0], weights[0]
        if code == "BATCH_MATMUL":
            return self._multiplied(operation, first, self.of(operands[1]))
        if code == "TRANSPOSE":
            return tuple(first[axis] for axis in constant_numbers(operands[1]))
        if code in REDUCTIONS or code == "ARG_MAX":
            axes = {axis % len(first) for axis in constant_numbers(operands[1])}
            if operation.options.get("keep_dims"):
                return tuple(1 if axis in axes else size for axis, size in enumerate(first))
            return tuple(size for axis, size in enumerate(first) if axis not in axes)
        if code == "GATHER" and operation.options.get("axis") == 0 and not operation.options.get("batch_dims"):
            if None in first:
                raise NotCertain
            return (*self.of(operands[1]), *first[1:])
        if code == "SLICE":
            return self._counted(operation, first)
        raise NotCertain

    def _broadcast(self, operands: Sequence[Sizes], rank: int) -> Sizes:
        """The sizes of operands that meet each other; where one is open the others are too, or 1."""
        found: list[int | None] = [1] * rank
        for sizes in operands:
            for axis, size in enumerate(sizes, rank - len(sizes)):
                met = found[axis]
                if met == 1:
                    found[axis] = size
                elif size not in (met, 1):
                    raise NotCertain
        return tuple(found)

    def _multiplied(self, operation: Operation, one: Sizes, two: Sizes) -> Sizes:
        if len(one) < 2 or len(two) < 2:
            raise NotCertain
        rows, inner = one[-2:] if not operation.options.get("adj_x") else one[:-3:-1]
        other, columns = two[-2:] if not operation.options.get("adj_y") else two[:-3:-1]
        if inner != other:
            raise NotCertain
        return (*self._broadcast([one[:-2], two[:-2]], max(len(one), len(two)) - 2), rows, columns)

    def _convolved(self, operation: Operation, source: Sizes) -> Sizes:
        weights = operation.inputs[1]
        if weights is None or weights.constant is None or source[3] is None:
            raise NotCertain
        count = weights.shape[3] if operation.code == "DEPTHWISE_CONV_2D" else weights.shape[0]
        return (source[0], *self._slid(operation, source, weights.shape[1:3]), count)

    def _slid(self, operation: Operation, source: Sizes, windows: Sequence[object]) -> Sizes:
        """Rows and columns of what a window makes that slides over an image."""
        found: list[int | None] = []
        for size, window, side in zip(source[1:3], windows, "hw", strict=True):
            step, far = operation.options.get(f"stride_{side}"), operation.options.get(f"dilation_{side}", 1)
            if not (isinstance(step, int) and isinstance(far, int) and isinstance(window, int)):
                raise NotCertain
            reach = (window - 1) * far + 1
            if size is None:
                found.append(None)
            elif operation.options.get("padding") == "SAME":
                found.append(-(-size // step))
            elif size < reach:  # LiteRT would count a result
                raise NotCertain
            else:
                found.append((size - reach) // step + 1)
        return tuple(found)

    def _transposed(self, operation: Operation) -> Sizes:
        """A transposed convolution, which is told its result's sizes; sliding its window there gives the source's."""
        made = self.numbers(operation.inputs[0])
        weights, source = operation.inputs[1], self.of(operation.inputs[2])
        if weights is None or len(made) != 4:
            raise NotCertain
        for size, given in zip(self._slid(operation, tuple(made), weights.shape[1:3]), source[1:3], strict=True):
            if None not in (size, given) and size != given:
                raise NotCertain
        return tuple(made)

    def _padded(self, operation: Operation, source: Sizes) -> Sizes:
        rows = self.numbers(operation.inputs[1])
        found: list[int | None] = []
        for size, before, after in zip(source, rows[::2], rows[1::2], strict=True):
            if size is None or before is None or after is None:
                found.append(size if (before, after) == (0, 0) else None)
                continue
            most = size - (operation.options.get("mode") == "REFLECT")
            if operation.code == "MIRROR_PAD" and max(before, after) > most:
                raise NotCertain
            found.append(size + before + after)
        return tuple(found)

    def _sliced(self, operation: Operation, source: Sizes) -> Sizes:
        starts, ends, steps = (self.numbers(value) for value in operation.inputs[1:4])
        free = [operation.options.get(f"{name}_mask", 0) for name in ("begin", "end")]
        found: list[int | None] = []
        for axis, (size, start, end, step) in enumerate(zip(source, starts, ends, steps, strict=True)):
            is_first, is_last = (bool(mask >> axis & 1) for mask in free)
            first, last = None if is_first else start, None if is_last else end
            if size is None or (first is None and not is_first) or (last is None and not is_last):
                found.append(_count(size, 0 if is_first else start, None if is_last else end, step))
            else:
                found.append(_taken(size, first, last, step))
        return tuple(found)

    def _counted(self, operation: Operation, source: Sizes) -> Sizes:
        """A slice that is told how many elements it takes: -1 stands for all that follow."""
        starts, counts = (self.numbers(value) for value in operation.inputs[1:3])
        whole = self.of(None) if operation.inputs[0] is None else operation.inputs[0].shape
        is_fixed = all(value is None or value.constant is not None for value in operation.inputs[1:3])
        found: list[int | None] = []
        for size, own, start, count in zip(source, whole, starts, counts, strict=True):
            if is_fixed:  # LiteRT resizes none of its results: of an open axis it takes the first element alone
                if (start, count) != (0, 1) and size != own:
                    raise NotCertain
            elif count == -1:
                count = None if size is None or start is None else size - start
            elif size is not None and start is not None and count is not None and start + count > size:
                raise NotCertain
            found.append(count)
        return tuple(found)

    def _joined(self, operation: Operation) -> Sizes:
        operands = [self.of(value) for value in operation.inputs]
        axis = operation.options.get("axis", 0) % len(operands[0])
        along = [sizes[axis] for sizes in operands]
        rest, *others = (sizes[:axis] + sizes[axis + 1 :] for sizes in operands)
        if any(each != rest for each in others):
            raise NotCertain
        known = [size for size in along if size is not None]
        return (*rest[:axis], sum(known) if len(known) == len(along) else None, *rest[axis:])

    def _split(self, operation: Operation) -> Sizes:
        source = self.of(operation.inputs[1])
        (axis,) = (each % len(source) for each in constant_numbers(operation.inputs[0]))
        size, count = source[axis], len(operation.outputs)
        if size is None or size % count:
            raise NotCertain
        return (*source[:axis], size // count, *source[axis + 1 :])

    def _reshaped(self, source: Sizes, target: Numbers) -> Sizes:
        """The target, with what -1 stands for; the source's sizes are known."""
        known = [size for size in target if size != -1]
        if None in source or None in known:
            raise NotCertain
        rest, left = divmod(prod(size or 0 for size in source), max(1, prod(size or 0 for size in known)))
        if left or list(target).count(-1) != (len(target) - len(known)) or (len(known) == len(target) and rest != 1):
            raise NotCertain
        return tuple(rest if size == -1 else size for size in target)


def constant_numbers(value: Value | None) -> list[int]:
    """
    Raises:
        NotCertain: it is no constant.
    """
    if value is None or value.constant is None:
        raise NotCertain
    return [int(number) for number in value.constant.numpy().reshape(-1)]


def merged_sizes(source: Sizes, shape: tuple[int, ...], target: tuple[int, ...]) -> Sizes | None:
    """What is open where ``target`` has the source's sizes, or products of some that lie side by side.

    Args:
        source: the source's sizes.
        shape: what they were when it was lowered.
        target: the target's sizes then.
    """
    waiting = [pair for pair in zip(shape, source, strict=True) if pair != (1, 1)]
    found: list[int | None] = []
    for size in target:
        product, is_open = 1, False
        while waiting and product < size:
            number, known = waiting.pop(0)
            is_open |= known is None
            product *= number
        if product != size:
            return None
        found.append(None if is_open else size)
    return None if waiting else tuple(found)


def taken_elements(sizes: Sequence[int], places: Sequence[Sequence[int]], free: tuple[int, int]) -> list[range]:
    """Which elements of each axis a slice takes: from, to and in steps of ``places``, where these are not ``free``."""
    found: list[range] = []
    for axis, (size, begin, end, step) in enumerate(zip(sizes, *places, strict=True)):
        first, last = (None if mask >> axis & 1 else at for mask, at in zip(free, (begin, end), strict=True))
        found.append(range(*slice(first, last, step).indices(size)))
    return found


def _taken(size: int, first: int | None, last: int | None, step: int | None) -> int:
    """How many elements a slice takes, as Python counts them."""
    if step is None or step < 1:
        return len(range(*slice(first, last, step).indices(size)))
    begin, end = (
        size if at is None else at if 0 <= at <= size else size if at > size else max(at + size, 0)
        for at in (0 if first is None else first, last)
    )
    return (end - begin + step - 1) // step if end > begin else 0


def _count(size: int | None, start: int | None, end: int | None, step: int | None) -> int | None:
    """How many elements a slice takes of an axis whose size, start or end is open; None where that depends on it."""
    if size is not None and (start, end, step) == (0, None, 1):
        return size
    if start is None or step != 1:
        return None
    if end is None:
        return -start if start < 0 else None
    count = end - start if (start < 0) == (end < 0) else 0
    return count if count == 1 or (start < 0 and count > 0) else None  # of a short axis the first few are fewer


def _blocks(operation: Operation, source: Sizes) -> Sizes:
    block = operation.options["block_size"]
    batch, *sides, channels = source
    if channels is None:
        raise NotCertain
    if operation.code == "DEPTH_TO_SPACE":
        larger = [None if size is None else size * block for size in sides]
        return batch, larger[0], larger[1], channels // (block * block)
    if any(size is not None and size % block for size in sides):
        raise NotCertain
    smaller = [None if size is None else size // block for size in sides]
    return batch, smaller[0], smaller[1], channels * block * block
