"""How XNNPACK packs weights on this processor, learned from what it packs: a model of small operations is opened.

Nothing of XNNPACK is assumed that was not seen here: each kind of operation of a program is tried with its own window
and as many output channels, few input channels, and weights that all differ. Where what comes out is in no order that
is known, the kind has none.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.record import Record
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.native import native_model
from pocketgraph.litert.native.native_messages import quiet
from pocketgraph.litert.packing import weight_cache_file
from pocketgraph.litert.packing.packing_order import PackingOrder, order_of
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.writing import writer
from pocketgraph.litert.writing.free_disk_space import room_for
from pocketgraph.part_files import part_name

SPARE = 2 << 20  # bytes beside twice the probe's weights: a few columns are padded to whole vectors
CHANNELS = (3, 5)  # input channels that are tried: of each kind, and of one kind of each operator once more


class PackedKind(NamedTuple):
    """What decides in which order an operation's weights are packed, but for the number of input channels.

    Attributes:
        code: the operator.
        window: rows and columns.
        options: those of the operator's fields that may matter, by name.
        columns: output channels.
        has_bias: whether it has one.
        is_last: whether no operation comes after it, which XNNPACK tells its threads with it.
    """

    code: str
    window: tuple[int, int]
    options: tuple[tuple[str, int | str], ...]
    columns: int
    has_bias: bool
    is_last: bool = False

    @property
    def is_depthwise(self) -> bool:
        return self.code == "DEPTHWISE_CONV_2D"


class SeenKind(Record):
    """What was seen of a kind.

    Attributes:
        order: of its weights.
        algorithm: what XNNPACK calls it, but for the numbers of channels (see ``algorithm_of``).
        no_bias: the place that it looks up where there is no bias.
    """

    order: PackingOrder
    algorithm: int
    no_bias: int

    def algorithm_of(self, channels: int, columns: int) -> int:
        """What XNNPACK calls the packing of an operation with so many input and output channels."""
        return self.algorithm ^ channels ^ columns


class ProbeResult(Record):
    """What a probe has seen.

    Attributes:
        kinds: all that were tried.
        fingerprints: of the kernels that took part.
    """

    kinds: dict[PackedKind, SeenKind]
    fingerprints: tuple[int, ...]


def seen(kinds: Collection[PackedKind], folder: str) -> ProbeResult | None:
    """How operations of these kinds are packed; None where LiteRT does not tell, or one has no order that is known.

    Args:
        kinds: which.
        folder: where there is room for files of some kilobytes.
    """
    wanted = sorted(dict.fromkeys(kinds), key=lambda kind: kind.is_last)
    plain = [kind for kind in wanted if not kind.is_depthwise and not kind.is_last]
    families = {(kind.code, kind.window == (1, 1)): kind for kind in plain}
    tried = [(kind, CHANNELS[1]) for kind in families.values()]
    tried += [(kind, 1 if kind.is_depthwise else CHANNELS[0]) for kind in wanted]
    try:
        content = _packed_by_litert(_program(tried), folder)
        listed = weight_cache_file.read(content)
    except (RuntimeError, ValueError, *native_model.UNKNOWN):
        return None
    by_weights = {buffer.weights: buffer for buffer in listed.buffers}
    found: dict[PackedKind, SeenKind] = {}
    place = 0
    for kind, channels in tried:
        place += 1
        buffer = by_weights.get(place)
        matrix, bias = _weights(kind, channels)
        place += kind.has_bias
        if buffer is None or (kind.has_bias and buffer.bias != place):
            return None
        start = listed.base + buffer.offset
        packed = np.frombuffer(content[start : start + buffer.size], np.float32)
        order = order_of(packed, matrix, bias, kind.window if kind.is_depthwise else None)
        if order is None:
            return None
        each = SeenKind(order, buffer.algorithm ^ channels ^ kind.columns, buffer.bias)
        known = found.setdefault(kind, each)
        if (known.order, known.algorithm) != (each.order, each.algorithm):
            return None
    return ProbeResult(found, listed.fingerprints)


def _packed_by_litert(program: Program, folder: str) -> bytes:
    """The file of packed weights that LiteRT makes of a program."""
    model = part_name(os.path.join(folder, "probe.tflite"))
    packed = part_name(os.path.join(folder, "probe.xnn"))
    outputs = [(value.shape, value.dtype.numpy) for value in program.outputs]
    try:
        with open(model, "xb") as file:
            file.writelines(writer.pieces(program))
        if why := room_for(packed, os.path.getsize(model), SPARE):
            raise OSError(why)  # XNNPACK would end the process
        with quiet():
            native_model.NativeModel(model, 1, packed, outputs).close()
        with open(packed, "rb") as file:
            return file.read()
    finally:
        for path in (model, packed):
            with contextlib.suppress(OSError):
                os.unlink(path)


def _program(tried: Collection[tuple[PackedKind, int]]) -> Program:
    """A program with an operation of each kind, whose buffers are weights and biases in turn."""
    program = Program([], [])
    for number, (kind, channels) in enumerate(tried):
        source, result = _shapes(kind, channels)
        taken, given = Value(f"x{number}", FLOAT, source), Value(f"y{number}", FLOAT, result)
        operands: list[Value | None] = [taken]
        operands += [Value(f"c{number}", FLOAT, each.shape, Constant.of(each)) for each in _operands(kind, channels)]
        operands += [None] * (3 - len(operands))
        program.operations.append(Operation(kind.code, operands, [given], dict(kind.options)))
        program.inputs.append(taken)
        program.outputs.append(given)
        last = kind
    if not last.is_last:
        before = program.outputs.pop()
        program.outputs.append(Value("last", FLOAT, before.shape))
        program.operations.append(Operation("LOGISTIC", [before], program.outputs[-1:]))
    return program


def _shapes(kind: PackedKind, channels: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shapes of what goes in, which is as large as the window, and of what comes out."""
    if kind.code == "FULLY_CONNECTED":
        return (1, channels), (1, kind.columns)
    options = dict(kind.options)
    reach = [(size - 1) * int(options[f"dilation_{side}"]) + 1 for side, size in zip("hw", kind.window, strict=True)]
    strides = [int(options[f"stride_{side}"]) for side in "hw"]
    is_same = options["padding"] == "SAME"
    made = [-(-size // stride) if is_same else 1 for size, stride in zip(reach, strides, strict=True)]
    return (1, *reach, kind.columns if kind.is_depthwise else channels), (1, *made, kind.columns)


def _weights(kind: PackedKind, channels: int) -> tuple[Array, Array | None]:
    """Weights (rows, columns) and bias, whose elements all differ."""
    rows = kind.window[0] * kind.window[1] * channels
    matrix = np.arange(1, rows * kind.columns + 1, dtype=np.float32).reshape(rows, kind.columns)
    return matrix, -np.arange(1, kind.columns + 1, dtype=np.float32) if kind.has_bias else None


def _operands(kind: PackedKind, channels: int) -> Iterator[Array]:
    """The weights as the operator takes them, and its bias."""
    matrix, bias = _weights(kind, channels)
    height, width = kind.window
    if kind.is_depthwise:
        yield matrix.reshape(1, height, width, kind.columns)
    elif kind.code == "FULLY_CONNECTED":
        yield np.ascontiguousarray(matrix.T)
    else:
        yield np.ascontiguousarray(matrix.T).reshape(kind.columns, height, width, channels)
    if bias is not None:
        yield bias
