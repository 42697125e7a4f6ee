"""Weights packed on their way from the graph to the file that XNNPACK maps, instead of by XNNPACK.

TensorFlow keeps weights in about the order in which XNNPACK's kernels read them; a model file has them transposed. So
they are neither transposed, nor written, nor packed from there: the model file has a hole in their place.
"""

from __future__ import annotations

import os
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import numpy as np

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.record import Record
from pocketgraph.litert.cache_integrity import Section
from pocketgraph.litert.constant import Array, kept_for
from pocketgraph.litert.constants_ahead import WORTH_A_THREAD
from pocketgraph.litert.native.watched_holes import PAGE, tells
from pocketgraph.litert.operator_traits import WEIGHTED
from pocketgraph.litert.packing import weight_cache_file
from pocketgraph.litert.packing.packing_order import PackingOrder, turned_rows
from pocketgraph.litert.packing.packing_probe import PackedKind, ProbeResult, seen
from pocketgraph.litert.packing.weight_cache_file import PackedBuffer
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.writing.free_disk_space import room_for
from pocketgraph.part_files import part_name

WEIGHTS, BIAS = 1, 2  # places among an operation's operands
OPTIONS = ("padding", "stride_h", "stride_w", "dilation_h", "dilation_w", "multiplier")
PACKED_OTHERWISE = frozenset(("TRANSPOSE_CONV",))
"""Operators whose weights XNNPACK keeps in the same file, in an order that is not looked for."""
LEFT_OUT_FROM = 1 << 16  # bytes of weights, from which the model file does without them
PIECE = 1 << 19  # bytes packed at a time: what the processor's caches hold twice, and what is read besides
DEFAULTS: dict[str, int] = {"dilation_h": 1, "dilation_w": 1}
LARGER = (2, 2)  # stands for all windows of several elements, whose size and gaps make no difference


class _PackedOperation:
    """An operation whose weights can be packed directly.

    Attributes:
        operation: it.
        kind: what decides how.
        channels: its input channels, 1 of a depthwise one.
    """

    __slots__ = ("channels", "kind", "operation")

    def __init__(self, operation: Operation, kind: PackedKind, channels: int) -> None:
        self.operation = operation
        self.kind = kind
        self.channels = channels


