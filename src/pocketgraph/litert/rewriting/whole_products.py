"""Multiplies whole numbers on LiteRT's eight-bit kernels, without losing any of their digits.

    x ─CONV_2D(w)   becomes   x, ends ─CONCATENATION─ CONV_2D(int8 w) ─SLICE─

LiteRT rounds what it multiplies by int8 weights to 256 steps between the smallest and the largest value that it finds
in a picture. Where all values are whole numbers within 255 of each other, and one more row of pixels holds both ends, a
step is exactly 1 and nothing is rounded: the sums are those of int32 arithmetic. What the row adds to the result is cut
off. Windows of one pixel have a range for each pixel; they get the ends as two more channels, with weights of zero.

Weights have up to 255 levels on either side of zero, as the original tool's codes do; what is beyond an int8 code is
multiplied with a copy of the input channel.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph.dtype import FLOAT, INT8, INT32
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.operator_traits import LARGEST_CODE
from pocketgraph.litert.program import Operation, Program, Quantization, Value

STEPS = 255
MOST_COPIES = 8  # runs of input channels that are copied one by one; of more, all channels are


def multiply_whole_numbers(program: Program, operation: Operation) -> bool:
    """Gives a convolution of whole numbers int8 weights; returns whether that can be.

    Args:
        program: the program; what is needed around the operation is put into it.
        operation: a CONV_2D with ``whole``, before it has int8 weights.
    """
    source, kernel, bias = operation.inputs
    (result,) = operation.outputs
    if source is None or kernel is None or kernel.constant is None or bias is None or bias.constant is None:
        return False
    levels = kernel.constant.numpy()
    if not _fits(operation, source, kernel) or (levels != np.rint(levels)).any() or bias.constant.numpy().any():
        return False
    codes = np.clip(levels, -LARGEST_CODE, LARGEST_CODE)
    rest = levels - codes
    if np.abs(rest).max(initial=0) > LARGEST_CODE:
        return False
    made: list[Operation] = []
    if rest.any() or kernel.shape[1:3] == (1, 1) or _moved_by(program, source) is not None:
        copied = np.flatnonzero(rest.any(axis=(0, 1, 2)))
        taken, parts = _copies(made, source, copied, operation.nodes)
        ends = np.broadcast_to(np.array(operation.whole, np.float32), (*source.shape[:3], 2))
        source = _joined(made, [source, *parts, _ends(program, made, operation, ends)], 3, operation.nodes)
        codes = np.concatenate([codes, rest[..., taken], np.zeros((*codes.shape[:3], 2))], axis=3)
    else:
        rows = _rows_below(operation, source.shape[1], kernel.shape[1])
        below = np.zeros((source.shape[0], rows, *source.shape[2:]), np.float32)
        below[:, -1, 0, 0], below[:, -1, -1, -1] = operation.whole or (0, 0)
        source = _joined(made, [source, _ends(program, made, operation, below)], 1, operation.nodes)
    count = codes.shape[0]
    weights = Value(f"{kernel.name}/whole", INT8, codes.shape, Constant.of(codes.astype(np.int8)))
    weights.quantization = Quantization((1.0,) * count, (0,) * count, 0)
    operation.inputs[:2] = [source, weights]
    made.append(operation)
    height = _rows_of_result(operation, source.shape[1], kernel.shape[1])
    if height != result.shape[1]:
        whole = Value(f"{result.name}/taller", FLOAT, (result.shape[0], height, *result.shape[2:]))
        operation.outputs = [whole]
        made.append(_slice(whole, [0, 0, 0, 0], list(result.shape), result, operation.nodes))
    at = program.operations.index(operation)
    program.operations[at : at + 1] = made
    return True


def _fits(operation: Operation, source: Value, kernel: Value) -> bool:
    """Whether the operation multiplies pictures of numbers of a known range, and does nothing else."""
    options, (low, high) = operation.options, operation.whole or (0, 0)
    is_plain = (options["activation"], options["dilation_h"], options["dilation_w"]) == ("", 1, 1)
    is_picture = len(source.shape) == 4 and source.dtype is FLOAT
    if not is_plain or not is_picture or high - low != STEPS or not low <= 0 <= high:  # LiteRT's range contains zero
        return False
    return source.shape[3] == kernel.shape[3] and source.shape[2] * source.shape[3] >= 2


def _moved_by(program: Program, source: Value) -> Value | None:
    """The single number, known only while running, that is subtracted from codes right before they are multiplied."""
    maker = program.producers().get(source)
    if maker is None or maker.code != "SUB" or maker.options.get("activation"):
        return None
    number = maker.inputs[1]
    return number if number is not None and number.constant is None and number.size == 1 else None


def _ends(program: Program, made: list[Operation], operation: Operation, numbers: Array) -> Value:
    """A tensor with the ends of what is multiplied."""
    source = operation.operands[0]
    ends = Value(f"{source.name}/ends", FLOAT, numbers.shape, Constant.of(numbers))
    number = _moved_by(program, source)
    if number is None:
        return ends
    moved = Value(f"{source.name}/moved_ends", FLOAT, numbers.shape)
    made.append(Operation("SUB", [ends, number], [moved], {"activation": ""}, operation.nodes))
    return moved


def _copies(made: list[Operation], source: Value, wanted: Array, nodes: tuple[str, ...]) -> tuple[Array, list[Value]]:
    """Which channels are copied so that these are among them; and the copies."""
    if not wanted.size:
        return wanted, []
    runs = np.split(wanted, np.flatnonzero(np.diff(wanted) > 1) + 1)
    if len(runs) > MOST_COPIES or 2 * wanted.size > source.shape[3]:
        return np.arange(source.shape[3]), [source]
    parts = []
    for run in runs:
        shape = (*source.shape[:3], run.size)
        parts.append(Value(f"{source.name}/from_{run[0]}", FLOAT, shape))
        made.append(_slice(source, [0, 0, 0, int(run[0])], list(shape), parts[-1], nodes))
    return wanted, parts


def _joined(made: list[Operation], parts: list[Value], axis: int, nodes: tuple[str, ...]) -> Value:
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    joined = Value(f"{parts[0].name}/joined_{axis}", FLOAT, tuple(shape))
    made.append(Operation("CONCATENATION", [*parts], [joined], {"axis": axis, "activation": ""}, nodes))
    return joined


def _slice(source: Value, begin: list[int], size: list[int], result: Value, nodes: tuple[str, ...]) -> Operation:
    places = [Value("places", INT32, (4,), Constant.of(np.array(numbers, np.int32))) for numbers in (begin, size)]
    return Operation("SLICE", [source, *places], [result], {}, nodes)


def _rows_below(operation: Operation, height: int, taps: int) -> int:
    """How many rows to add for the last of them to touch nothing of the result, and padding to stay what it is."""
    if operation.options["padding"] != "SAME":
        return 1
    stride = int(operation.options["stride_h"])
    padding = max((-(-height // stride) - 1) * stride + taps - height, 0)
    return -(-(padding - padding // 2 + 1) // stride) * stride


def _rows_of_result(operation: Operation, height: int, taps: int) -> int:
    stride = int(operation.options["stride_h"])
    return -(-height // stride) if operation.options["padding"] == "SAME" else (height - taps) // stride + 1