class PackedProgram(Record):
    """How the weights of a program are packed.

    Attributes:
        operations: all that have packed weights.
        seen: how they are packed on this processor.
        read_otherwise: values that somebody takes as they are in the model file, perhaps at every run.
    """

    operations: list[_PackedOperation]
    seen: ProbeResult
    read_otherwise: set[Value]

    def left_out(self) -> set[Value]:
        """The weights that the model file does not need."""
        large = {weights for each in self.operations if (weights := _weights(each)).size * 4 >= LEFT_OUT_FROM}
        return large - self.read_otherwise

    def sections(self, places: Callable[[Value], int], *, ahead: bool = True) -> list[Section]:
        """The file of packed weights: in two sections of about as many bytes where it is large, so that two threads
        each pack what they write, which is in their processor's cache then.

        Args:
            places: the place of a constant among the model file's buffers.
            ahead: whether there may be two.
        """
        buffers: dict[PackedBuffer, _PackedOperation] = {}
        for each in self.operations:
            weights, bias = _weights(each), each.operation.inputs[BIAS]
            kind = self.seen.kinds[each.kind]
            algorithm = kind.algorithm_of(each.channels, each.kind.columns)
            bias_place = places(bias) if bias is not None else kind.no_bias
            size = kind.order.size(weights.size // each.kind.columns, each.kind.columns)
            buffers.setdefault(PackedBuffer(algorithm, places(weights), bias_place, 0, size), each)
        parts = (part for each in buffers.values() for part in _parts(each, self.seen.kinds[each.kind].order))
        placed = weight_cache_file.placed(list(buffers))
        content = list(weight_cache_file.pieces(placed, self.seen.fingerprints, parts))
        ends = list(accumulate(map(len, content)))
        middle = bisect(ends, ends[-1] // 2)
        if not ahead or ends[-1] < WORTH_A_THREAD or not middle:
            return [Section(0, _packed(content))]
        return [Section(0, _packed(content[:middle])), Section(ends[middle - 1], _packed(content[middle:]))]


def planned(program: Program, folder: str) -> PackedProgram | None:
    """How a program's weights can be packed directly; None where they cannot.

    Args:
        program: it; its weights may be read now.
        folder: where there is room for files of some kilobytes.
    """
    found = []
    for operation in program.operations:
        if operation.code in WEIGHTED:
            each = _planned(operation, is_last=operation is program.operations[-1])
            if each is None:
                return None
            found.append(each)
        elif operation.code in PACKED_OTHERWISE:
            return None
    if not found or room_for(part_name(os.path.join(folder, "holes")), PAGE, 0) or not tells(folder):
        return None
    known = seen([each.kind for each in found], folder)
    if known is None:
        return None
    packed = {id(each.operation) for each in found}
    read = {
        value
        for operation in program.operations
        for place, value in enumerate(operation.inputs)
        if value is not None and (place != WEIGHTS or id(operation) not in packed)
    }
    return PackedProgram(found, known, read.union(program.outputs))


def _planned(operation: Operation, *, is_last: bool) -> _PackedOperation | None:
    source, weights, bias = (*operation.inputs, None)[:3]
    if source is None or weights is None or source.constant is not None:
        return None
    is_float = all(each.dtype is FLOAT and each.quantization is None for each in (source, weights))
    columns = weights.shape[-1] if operation.code == "DEPTHWISE_CONV_2D" else weights.shape[0]
    if weights.constant is None or not is_float or not weights.size:
        return None
    if bias is not None and (bias.constant is None or bias.dtype is not FLOAT or bias.shape != (columns,)):
        return None
    window = (weights.shape[1], weights.shape[2]) if len(weights.shape) == 4 else (1, 1)
    channels = weights.shape[-1]
    if operation.code == "DEPTHWISE_CONV_2D":
        if operation.options["multiplier"] != 1:
            return None
        channels = 1
    elif source.shape[-1] != channels:
        return None  # groups, or rows that are laid out anew
    options = {**DEFAULTS, **operation.options} if operation.code != "FULLY_CONNECTED" else {}
    if operation.code == "CONV_2D" and window != (1, 1):
        window, options = LARGER, {**options, **DEFAULTS}
    kept = tuple((name, options[name]) for name in OPTIONS if name in options)
    kind = PackedKind(operation.code, window, kept, columns, bias is not None, is_last)
    return _PackedOperation(operation, kind, channels)


def _weights(each: _PackedOperation) -> Value:
    return each.operation.operands[WEIGHTS]


class _Part:
    """Some columns of an operation's weights, packed when they are asked for.

    Args:
        order: of the weights.
        read: gives the weights of all columns, and what they are multiplied by.
        bias: of all columns.
        columns: which.
        nbytes: what they take packed.
    """

    def __init__(
        self,
        order: PackingOrder,
        read: Callable[[], tuple[Array, Array | None]],
        bias: Array | None,
        columns: slice,
        nbytes: int,
    ) -> None:
        self._order, self._read, self._bias, self._columns = order, read, bias, columns
        self._nbytes = nbytes

    def __len__(self) -> int:
        return self._nbytes

    def packed(self, into: Array) -> Array:
        """The columns, packed into this memory for so many elements."""
        matrix, factors = self._read()
        columns, bias = self._columns, self._bias
        self._order.pack(
            matrix[:, columns],
            None if bias is None else bias[columns],
            None if factors is None else factors[columns],
            into,
        )
        return into


def _packed(content: Sequence[bytes | _Part]) -> Iterator[bytes | memoryview]:
    """The bytes of a file's content, where each part is in the memory of the one before."""
    memory = np.empty(0, np.float32)
    for piece in content:
        if isinstance(piece, bytes):
            yield piece
            continue
        count = len(piece) // 4
        memory = memory if len(memory) >= count else np.empty(count, np.float32)
        yield piece.packed(memory[:count]).view(np.uint8).data


def _parts(each: _PackedOperation, order: PackingOrder) -> list[_Part]:
    """An operation's weights in parts that fit into a cache while they are packed and written."""
    weights, bias = _weights(each), each.operation.inputs[BIAS]
    columns = each.kind.columns
    rows = weights.size // columns
    step = max(1, PIECE // ((rows + 1) * order.width * 4)) * order.width
    slices = [slice(start, min(start + step, columns)) for start in range(0, columns, step)]
    sizes = [order.blocks(each.stop - each.start) * order.width * (rows + 1) * 4 for each in slices]
    sizes[-1] += order.size(rows, columns) - sum(sizes)  # filled up
    added = None if bias is None or bias.constant is None else bias.constant.numpy()
    read = kept_for(lambda: _matrix(each, order), len(slices))
    return [_Part(order, read, added, place, size) for place, size in zip(slices, sizes, strict=True)]


def _matrix(each: _PackedOperation, order: PackingOrder) -> tuple[Array, Array | None]:
    """An operation's weights, a column for each output channel, and what the columns are multiplied by."""
    constant = _weights(each).content
    if not each.kind.is_depthwise:
        return constant.by_column()
    matrix = constant.numpy().reshape(-1, each.kind.columns)
    return turned_rows(matrix, each.kind.window) if order.turned else matrix, None
